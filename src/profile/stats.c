/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a set of samples. Percentiles interpolate linearly between the two samples around
 * the rank q·(n-1), as numpy does by default; the deviation is the sample's (divided by n-1). */
#include <math.h>
#include <stdlib.h>

#include "profile/profile.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *sorted, size_t n, double q)
{
    double rank = q * (double)(n - 1);
    size_t below = (size_t)rank;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (rank - (double)below);
}

void sn_prof_stats_of(double *samples, size_t n, sn_prof_stats *out)
{
    *out = (sn_prof_stats){.count = n};
    if (n == 0)
        return;
    qsort(samples, n, sizeof *samples, ascending);
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += samples[i];
    double mean = total / (double)n, squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (samples[i] - mean) * (samples[i] - mean);
    out->total = total;
    out->mean = mean;
    out->stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    out->min = samples[0];
    out->max = samples[n - 1];
    out->p50 = percentile(samples, n, 0.50);
    out->p90 = percentile(samples, n, 0.90);
    out->p95 = percentile(samples, n, 0.95);
    out->p97 = percentile(samples, n, 0.97);
    out->p99 = percentile(samples, n, 0.99);
    out->p999 = percentile(samples, n, 0.999);
}
