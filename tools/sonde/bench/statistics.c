/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to figures. Times of a computer are skewed, so medians and percentiles come first.
 * What is compared are turns, in which the machine was the same for both. The unit of an interval
 * is a round, not a turn or a sample: samples of one process share its memory layout, which the
 * next process does not, and an interval that forgot that would be too narrow for a second run to
 * fall into. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "tool.h"

void bench_series_add(bench_series *s, double value, bench_when when)
{
    s->value = grow(s->value, s->n, sizeof *s->value);
    s->when = grow(s->when, s->n, sizeof *s->when);
    s->value[s->n] = value;
    s->when[s->n++] = when;
}

void bench_series_free(bench_series *s)
{
    free(s->value);
    free(s->when);
    *s = (bench_series){.n = 0};
}

static void mean_of(const double *x, size_t n, double *mean, double *stddev)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    *mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

/* The scaled median absolute deviation: sigma, for a normal distribution, whatever a few do. */
static double deviation_of(const double *x, size_t n, double median)
{
    double *away = need(malloc((n + 1) * sizeof *away));
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(x[i] - median);
    sort_samples(away, n);
    const double deviation = n ? 1.4826 * percentile(away, n, 0.5) : 0;
    free(away);
    return deviation;
}

/* The samples that are no outliers stand together in a sorted array: *kept of them from *first. */
static void keep(const double *sorted, size_t n, double median, size_t *first, size_t *kept)
{
    const double limit = 5 * deviation_of(sorted, n, median);
    *first = 0;
    *kept = n;
    if (!(limit > 0)) /* most samples are equal: nothing can be said */
        return;
    while (*kept && sorted[*first] < median - limit) {
        ++*first;
        --*kept;
    }
    while (*kept && sorted[*first + *kept - 1] > median + limit)
        --*kept;
}

bench_stats bench_stats_of(const bench_series *s)
{
    bench_stats out = {.n = s->n};
    if (!s->n)
        return out;
    double *x = need(malloc(s->n * sizeof *x));
    memcpy(x, s->value, s->n * sizeof *x);
    sort_samples(x, s->n);
    out.min = x[0];
    out.max = x[s->n - 1];
    mean_of(x, s->n, &out.mean, &out.stddev);
    out.p50 = percentile(x, s->n, 0.5);
    out.p90 = percentile(x, s->n, 0.9);
    out.p95 = percentile(x, s->n, 0.95);
    out.p99 = percentile(x, s->n, 0.99);
    out.p999 = percentile(x, s->n, 0.999);
    size_t first = 0, kept = 0;
    keep(x, s->n, out.p50, &first, &kept);
    out.outliers = s->n - kept;
    mean_of(x + first, kept, &out.kept_mean, &out.kept_stddev);
    free(x);
    return out;
}

/* ------------------------------------------------------------------ ratios */
/* The first sample that is not before `at`; n: all are. */
static size_t first_from(const bench_series *s, bench_when at)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const bench_when *w = &s->when[middle];
        if (w->round < at.round || (w->round == at.round && w->turn < at.turn))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The median of one turn; false: it has no samples. */
static bool turn_median(const bench_series *s, bench_when at, double *median)
{
    const size_t from = first_from(s, at);
    const size_t n = first_from(s, (bench_when){at.round, at.turn + 1}) - from;
    double *x = need(malloc((n + 1) * sizeof *x));
    for (size_t i = 0; i < n; i++)
        x[i] = s->value[from + i];
    sort_samples(x, n);
    *median = n ? percentile(x, n, 0.5) : 0;
    free(x);
    return n && *median > 0;
}

static int last_turn_of(const bench_series *s)
{
    int last = -1;
    for (size_t i = 0; i < s->n; i++)
        last = s->when[i].turn > last ? s->when[i].turn : last;
    return last;
}

/* The logarithms of the ratios of the turns of a round that both have, appended. */
static size_t round_logs(const bench_series *of, const bench_series *to, int round, int last_turn,
                         double *logs)
{
    size_t n = 0;
    for (int turn = 0; turn <= last_turn; turn++) {
        const bench_when at = {round, turn};
        double a = 0, b = 0;
        if (turn_median(of, at, &a) && turn_median(to, at, &b))
            logs[n++] = log(a / b);
    }
    return n;
}

/* The 97.5th percentile of Student's distribution: a table, then its expansion around the normal
 * distribution's (Abramowitz and Stegun 26.7.5), which is good to a thousandth from there on. */
static double student(size_t freedom)
{
    static const double few[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
    if (freedom <= sizeof few / sizeof few[0])
        return few[freedom - 1];
    const double z = 1.959963984540054, n = (double)freedom;
    return z + (z * z * z + z) / (4 * n) +
           (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / (96 * n * n);
}

/* Half the width of the 95 % interval of a mean; NAN: fewer than two numbers. */
static double half_width(double stddev, size_t n)
{
    return n > 1 ? student(n - 1) * stddev / sqrt((double)n) : NAN;
}

bench_ratio bench_ratio_of(const bench_series *of, const bench_series *to)
{
    enum { FEW_ROUNDS = 3, ENOUGH_TURNS = 6 };
    const double median_to_mean = 1.2533; /* sqrt(pi / 2): error of a median to that of a mean */
    const int rounds = of->n ? of->when[of->n - 1].round + 1 : 0, last_turn = last_turn_of(of);
    double *logs = need(malloc((of->n + (size_t)last_turn + 2) * sizeof *logs));
    double *medians = need(malloc(((size_t)rounds + 1) * sizeof *medians));
    size_t n = 0, turns = 0;
    for (int round = 0; round < rounds; round++) {
        const size_t more = round_logs(of, to, round, last_turn, logs + turns);
        sort_samples(logs + turns, more);
        if (more)
            medians[n++] = percentile(logs + turns, more, 0.5);
        turns += more;
    }
    double mean = 0, deviation = 0;
    mean_of(medians, n, &mean, &deviation);
    double half = half_width(deviation, n);
    if (n < FEW_ROUNDS && turns >= ENOUGH_TURNS) {
        sort_samples(logs, turns);
        deviation = deviation_of(logs, turns, percentile(logs, turns, 0.5));
        half = median_to_mean * half_width(deviation, turns);
    }
    free(medians);
    free(logs);
    return (bench_ratio){
        .known = n > 0, .value = exp(mean), .low = exp(mean - half), .high = exp(mean + half)};
}

bool bench_same_table(const bench_result *a, const bench_result *b)
{
    return strcmp(a->model, b->model) == 0 && a->threads == b->threads && a->batch == b->batch &&
           a->instances == b->instances;
}

bool bench_ratio_unclear(const bench_ratio *r)
{
    return r->high > 10 * r->value; /* false for an interval that is not known */
}
