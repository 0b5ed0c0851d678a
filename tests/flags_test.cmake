# Configures octavo with flags that users set: those that would break its promises must be refused by name, others not.
# Run by ctest with -D SOURCE, WORK, GENERATOR, COMPILER. Nothing is built but one source at a time, as far as its preprocessing.
cmake_minimum_required(VERSION 3.25)

# configure(FOLDER ENVIRONMENT ARGUMENT…): status in `status`, all that it said, as one line, in `said`.
function(configure folder environment)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ${environment} ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/${folder} -G ${GENERATOR}
            -D OCTAVO_TESTS=OFF -D OCTAVO_BENCH=OFF ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " said "${output}${errors}")  # CMake wraps messages
  set(said "${said}" PARENT_SCOPE)
  set(status ${status} PARENT_SCOPE)
endfunction()

function(expect_refused what part)
  if(status EQUAL 0)
    message(SEND_ERROR "${what} was not refused")
  else()
    string(FIND "${said}" "${part}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "${what} was refused without the words\n${part}\nbut with\n${said}")
    endif()
  endif()
endfunction()

# One folder for all flags: CMake looks at the compiler once, and each run sets every variable anew.
function(configure_with flags release_flags build_type)
  configure(build CXXFLAGS= -D CMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_FLAGS=${flags}"
            "-DCMAKE_CXX_FLAGS_RELEASE=${release_flags}" -D CMAKE_BUILD_TYPE=${build_type})
  set(said "${said}" PARENT_SCOPE)
  set(status ${status} PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})

# Harmless, also where a harmful name is part of another word, or belongs to a build type that is not built.
foreach(case IN ITEMS "-O2 -g -mtune=native -Wall|-O3 -DNDEBUG|Release" "-I/opt/x-march=y -DNAME=-mavx|-O3|Release"
                      "-g|-march=native|Debug")
  string(REPLACE "|" ";" parts "${case}")
  configure_with(${parts})
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${case} was refused:\n${said}")
  endif()
endforeach()

foreach(flag IN ITEMS -march=native -march=armv8.2-a+sve -mcpu=native -mavx -mavx2 -mavx512f -msse4.2 -mssse3 -mfma -mbmi
                      -mbmi2 -mf16c -maes -mvaes -mpclmul -mvpclmulqdq -mpopcnt)
  configure_with("-g ${flag} -Wall" -O3 Release)
  expect_refused("${flag} in CMAKE_CXX_FLAGS"
                 "Remove '${flag}' from CMAKE_CXX_FLAGS: octavo chooses instruction sets at run time.")
endforeach()
foreach(flag IN ITEMS -ffast-math -Ofast -funsafe-math-optimizations -fassociative-math -ffinite-math-only -fno-signed-zeros
                      -ffp-model=fast -fsingle-precision-constant -mfpmath=387)
  configure_with(${flag} -O3 Release)
  expect_refused("${flag} in CMAKE_CXX_FLAGS"
                 "Remove '${flag}' from CMAKE_CXX_FLAGS: octavo promises the same text on every machine.")
endforeach()
configure_with(-g "-O3 -march=native" Release)
expect_refused("-march=native in CMAKE_CXX_FLAGS_RELEASE"
               "Remove '-march=native' from CMAKE_CXX_FLAGS_RELEASE: octavo chooses")
configure_with(-g -Ofast Release)
expect_refused("-Ofast in CMAKE_CXX_FLAGS_RELEASE" "Remove '-Ofast' from CMAKE_CXX_FLAGS_RELEASE: octavo promises")

# What the environment says counts where a folder is first configured.
configure(cxxflags "CXXFLAGS=-g -mavx2" -D CMAKE_CXX_COMPILER=${COMPILER})
expect_refused("-mavx2 in CXXFLAGS" "Remove '-mavx2' from CMAKE_CXX_FLAGS: octavo chooses")
configure(cxx "CXX=${COMPILER} -mavx2;CXXFLAGS=")
expect_refused("-mavx2 in CXX" "Remove '-mavx2' from CMAKE_CXX_COMPILER_ARG1: octavo chooses")

# ---- a project around octavo ----

# around(COMMANDS): configures a project that runs COMMANDS and adds octavo.
function(around commands)
  file(WRITE ${WORK}/around/CMakeLists.txt
       "cmake_minimum_required(VERSION 3.25)\nproject(around CXX)\n${commands}\nadd_subdirectory(${SOURCE} octavo)\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env CXXFLAGS= ${CMAKE_COMMAND} -S ${WORK}/around -B ${WORK}/around/build -G ${GENERATOR}
            -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Release -D CMAKE_EXPORT_COMPILE_COMMANDS=ON
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " said "${output}${errors}")
  set(said "${said}" PARENT_SCOPE)
  set(status ${status} PARENT_SCOPE)
endfunction()

set(where "the add_compile_options of a project around octavo")
foreach(flag IN ITEMS -ffast-math -Ofast -fassociative-math -freciprocal-math -fno-signed-zeros)
  around("add_compile_options(-g ${flag} -Wall)")
  expect_refused("${flag} around" "Remove '${flag}' from ${where}: octavo promises the same text on every machine.")
endforeach()
foreach(flag IN ITEMS -march=native -mavx2)
  around("add_compile_options(${flag})")
  expect_refused("${flag} around" "Remove '${flag}' from ${where}: octavo chooses instruction sets at run time.")
endforeach()
foreach(option IN ITEMS "$<$<CONFIG:Release>:-ffast-math>" "\"$<$<COMPILE_LANGUAGE:CXX>:-O2;-ffast-math>\"" "\"SHELL:-O2 -ffast-math\"")
  around("add_compile_options(${option})")
  expect_refused("${option} around" "Remove '-ffast-math' from ${where}")
endforeach()

# What a target is given cannot be seen beforehand; it stands before octavo's own options, which undo it.
around("add_compile_options(-g -I/opt/x-march=y)\ncmake_language(DEFER CALL target_compile_options octavo_kernels PRIVATE -ffast-math)")
if(NOT status EQUAL 0)
  message(SEND_ERROR "harmless options around were refused:\n${said}")
endif()
file(READ ${WORK}/around/build/compile_commands.json commands)
string(REGEX MATCH "[^\n]*-c [^\n]*/kernels/softmax[.]cc\"" command "${commands}")
if(NOT command MATCHES "-ffast-math.* -fno-fast-math -ffp-contract=off")
  message(SEND_ERROR "octavo's own options are not behind those of its target:\n${command}")
endif()

# What stands behind them is seen by the sources that compute, as far as the compiler tells of it. GCC tells of all.
file(GLOB sources ${SOURCE}/kernels/*.cc ${SOURCE}/kernels/reference/*.cc ${SOURCE}/engine/*.cc ${SOURCE}/engine/check/*.cc)
list(FILTER sources EXCLUDE REGEX "/engine/(machine|version)\\.cc$")
set(preprocess ${COMPILER} -std=c++20 -E -Wfatal-errors -I${SOURCE})
foreach(source IN LISTS sources)
  execute_process(COMMAND ${preprocess} -ffinite-math-only ${source} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
  expect_refused("${source} with -ffinite-math-only" "Remove -ffinite-math-only: octavo promises")
endforeach()
set(source ${SOURCE}/kernels/reference/softmax.cc)
set(told -ffast-math -ffinite-math-only)
execute_process(COMMAND ${COMPILER} --version OUTPUT_VARIABLE version)
if(NOT version MATCHES "clang")
  list(APPEND told -funsafe-math-optimizations -freciprocal-math -fno-signed-zeros)
endif()
foreach(flag IN LISTS told)
  execute_process(COMMAND ${preprocess} ${flag} ${source} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
  expect_refused("${source} with ${flag}" "octavo promises the same text")
endforeach()
execute_process(COMMAND ${preprocess} -O2 ${source} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(SEND_ERROR "${source} was refused without such a flag:\n${said}")
endif()
