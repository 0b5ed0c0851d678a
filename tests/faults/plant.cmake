# Copies a kernel with a fault planted in it: cmake -D IN=… -D OUT=… -D FROM=… -D TO=… -P plant.cmake
# Fails when the text to be replaced is not there, so that a fault cannot silently stop being one.
file(READ ${IN} text)
string(FIND "${text}" "${FROM}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${IN} no longer holds the text that the fault replaces:\n${FROM}")
endif()
string(REPLACE "${FROM}" "${TO}" text "${text}")
file(WRITE ${OUT} "${text}")
