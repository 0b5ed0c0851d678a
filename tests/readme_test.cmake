# Compares the passage in README.md with what the command above it prints. Run by ctest with -D README and OCTAVO; with -D UPDATE=ON it
# writes the passage instead:
#
#     cmake -D README=README.md -D OCTAVO=build/release/octavo -D UPDATE=ON -P tests/readme_test.cmake
cmake_minimum_required(VERSION 3.25)

set(opening "<!-- passage -->\n```console\n$ build/release/octavo ")
set(closing "```\n<!-- /passage -->")
file(READ "${README}" readme)
string(FIND "${readme}" "${opening}" begin)
string(FIND "${readme}" "${closing}" end)
if(begin LESS 0 OR end LESS begin)
  message(FATAL_ERROR "${README} has no passage")
endif()

string(LENGTH "${opening}" length)
math(EXPR begin "${begin} + ${length}")
math(EXPR length "${end} - ${begin}")
string(SUBSTRING "${readme}" 0 ${begin} before)
string(SUBSTRING "${readme}" ${begin} ${length} block)
string(SUBSTRING "${readme}" ${end} -1 after)
string(FIND "${block}" "\n" line_end)
string(SUBSTRING "${block}" 0 ${line_end} arguments)
math(EXPR line_end "${line_end} + 1")
string(SUBSTRING "${block}" ${line_end} -1 passage)

separate_arguments(argument_list UNIX_COMMAND "${arguments}")
execute_process(COMMAND ${OCTAVO} ${argument_list} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(UPDATE)
  file(WRITE "${README}" "${before}${arguments}\n${output}${after}")
elseif(NOT output STREQUAL passage)
  message(FATAL_ERROR "octavo ${arguments} prints\n${output}\nREADME.md has\n${passage}\n(the head of this file says how to refresh it)")
endif()
