/* SPDX-License-Identifier: Apache-2.0 */
/* What is done around a run when somebody looks at single runs: whether sampling records it, what
 * that costs, how long it took for the histograms, and the trace of its caller. A run that nobody
 * looks at does not come here. */
#include "api/internal.h"
#include "base/traceparent.h"

/* Beside its records a recorded run finds its ring, pins its binding and passes the time here. */
#define FIXED_COST_NS 500.0

static double cost_of(const sonde_context *c, double records)
{
    return FIXED_COST_NS +
           records * atomic_load_explicit(&c->core.trace->record_ns, memory_order_relaxed);
}

static size_t records_of_thread(const sonde_context *c)
{
    const sn_trace_ring *ring = sn_trace_ring_get(c->core.trace);
    return ring ? atomic_load_explicit((_Atomic size_t *)(uintptr_t)&ring->n, memory_order_relaxed)
                : 0;
}

/* As many as its last recorded run left; before that a guess, which bodies of control flow make too
 * low. */
static double expected_records(sonde_session *s)
{
    const uint32_t known = atomic_load_explicit(&s->records_of_run, memory_order_relaxed);
    return known ? (double)known : (double)sn_session_program(s->core)->n_steps + 2;
}

static void begin_sampling(sn_run_watch *w, sonde_session *s, sn_run_config *cfg)
{
    sonde_context *c = s->model->context;
    const bool wanted = !cfg->warmup && (!cfg->caller || (w->caller.flags & SN_CALLER_SAMPLED));
    w->sample = wanted ? sn_sampler_next(&c->records.sampler, cost_of(c, expected_records(s)))
                       : SN_SAMPLE_NONE;
    if (w->sample != SN_SAMPLE_TAKEN)
        return;
    cfg->record = cfg->sampled = true;
    w->records = records_of_thread(c);
}

/* The model's name and the session's number are known since it was made. */
static sn_series *series_of(sonde_session *s, sn_metrics *m)
{
    sn_series *series = atomic_load_explicit(&s->series, memory_order_acquire);
    if (!series && (series = sn_metrics_series(m, s->model->name, s->instance)) != NULL)
        atomic_store_explicit(&s->series, series, memory_order_release);
    return series;
}

void sn_api_watch_begin(sn_run_watch *w, sonde_session *s, const sonde_run_options *o,
                        sn_run_config *cfg)
{
    sonde_context *c = s->model->context;
    sn_metrics *metrics = atomic_load_explicit(&c->metrics, memory_order_acquire);
    *w = (sn_run_watch){.series = metrics ? series_of(s, metrics) : NULL};
    if (o->traceparent && sn_traceparent_parse(o->traceparent, &w->caller))
        cfg->caller = &w->caller;
    if (atomic_load_explicit(&c->records.sampler.every, memory_order_relaxed))
        begin_sampling(w, s, cfg);
    if (w->series) {
        sn_series_begin(w->series);
        w->turned_away = sn_pool_turned_away();
    }
    if (w->series || w->sample != SN_SAMPLE_NONE)
        w->t0 = sn_ticks();
}

void sn_api_watch_end(const sn_run_watch *w, sonde_session *s, const sn_run_config *cfg,
                      sonde_status st)
{
    if (!w->series && w->sample == SN_SAMPLE_NONE)
        return;
    sonde_context *c = s->model->context;
    const double ns =
        (double)(sn_ticks() - w->t0) * atomic_load_explicit(&c->ns_per_tick, memory_order_relaxed);
    if (w->series)
        sn_series_end(w->series, ns > 0 ? (uint64_t)ns : 0, st,
                      sn_pool_turned_away() != w->turned_away);
    if (w->sample == SN_SAMPLE_TAKEN && cfg->run_id) {
        const size_t records = records_of_thread(c) - w->records;
        if (st == SONDE_OK && records <= UINT32_MAX)
            atomic_store_explicit(&s->records_of_run, (uint32_t)records, memory_order_relaxed);
        sn_sampler_ran(&c->records.sampler, ns, cost_of(c, (double)records));
    } else if (w->sample != SN_SAMPLE_NONE) {
        sn_sampler_ran(&c->records.sampler, ns, 0);
    }
}

void sn_api_watch_clock(sonde_context *c)
{
    sn_clock clock;
    sn_clock_calibrate(&clock);
    atomic_store_explicit(&c->ns_per_tick, clock.ns_per_tick, memory_order_relaxed);
}

sonde_status sn_api_sampling(const sonde_profiler_options *o, sn_observer *observer, int *level,
                             sonde_error *err)
{
    if (o->sample_every < 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "sample_every is %d, expected 0 or more",
                       o->sample_every);
    if (!(o->max_overhead >= 0 && o->max_overhead <= 1e6))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "max_overhead is %g, expected a share such as 0.01", o->max_overhead);
    observer->sample_every = (uint32_t)o->sample_every;
    observer->max_overhead = o->max_overhead > 0 ? o->max_overhead : SN_SAMPLER_OVERHEAD;
    if (o->sample_every)
        *level = 1;
    return SONDE_OK;
}
