/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a measurement: sorted, percentiles, and the figures of a latency. */
#include <stdlib.h>

#include "tool.h"

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_samples(double *samples, size_t n)
{
    qsort(samples, n, sizeof *samples, by_size);
}

double percentile(const double *sorted, size_t n, double p)
{
    const double at = p * (double)(n - 1);
    const size_t below = (size_t)at;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

void latency_of(double *ms, size_t n, latency *out)
{
    *out = (latency){.n = n};
    if (!n)
        return;
    sort_samples(ms, n);
    for (size_t i = 0; i < n; i++)
        out->mean += ms[i] / (double)n;
    out->min = ms[0];
    out->max = ms[n - 1];
    out->p50 = percentile(ms, n, 0.5);
    out->p95 = percentile(ms, n, 0.95);
    out->p99 = percentile(ms, n, 0.99);
}
