# SPDX-License-Identifier: Apache-2.0
# Instruction sets by the suffix of their files (conv_avx2.c): one row each, SUFFIX ARCHITECTURE FLAGS. Files of another
# architecture are not compiled. A new instruction set is a row here and in src/base/instruction_sets.inc, its files,
# and their rows in kernels.inc (docs/adding-an-instruction-set.md).
set(avx2 "-mavx2 -mfma -mf16c")
set(avx512 "${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512")
set(SONDE_INSTRUCTION_SETS
  "avx2 x86_64 ${avx2}"
  "avxvnni x86_64 ${avx2} -mavxvnni"
  "avx512 x86_64 ${avx512}"
  "vbmi x86_64 ${avx512} -mavx512vbmi"
  "vnni x86_64 ${avx512} -mavx512vnni"
  "bf16 x86_64 ${avx512} -mavx512bf16"
  "dpbf16 x86_64 ${avx512} -mavx512bf16"
  "amx x86_64 ${avx512} -mamx-tile -mamx-int8 -mamx-bf16"
  "amxfp16 x86_64 ${avx512} -mamx-tile"
  "neon aarch64"
  "dotprod aarch64 -march=armv8.2-a+dotprod"
  "i8mm aarch64 -march=armv8.2-a+dotprod+i8mm"
  "armbf16 aarch64 -march=armv8.2-a+bf16")

# sonde_instruction_sets(LIST): drops the files of other architectures and gives the others their flags.
function(sonde_instruction_sets list)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(here x86_64)
  else()
    set(here aarch64)
  endif()
  set(kept ${${list}})
  foreach(row IN LISTS SONDE_INSTRUCTION_SETS)
    string(REPLACE " " ";" row "${row}")
    list(POP_FRONT row suffix architecture)
    foreach(s IN LISTS kept)
      if(NOT s MATCHES "_${suffix}\\.c$")
        continue()
      endif()
      if(architecture STREQUAL here)
        set_source_files_properties(${s} PROPERTIES COMPILE_OPTIONS "${row}")
      else()
        list(REMOVE_ITEM kept ${s})
      endif()
    endforeach()
  endforeach()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()
