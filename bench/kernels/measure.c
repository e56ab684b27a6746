/* SPDX-License-Identifier: Apache-2.0 */
/* Timing on a machine that is never quite quiet: its clock and its neighbours change within
 * milliseconds, so nothing is compared with a figure taken at another time. A round gives every
 * runner a slice of some 100 us between two slices of the arithmetic peak on the same threads; the
 * share of the peak is the median over rounds of what these neighbours say, the speed comes from
 * the fastest slice. One thread is timed by the time it ran, so that others who had the core do not
 * count; several by the clock on the wall. A round in which the system took a core away is tried
 * again a few times, and does not count when there are enough others. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"
#include "compute/peaks.h"
#include "compute/tiles.h"

enum {
    PEAK_ELEMS = 2048, /* 8 KiB: in every first-level cache */
    PEAK_TASKS = 8,    /* per thread and slice */
    LEAST_TASKS = 5,   /* a thread that did fewer had to wait for its core */
    MIN_ROUNDS = 15,
    TRIES = 4, /* of a round that is disturbed */
};
static const double peak_ns = 60e3, slice_ns = 150e3, warm_ns = 1e6, most_ns = 2e9;

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now_ns(int threads)
{
    return clock_ns(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

/* Since `start`, less what asking costs: asking how long a thread ran takes a system call. */
static double since_ns(double start, int threads)
{
    static double cost[2] = {INFINITY, INFINITY};
    double *c = &cost[threads > 1];
    const double ns = now_ns(threads) - start;
    for (int i = 0; i < 50 && (i > 0 || isinf(*c)); i++) {
        const double a = now_ns(threads), b = now_ns(threads);
        *c = fmin(*c, b - a);
    }
    return fmax(ns - *c, 1);
}

static long switches(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_nivcsw : 0;
}

typedef struct peak {
    const sn_kernels *k;
    sn_peak_kernel products; /* without a kernel: of f32 */
    sn_pool *pool;
    int threads;
    float *data; /* PEAK_ELEMS for each thread */
    size_t rounds;
    bool short_handed; /* in the last slice a thread did too little */
    uint8_t *done;     /* tasks of each thread, a cache line apart */
    _Atomic int sink;
} peak;

static void peak_task(void *arg, size_t task, int worker)
{
    peak *p = arg;
    (void)task;
    p->done[worker * SN_ALIGN]++;
    const float *own = p->data + (size_t)worker * PEAK_ELEMS;
    float sum, sums[SN_ROWS_TILE * SN_ROWS_TILE];
    if (p->products.fn) {
        p->products.fn(sums, own, own, p->rounds);
        sum = sums[0];
    } else {
        sum = p->k->f32_peak(own, PEAK_ELEMS, p->rounds);
    }
    atomic_store_explicit(&p->sink, sum > 0, memory_order_relaxed);
}

/* GFLOP/s of one slice. */
static double peak_slice(peak *p)
{
    const size_t tasks = PEAK_TASKS * (size_t)p->threads;
    for (int i = 0; i < p->threads; i++)
        p->done[i * SN_ALIGN] = 0;
    const double start = now_ns(p->threads);
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    sn_pool_run_hooked(p->pool, tasks, peak_task, p, p->products.fn ? &hook : NULL);
    const double ns = since_ns(start, p->threads);
    p->short_handed = false;
    for (int i = 0; i < p->threads; i++)
        p->short_handed |= p->done[i * SN_ALIGN] < LEAST_TASKS;
    const double each = p->products.fn ? 2 * p->products.products : 4.0 * (double)PEAK_ELEMS;
    return each * (double)(p->rounds * tasks) / ns;
}

static void one_task(peak *p)
{
    if (p->products.fn)
        p->k->tiles_enter();
    peak_task(p, 0, 0);
    if (p->products.fn)
        p->k->tiles_leave();
}

static void peak_init(peak *p, const bench_setup *s, int slot, sn_arithmetic arithmetic)
{
    const sn_kernels *k = sn_kernels_get(s->cpu.flags);
    *p = (peak){.k = k,
                .products = sn_peaks_kernel(arithmetic, k),
                .pool = s->pool[slot],
                .threads = s->threads[slot],
                .rounds = 1};
    p->data = bench_alloc((size_t)p->threads * PEAK_ELEMS * sizeof(float));
    p->done = bench_alloc((size_t)p->threads * SN_ALIGN);
    double least;
    do {
        p->rounds *= 2;
        least = INFINITY;
        for (int i = 0; i < 5; i++) {
            const double start = now_ns(1);
            one_task(p);
            least = fmin(least, since_ns(start, 1));
        }
    } while (least < peak_ns / (double)PEAK_TASKS / 2);
}

double bench_peak(const bench_setup *s, sn_arithmetic arithmetic)
{
    peak p;
    double best = 0;
    peak_init(&p, s, 0, arithmetic);
    for (int i = 0; i < 200; i++)
        best = fmax(best, peak_slice(&p));
    free(p.data), free(p.done);
    return best / p.threads;
}

static double runs_ns(const bench_runner *r, size_t times)
{
    const double start = now_ns(r->threads);
    for (size_t i = 0; i < times; i++)
        r->run(r->state);
    return since_ns(start, r->threads);
}

/* One round of one runner; returns how long its slice took. What the runner before left in the
 * caches, and threads that went to sleep meanwhile, are not its fault: it runs once before. */
static double one_slice(bench_runner *r, peak *p)
{
    double ns = 0, before = 0, after = 0;
    bool disturbed = true;
    for (int i = 0; disturbed && i < TRIES; i++) {
        if (r->prepare)
            r->prepare(r->state);
        (void)peak_slice(p);
        if (r->rounds == 0 || r->ns[0] < warm_ns)
            r->run(r->state);
        const long was = switches();
        before = peak_slice(p);
        disturbed = p->short_handed;
        ns = runs_ns(r, r->inner);
        after = peak_slice(p);
        disturbed = disturbed || p->short_handed || switches() != was;
    }
    r->ns[r->rounds] = ns / (double)r->inner;
    r->peak[r->rounds] = fmax(before, after); /* what disturbs only ever takes away */
    r->bad[r->rounds++] = disturbed;
    r->disturbed += disturbed;
    return ns;
}

void bench_measure(const bench_setup *s, bench_runner *runners, size_t n)
{
    peak peaks[BENCH_MAX_RUNNERS];
    double spent[BENCH_MAX_RUNNERS] = {0};
    for (size_t k = 0; k < n; k++) {
        int slot = 0;
        while (s->threads[slot] != runners[k].threads)
            slot++;
        peak_init(&peaks[k], s, slot, runners[k].arithmetic);
        const double first = fmax(fmin(runs_ns(&runners[k], 1), runs_ns(&runners[k], 1)), 1);
        runners[k].inner = first < slice_ns ? (size_t)(slice_ns / first) : 1;
    }
    bool more = true;
    for (int round = 0; more && round < BENCH_MAX_ROUNDS; round++) {
        more = false;
        for (size_t k = 0; k < n; k++) {
            bench_runner *r = &runners[k];
            const bool enough = r->rounds >= MIN_ROUNDS && spent[k] >= s->min_ms * 1e6;
            if (enough || (r->rounds > 0 && spent[k] > most_ns))
                continue;
            spent[k] += one_slice(r, &peaks[k]);
            more = true;
        }
    }
    for (size_t k = 0; k < n; k++)
        free(peaks[k].data), free(peaks[k].done);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_spread bench_spread_of(const double *values, size_t n)
{
    if (n == 0)
        return (bench_spread){0};
    double sorted[BENCH_MAX_ROUNDS];
    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof *sorted, ascending);
    return (bench_spread){sorted[n / 4], sorted[n / 2], sorted[3 * n / 4]};
}

double bench_least(const double *values, size_t n)
{
    double least = n ? values[0] : 0;
    for (size_t i = 1; i < n; i++)
        least = fmin(least, values[i]);
    return least;
}

/* The values of undisturbed rounds, if there are some; returns how many were kept. `also` may be
 * NULL. */
static size_t keep_good(double *values, size_t n, const bench_runner *r, const bench_runner *also)
{
    size_t good = 0;
    for (size_t i = 0; i < n; i++)
        good += !r->bad[i] && !(also && also->bad[i]);
    if (good < BENCH_GOOD_ROUNDS)
        return n;
    good = 0;
    for (size_t i = 0; i < n; i++) {
        if (!r->bad[i] && !(also && also->bad[i]))
            values[good++] = values[i];
    }
    return good;
}

bench_spread bench_share(const bench_runner *r, double flops)
{
    double share[BENCH_MAX_ROUNDS];
    for (size_t i = 0; i < r->rounds; i++)
        share[i] = flops / r->ns[i] / r->peak[i];
    return bench_spread_of(share, keep_good(share, r->rounds, r, NULL));
}

bench_spread bench_speedup(const bench_runner *one, const bench_runner *r)
{
    double ratio[BENCH_MAX_ROUNDS];
    const size_t n = one->rounds < r->rounds ? one->rounds : r->rounds;
    for (size_t i = 0; i < n; i++)
        ratio[i] = one->ns[i] / r->ns[i];
    return bench_spread_of(ratio, keep_good(ratio, n, one, r));
}
