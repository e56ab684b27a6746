# SPDX-License-Identifier: Apache-2.0
# What people install: libsonde, the program, headers, the pkg-config file and the CMake package.
if(NOT TARGET sn_api)
  return()
endif()
add_library(sonde ${SONDE_OBJECTS})
target_link_libraries(sonde PRIVATE sonde_flags ${SONDE_OPTIONAL_LIBS})
target_include_directories(sonde INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(sonde PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
