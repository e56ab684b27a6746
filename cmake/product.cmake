# SPDX-License-Identifier: Apache-2.0
# What people install: libsonde, the program, headers, the pkg-config file and the CMake package;
# and what they may build beside it: examples and benchmarks.
if(NOT TARGET sn_api)
  return()
endif()
include(CMakePackageConfigHelpers)

add_library(sonde ${SONDE_OBJECTS})
target_link_libraries(sonde PRIVATE $<BUILD_INTERFACE:sonde_flags> Threads::Threads m ${SONDE_OPTIONAL_LIBS})
target_include_directories(sonde PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(sonde PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C)
if(NOT SONDE_SANITIZE)
  target_link_options(sonde PRIVATE $<$<BOOL:${BUILD_SHARED_LIBS}>:LINKER:-z,defs>)
endif()

file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(GLOB program_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/sonde/*.c
  ${CMAKE_SOURCE_DIR}/tools/sonde/bench/*.c ${CMAKE_SOURCE_DIR}/tools/sonde/compare/*.c
  ${CMAKE_SOURCE_DIR}/tools/sonde/entries/*.c
  ${CMAKE_SOURCE_DIR}/tools/sonde/view/*.c)
if(program_sources)
  # The drivers of other runtimes travel in the program.
  file(GLOB peers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/peers/*.py)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/bench_files.c
    COMMAND ${CMAKE_COMMAND} "-DINPUTS=${peers}" -DOUTPUT=${CMAKE_BINARY_DIR}/bench_files.c
      -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${peers} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  add_executable(sonde_program ${program_sources} ${CMAKE_BINARY_DIR}/bench_files.c)
  target_include_directories(sonde_program PRIVATE ${CMAKE_SOURCE_DIR}/tools/sonde)
  target_link_libraries(sonde_program PRIVATE sonde sonde_flags)
  set_target_properties(sonde_program PROPERTIES OUTPUT_NAME sonde
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS sonde_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(TARGETS sonde EXPORT sonde
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/sonde DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

# The CMake package: find_package(sonde) gives sonde::sonde.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sonde)
install(EXPORT sonde NAMESPACE sonde:: FILE sondeTargets.cmake DESTINATION ${package_dir})
set(SONDE_PACKAGE_DEPENDENCIES "")
if(NOT BUILD_SHARED_LIBS) # a static library hands its needs to whoever links it
  set(SONDE_PACKAGE_DEPENDENCIES Threads)
  foreach(lib IN LISTS SONDE_OPTIONAL_LIBS)
    string(REGEX REPLACE "::.*" "" lib ${lib})
    string(REPLACE "SQLite" "SQLite3" lib ${lib}) # the package has another name than its target
    list(APPEND SONDE_PACKAGE_DEPENDENCIES ${lib})
  endforeach()
endif()
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/sondeConfig.cmake.in
  ${CMAKE_BINARY_DIR}/sondeConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sondeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sondeConfig.cmake ${CMAKE_BINARY_DIR}/sondeConfigVersion.cmake
  DESTINATION ${package_dir})

# The pkg-config file: finds its prefix from where it lies, so an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" SONDE_PC_PREFIX "\${pcfiledir}/${pc_to_prefix}")
set(SONDE_PC_PRIVATE "-pthread -lm")
foreach(pair IN ITEMS "ZLIB::ZLIB -lz" "JPEG::JPEG -ljpeg" "PNG::PNG -lpng" "SQLite::SQLite3 -lsqlite3")
  string(REGEX MATCH "^[^ ]+" lib ${pair})
  if("${lib}" IN_LIST SONDE_OPTIONAL_LIBS)
    string(REGEX REPLACE "^[^ ]+" "" flag ${pair})
    string(APPEND SONDE_PC_PRIVATE ${flag})
  endif()
endforeach()
if(BUILD_SHARED_LIBS)
  set(SONDE_PC_LIBS "-lsonde")
  set(SONDE_PC_LIBS_PRIVATE ${SONDE_PC_PRIVATE})
else()
  set(SONDE_PC_LIBS "-lsonde ${SONDE_PC_PRIVATE}")
  set(SONDE_PC_LIBS_PRIVATE "")
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/sonde.pc.in ${CMAKE_BINARY_DIR}/sonde.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sonde.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# examples/NAME.c: one program each, against the public API alone.
if(SONDE_BUILD_EXAMPLES)
  file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
  foreach(file IN LISTS examples)
    get_filename_component(name ${file} NAME_WE)
    add_executable(example_${name} ${file})
    target_link_libraries(example_${name} PRIVATE sonde sonde_flags)
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
  endforeach()
endif()
