/* SPDX-License-Identifier: Apache-2.0 */
/* The report page with nothing but trends in it: made of a profile without a single run. */
#include "export/trend.h"

sonde_status sn_trend_write(const sn_trend *const *trends, size_t n, const char *format,
                            sn_allocator *alloc, sn_sink *sink, sonde_error *err)
{
    sn_profile *none;
    SN_TRY(sn_profile_new(&none, alloc, err));
    none->version = SONDE_VERSION_TEXT;
    none->model_name = n == 1 && trends[0]->title ? trends[0]->title : "trends";
    const sn_export_options options = {.format = format, .trends = trends, .n_trends = n};
    const sonde_status st = sn_export_sink(none, &options, sink, err);
    sn_profile_free(none);
    return st;
}
