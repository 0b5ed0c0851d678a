# `octavo check`, built with a faulty kernel, must fail, blame that kernel (ROW) on every target (the portable one, which may have a single lane
# and so no remainder, may be spared), and pass another kernel everywhere.
execute_process(COMMAND ${OCTAVO} check --cases 20 OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
if(NOT code EQUAL 1)
  message(FATAL_ERROR "expected exit code 1, found ${code}:\n${out}${err}")
endif()
string(REPLACE ";" "," out "${out}")  # which would part elements of the lists
string(REGEX MATCHALL "\n${ROW} +[A-Z][^\n]*" rows "${out}")
string(REGEX MATCHALL "\n${ROW} +[A-Z][^\n]*FAILED" failed "${out}")
string(REGEX MATCHALL "\nqkv +[A-Z][^\n]*ok" good "${out}")
list(LENGTH rows count)
list(LENGTH failed num_failed)
list(LENGTH good num_good)
if(count EQUAL 0 OR NOT num_failed EQUAL count OR NOT num_good EQUAL count)
  message(FATAL_ERROR "expected ${ROW} to fail and qkv to pass on every target:\n${out}")
endif()
