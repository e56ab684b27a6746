/* SPDX-License-Identifier: Apache-2.0 */
/* How often a model runs, and in how many instances at once. */
#include "tool.h"

#define AT(field) offsetof(measuring_options, field)

const option_row measuring_option_rows[] = {
    {'n', "iterations", OPT_INT, AT(iterations), "N",
     "number of measured runs, after the warm-up (run: 1, or each image once)"},
    {'w', "warmup", OPT_INT, AT(warmup), "N", "number of warm-up runs, which are not measured"},
    {0, "w", OPT_INT, AT(warmup), "N", NULL},
    {0, "duration", OPT_REAL, AT(duration_s), "S",
     "measure for S seconds if -n is not given (profile, bench: 2; run: not set)"},
    {0, "instances", OPT_INT, AT(instances), "N",
     "sessions that run in parallel in one process and share the cores (default: 1)"},
    {0}};

int measuring_options_check(void *values)
{
    const measuring_options *m = values;
    if (m->duration_s > 1e6)
        return fail_usage("--duration %g is too long; the maximum is 1000000 seconds",
                          m->duration_s);
    if (m->instances == 0)
        return fail_usage("--instances 0: nothing would run");
    if (m->instances > 1024)
        return fail_usage("--instances %lld is too many; the maximum is 1024",
                          (long long)m->instances);
    return -1;
}

double duration_ms(const measuring_options *m)
{
    return (m->duration_s >= 0 ? m->duration_s : 2) * 1e3;
}
