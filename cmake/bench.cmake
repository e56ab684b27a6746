# SPDX-License-Identifier: Apache-2.0
# bench/NAME/*.c: one program sonde_bench_NAME, linked with the room of that name where there is one
# and with the whole library's insides otherwise.
file(GLOB benches RELATIVE ${CMAKE_SOURCE_DIR}/bench CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*/)
foreach(name IN LISTS benches)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/${name}/*.c)
  if(name STREQUAL "kernels") # driven as the engine drives them, and by its sessions
    set(room sn_api)
  elseif(TARGET sn_${name})
    set(room sn_${name})
  else()
    set(room sn_api)
  endif()
  if(NOT sources OR NOT TARGET ${room})
    continue()
  endif()
  add_executable(sonde_bench_${name} ${sources})
  target_link_libraries(sonde_bench_${name} PRIVATE ${room} ${CMAKE_DL_LIBS})
  set_target_properties(sonde_bench_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endforeach()
