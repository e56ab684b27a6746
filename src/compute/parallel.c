/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges over threads; see parallel.h. */
#include "compute/parallel.h"

enum { GRAIN = 32768 }; /* additions worth another thread */

typedef struct range_job {
    sn_range_fn fn;
    void *arg;
    size_t n, step;
} range_job;

static void range_task(void *arg, size_t task, int worker)
{
    const range_job *j = arg;
    (void)worker;
    size_t lo = task * j->step, hi = j->n - lo < j->step ? j->n : lo + j->step;
    j->fn(j->arg, lo, hi);
}

void sn_parallel_range(sn_pool *pool, size_t n, size_t cost, sn_range_fn fn, void *arg)
{
    if (n == 0)
        return;
    size_t threads = (size_t)sn_pool_threads(pool);
    size_t step = cost > 0 && cost < GRAIN ? GRAIN / cost : 1; /* at least this much each */
    size_t fair = n / (threads * 4) + 1;
    if (step < fair)
        step = fair;
    if (threads < 2 || step >= n) {
        fn(arg, 0, n);
        return;
    }
    /* Pieces of single elements begin at multiples of 64: no two threads share a cache line. */
    if (step >= 1024)
        step = (step + 63) / 64 * 64;
    range_job job = {fn, arg, n, step};
    sn_pool_run(pool, (n + step - 1) / step, range_task, &job);
}
