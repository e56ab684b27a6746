# SPDX-License-Identifier: Apache-2.0
# Run with cmake -P: builds the page in FOLDER unless it is newer than its SOURCES, and writes OUTPUT, a C source that
# carries it. Several builds of one checkout share FOLDER/dist, one at a time.
set(dist ${FOLDER}/dist/report.html)

function(run what)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE code OUTPUT_VARIABLE out
    ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    string(REGEX REPLACE "\n$" "" out "${out}")
    message(WARNING "${what} failed, so the report page is as old as ${dist}, or missing:\n${out}")
    set(failed TRUE PARENT_SCOPE)
  endif()
endfunction()

function(build)
  is_stale(stale) # another build may have done it meanwhile
  if(NOT stale)
    return()
  endif()
  set(installed ${FOLDER}/node_modules/.package-lock.json)
  set(failed FALSE)
  if(NOT EXISTS ${installed} OR ${FOLDER}/package-lock.json IS_NEWER_THAN ${installed})
    run("npm ci" ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline)
  endif()
  if(NOT failed)
    run("the compiler's check" ${NPM} run --silent check)
  endif()
  if(NOT failed)
    run("the page's build" ${NODE} build.mjs)
  endif()
endfunction()

# Whether the page is missing, or older than what it is made of.
function(is_stale result)
  set(${result} TRUE PARENT_SCOPE)
  if(EXISTS ${dist})
    set(${result} FALSE PARENT_SCOPE)
    foreach(file IN LISTS SOURCES)
      if(${file} IS_NEWER_THAN ${dist})
        set(${result} TRUE PARENT_SCOPE)
      endif()
    endforeach()
  endif()
endfunction()

set(page "${PAGE}")
if(NOT page)
  is_stale(stale)
  if(stale AND (NOT NODE OR NOT NPM))
    message(STATUS "no Node.js and npm: ${dist} is used as it is, if it is there")
  elseif(stale)
    # file(LOCK) would end everything where sources may only be read.
    execute_process(COMMAND ${CMAKE_COMMAND} -E make_directory ${FOLDER}/dist ERROR_QUIET)
    execute_process(COMMAND ${CMAKE_COMMAND} -E touch ${FOLDER}/dist/lock RESULT_VARIABLE refused ERROR_QUIET)
    if(refused)
      message(WARNING "nothing can be written to ${FOLDER}/dist, so the report page is as old as ${dist}, or missing")
    else()
      file(LOCK ${FOLDER}/dist/lock GUARD PROCESS TIMEOUT 600)
      build()
    endif()
  endif()
  set(page ${dist})
elseif(NOT EXISTS ${page})
  message(FATAL_ERROR "SONDE_REPORT_PAGE names ${page}, which is not there")
endif()
set(bytes "")
if(EXISTS ${page})
  file(READ ${page} bytes HEX)
endif()
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made by cmake/embed_report.cmake. */
#include \"export/page.h\"

static const unsigned char page[] = {
${bytes}0};
const char *const sn_report_page = (const char *)page;
const size_t sn_report_page_bytes = ${size};
")
