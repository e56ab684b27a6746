/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a context: begun once and kept until it goes, so that runs may read the pointer
 * without a lock. */
#include "sonde/experimental/metrics.h"
#include "api/internal.h"

static void after_fork(sonde_context *c)
{
    sn_metrics_after_fork(atomic_load(&c->metrics));
}

static void end_life(sonde_context *c)
{
    sn_metrics_free(atomic_exchange(&c->metrics, NULL));
}

const sn_context_observer sn_metrics_observer = {.forked = after_fork, .ending = end_life};

/* With the records' lock held. */
static sonde_status begin(sonde_context *c, sonde_error *err)
{
    sn_metrics *made = NULL;
    if (atomic_load(&c->metrics))
        return SONDE_OK;
    sn_api_watch_clock(c);
    SN_TRY(sn_metrics_create(&made, &c->alloc, err));
    atomic_store(&c->metrics, made);
    return SONDE_OK;
}

sonde_status sonde_metrics_start(sonde_context *context, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    const sonde_status st = begin(c, err);
    pthread_mutex_unlock(&c->records.lock);
    sonde_context_release(c);
    return st;
}

/* With the records' lock held: models come and go, and rings may be cleared. */
static sn_metrics_facts facts_of(sonde_context *c)
{
    const sn_sampler *sampler = &c->records.sampler;
    sn_metrics_facts f = {
        .version = SONDE_VERSION_TEXT,
        .cpu = c->core.cpu.model,
        .cpu_level = sn_cpu_level_name(c->core.cpu.flags),
        .threads = c->core.threads,
        .pool_busy = sn_pool_is_busy(c->core.pool),
        .live_bytes = atomic_load_explicit(&c->alloc.live_bytes, memory_order_relaxed),
        .peak_bytes = atomic_load_explicit(&c->alloc.peak_bytes, memory_order_relaxed),
        .limit_bytes = c->alloc.limit_bytes,
        .packed_bytes = atomic_load_explicit(&c->core.packed_bytes, memory_order_relaxed),
        .frame_bytes = atomic_load_explicit(&c->core.frame_bytes, memory_order_relaxed),
        .sampled = atomic_load_explicit(&c->records.sampler.sampled, memory_order_relaxed),
        .sampling_skipped = atomic_load_explicit(&c->records.sampler.skipped, memory_order_relaxed),
        .sample_every = atomic_load_explicit(&c->records.sampler.every, memory_order_relaxed),
        .sampling_overhead = sn_sampler_overhead(sampler)};
    for (const sn_known_model *m = c->records.models; m; m = m->next)
        for (size_t i = 0; i < m->model->files.n; i++)
            if (m->model->files.data[i]->mapped)
                f.mapped_bytes += m->model->files.data[i]->bytes;
    for (const sn_trace_ring *r = atomic_load(&c->core.trace->rings); r; r = r->next) {
        const uint64_t tail =
            atomic_load_explicit((_Atomic size_t *)(uintptr_t)&r->tail, memory_order_acquire);
        f.records_held +=
            atomic_load_explicit((_Atomic size_t *)(uintptr_t)&r->n, memory_order_acquire) - tail;
        f.records_dropped +=
            atomic_load_explicit((_Atomic size_t *)(uintptr_t)&r->dropped, memory_order_relaxed);
    }
    return f;
}

typedef struct caller_sink {
    void (*write)(void *user, const char *data, size_t size);
    void *user;
} caller_sink;

static bool write_to_caller(sn_sink *sink, const void *data, size_t bytes)
{
    const caller_sink *to = sink->user;
    to->write(to->user, data, bytes);
    return true;
}

sonde_status sonde_metrics_write(sonde_context *context, const sonde_metrics_options *options,
                                 void (*write)(void *user, const char *data, size_t size),
                                 void *user, sonde_error *err)
{
    sonde_metrics_options o;
    SN_OPTIONS(o, options, err);
    SN_REQUIRE(write, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    sonde_status st = begin(c, err);
    const sn_metrics_facts facts = facts_of(c);
    sn_api_watch_clock(c); /* the longer it is looked at, the better it is known */
    pthread_mutex_unlock(&c->records.lock);
    caller_sink to = {.write = write, .user = user};
    sn_sink sink = {.write = write_to_caller, .user = &to};
    if (st == SONDE_OK)
        st = sn_metrics_write(atomic_load(&c->metrics), &facts, o.openmetrics != 0, &sink, err);
    sonde_context_release(c);
    return st;
}
