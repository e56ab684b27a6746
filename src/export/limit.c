/* SPDX-License-Identifier: Apache-2.0 */
/* How many runs fit. The size of a run in a format is not known without writing it, so that a few
 * are written to nowhere: one, and some more, which tells what one costs and what comes on top. A
 * file that is compressed is told right by the same way. */
#include "export/limit.h"

enum { TRIED = 33, MOST_SPAN_BYTES = 4096 };

static bool count_bytes(sn_sink *sink, const void *data, size_t bytes)
{
    (void)data;
    *(uint64_t *)sink->user += bytes;
    return true;
}

sonde_status sn_export_call(const sn_exporter *format, const sn_profile *p,
                            const sn_export_options *opt, sn_sink *sink, sonde_error *err)
{
    return opt && format->write_with ? format->write_with(p, opt, sink, err)
                                     : format->write(p, sink, err);
}

static sonde_status bytes_of(const sn_exporter *format, const sn_profile *p,
                             const sn_export_options *opt, size_t runs, uint64_t *bytes,
                             sonde_error *err)
{
    sn_prof_limited few;
    *bytes = 0;
    sn_sink sink = {.write = count_bytes, .user = bytes};
    SN_TRY(sn_profile_limit(p, runs, &few, err));
    const sonde_status st = sn_export_call(format, &few.shown, opt, &sink, err);
    sn_profile_limited_free(&few);
    return st;
}

sonde_status sn_export_runs_that_fit(const sn_exporter *format, const sn_profile *p,
                                     const sn_export_options *opt, size_t *runs, size_t *all,
                                     sonde_error *err)
{
    uint64_t one = 0, some = 0;
    *runs = *all = 0;
    if (p->spans.n + p->counters.n < opt->limit / MOST_SPAN_BYTES)
        return SONDE_OK;
    SN_TRY(sn_profile_count_runs(p, all, err));
    *runs = *all;
    if (*all < 2)
        return SONDE_OK;
    const size_t tried = *all < TRIED ? *all : TRIED;
    SN_TRY(bytes_of(format, p, opt, 1, &one, err));
    SN_TRY(bytes_of(format, p, opt, tried, &some, err));
    const double each = some > one ? (double)(some - one) / (double)(tried - 1) : 0;
    const double room = opt->limit > one ? 0.97 * (double)(opt->limit - one) : 0;
    if (each * (double)(*all - 1) > room)
        *runs = 1 + (size_t)(room / each);
    return SONDE_OK;
}
