# SPDX-License-Identifier: Apache-2.0
# Run with cmake -P: writes OUTPUT, a C source with the files of INPUTS as byte arrays, so that the
# program carries them and works from anywhere.
set(code "/* Made by cmake/embed.cmake. */\n#include \"bench/parts.h\"\n\n")
set(rows "")
set(number 0)
foreach(file IN LISTS INPUTS)
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND code "static const unsigned char file_${number}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)file_${number}, ${size}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "${code}\nconst bench_file bench_files[] = {\n${rows}    {NULL, NULL, 0}};\n")
