/* SPDX-License-Identifier: Apache-2.0 */
/* The report page: an HTML file made from web/report, and a profile in it. Its data are described
 * in docs/profile-format.md. */
#ifndef SN_EXPORT_PAGE_H
#define SN_EXPORT_PAGE_H

#include "export/writer.h"

/* The page with its one mark "<!--profile-->", made when sonde was built; 0 bytes where it could
 * not be (cmake/report.cmake). */
extern const char *const sn_report_page; /* ends with a 0 */
extern const size_t sn_report_page_bytes;

/* The profile as the page reads it: one line of JSON, then columns; not compressed. */
sonde_status sn_page_data(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                          sonde_error *err);
/* The steps, rows and lives of it, members of the JSON's object (page_tables.c). */
sonde_status sn_page_tables(const sn_profile *p, sn_writer *w, sonde_error *err);
/* The value of "trends" (trend_page.c). */
void sn_page_trends(sn_writer *w, const sn_trend *const *trends, size_t n);
/* Both profiles side by side, as JSON (page_comparison.c). */
sonde_status sn_page_comparison(const sn_profile *before, const sn_profile *now,
                                const sn_export_options *opt, sn_sink *sink, sonde_error *err);

#endif
