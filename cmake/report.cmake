# SPDX-License-Identifier: Apache-2.0
# The report page (web/report) inside the library. It is built with Node.js and npm; a source archive carries it
# built, in web/report/dist, and then needs neither. Where there is no page the library says so when it is asked for
# one: nothing else depends on it.
set(SONDE_REPORT_PAGE "" CACHE FILEPATH "A report page that is built already; empty: it is built from web/report")
if(NOT TARGET sn_export_objects)
  return()
endif()
find_program(SONDE_NODE node)
find_program(SONDE_NPM npm)
mark_as_advanced(SONDE_NODE SONDE_NPM)
file(GLOB_RECURSE report_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/report/src/*)
list(APPEND report_sources ${CMAKE_SOURCE_DIR}/web/report/build.mjs ${CMAKE_SOURCE_DIR}/web/report/package.json
  ${CMAKE_SOURCE_DIR}/web/report/package-lock.json)
set(report_code ${CMAKE_BINARY_DIR}/report_page.c)
add_custom_command(OUTPUT ${report_code}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/web/report -DPAGE=${SONDE_REPORT_PAGE} -DNODE=${SONDE_NODE}
    -DNPM=${SONDE_NPM} "-DSOURCES=${report_sources}" -DOUTPUT=${report_code}
    -P ${CMAKE_SOURCE_DIR}/cmake/embed_report.cmake
  DEPENDS ${report_sources} ${SONDE_REPORT_PAGE} ${CMAKE_SOURCE_DIR}/cmake/embed_report.cmake
  COMMENT "Building the report page" VERBATIM)
target_sources(sn_export_objects PRIVATE ${report_code})
