/* SPDX-License-Identifier: Apache-2.0 */
/* Sums are atomic numbers and no lock guards them together: a thread may see one sum with another's
 * run and one without, which moves the share by a run of thousands. A run is begun only if
 * recording would stay below the bound with it, so the first candidate, for which nothing was saved
 * up yet, is never recorded. */
#include "records/sampler.h"

/* Sums are halved when the time of runs reaches this: what counts is the last minute or so of
 * running, not what a quiet night has saved up. */
#define WINDOW_NS 60e9

static void add(_Atomic double *sum, double more)
{
    double old = atomic_load_explicit(sum, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(sum, &old, old + more, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static void halve(_Atomic double *sum)
{
    double old = atomic_load_explicit(sum, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(sum, &old, old / 2, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

sn_sampling sn_sampler_next(sn_sampler *s, double cost_ns)
{
    const uint32_t every = atomic_load_explicit(&s->every, memory_order_relaxed);
    if (!every)
        return SN_SAMPLE_NONE;
    const uint64_t number = atomic_fetch_add_explicit(&s->runs, 1, memory_order_relaxed);
    if (number % every)
        return SN_SAMPLE_NONE;
    const double bound = atomic_load_explicit(&s->max_overhead, memory_order_relaxed);
    const double spent = atomic_load_explicit(&s->cost_ns, memory_order_relaxed);
    const double ran = atomic_load_explicit(&s->run_ns, memory_order_relaxed);
    const bool taken = bound >= 1 || spent + cost_ns <= bound * ran;
    atomic_fetch_add_explicit(taken ? &s->sampled : &s->skipped, 1, memory_order_relaxed);
    return taken ? SN_SAMPLE_TAKEN : SN_SAMPLE_SKIPPED;
}

void sn_sampler_ran(sn_sampler *s, double run_ns, double cost_ns)
{
    const double every = (double)atomic_load_explicit(&s->every, memory_order_relaxed);
    const double own_ns = run_ns > cost_ns ? run_ns - cost_ns : 0;
    add(&s->cost_ns, cost_ns);
    add(&s->run_ns, own_ns * every);
    double ran = atomic_load_explicit(&s->run_ns, memory_order_relaxed);
    if (ran >= WINDOW_NS &&
        atomic_compare_exchange_strong_explicit(&s->run_ns, &ran, ran / 2, memory_order_relaxed,
                                                memory_order_relaxed))
        halve(&s->cost_ns); /* one thread alone */
}

double sn_sampler_overhead(const sn_sampler *s)
{
    const double ran = atomic_load_explicit(&s->run_ns, memory_order_relaxed);
    return ran > 0 ? atomic_load_explicit(&s->cost_ns, memory_order_relaxed) / ran : 0;
}
