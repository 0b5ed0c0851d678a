# Configures octavo with flags that users set: those that would break its promises must be refused by name, others not.
# Run by ctest with -D SOURCE, WORK, GENERATOR, COMPILER. Nothing is built.
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
foreach(flag IN ITEMS -ffast-math -Ofast -funsafe-math-optimizations -fassociative-math -ffinite-math-only)
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
