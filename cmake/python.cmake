# SPDX-License-Identifier: Apache-2.0
# The extension of the Python package, against CPython's stable ABI: one binary for 3.11 and newer. It lies in
# BUILD/python/sonde beside links to the package's files, so that PYTHONPATH=BUILD/python is all it takes to try
# the package without installing it. pyproject.toml builds wheels of the install component "python".
option(SONDE_BUILD_PYTHON "Build the extension of the Python package (needs Python's headers, 3.11 or newer)" OFF)
if(NOT SONDE_BUILD_PYTHON)
  return()
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)

set(package_dir ${CMAKE_BINARY_DIR}/python/sonde)
file(GLOB extension_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.c)
add_library(sonde_python MODULE ${extension_sources})
target_compile_definitions(sonde_python PRIVATE Py_LIMITED_API=0x030B0000)
target_link_libraries(sonde_python PRIVATE sonde sonde_flags)
# Python's own headers do not keep to our warnings; no library of Python's is linked.
target_include_directories(sonde_python SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
target_link_options(sonde_python PRIVATE LINKER:--exclude-libs,ALL)
set_target_properties(sonde_python PROPERTIES PREFIX "" OUTPUT_NAME _sonde SUFFIX .abi3.so
  LIBRARY_OUTPUT_DIRECTORY ${package_dir})

file(GLOB package_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/sonde/*)
foreach(file IN LISTS package_files)
  get_filename_component(name ${file} NAME)
  file(MAKE_DIRECTORY ${package_dir})
  file(CREATE_LINK ${file} ${package_dir}/${name} SYMBOLIC)
endforeach()

install(TARGETS sonde_python LIBRARY DESTINATION sonde COMPONENT python EXCLUDE_FROM_ALL)
if(SKBUILD)
  install(TARGETS sonde_program RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
endif()
