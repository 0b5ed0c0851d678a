# Installs octavo into a folder of its own, moves that, builds tests/consumer against it and compares with what the installed command
# prints. Run by ctest with -D BUILD, CONSUMER, WORK, GENERATOR, COMPILER, FLAGS, SANITIZE.
cmake_minimum_required(VERSION 3.25)

# run(COMMAND…): its standard output in `output`; ends the test when it fails.
function(run)
  execute_process(COMMAND ${ARGV} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${status}): ${command}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
# A package must not depend on where it was installed first, nor on a path without spaces.
set(prefix "${WORK}/moved away")
file(RENAME ${WORK}/first ${prefix})
# Sanitized libraries need their runtime at link time.
if(SANITIZE)
  string(APPEND FLAGS " -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
set(found "${output}")

# The command prints the text and a line end, the consumer the same and then what it scored.
run(${prefix}/bin/octavo info --model small)  # built in, so it moved along
run(${prefix}/bin/octavo generate --quiet --prompt ROMEO: --max-chars 60 --seed 1)
string(LENGTH "${output}" length)
string(SUBSTRING "${found}" 0 ${length} found_text)
string(SUBSTRING "${found}" ${length} -1 found_score)
if(length LESS 40 OR NOT found_text STREQUAL output)
  message(FATAL_ERROR "the library wrote\n${found}\nthe command\n${output}")
endif()
math(EXPR length "${length} - 1")
string(SUBSTRING "${output}" 0 ${length} text)
file(WRITE ${WORK}/text.txt "${text}")
run(${prefix}/bin/octavo score --quiet --document ${WORK}/text.txt)
string(JSON nats GET "${output}" nll)
string(JSON chars GET "${output}" chars)
string(SUBSTRING "${nats}" 0 7 nats)
string(FIND "${found_score}" "${chars} characters, ${nats}" at)
if(NOT at EQUAL 0)
  message(FATAL_ERROR "the library scored ${found_score}, the command ${output}")
endif()
