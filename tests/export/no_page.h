/* SPDX-License-Identifier: Apache-2.0 */
/* A build without Node.js has no report page. */
#ifndef SONDE_TESTS_EXPORT_NO_PAGE_H
#define SONDE_TESTS_EXPORT_NO_PAGE_H

#include <string.h>

#include "export/export.h"
#include "export/page.h"

/* Is this what such a build cannot write? */
static inline bool is_missing(const sn_exporter *row)
{
    return !sn_report_page_bytes && strcmp(row->suffix, ".html") == 0;
}

#endif
