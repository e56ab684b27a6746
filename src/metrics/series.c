/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: each thread adds to the counters of its group with relaxed atomic additions. The list
 * of series only grows, so it is read without a lock; the lock is for those who add to it. */
#include "metrics/metrics.h"

#include <string.h>

#include "base/fork_lock.h"

/* Groups of threads; and series, beyond which new ones are counted together. */
enum { SHARDS = 8, MOST_SERIES = 1000 };

typedef struct shard {
    _Alignas(SN_ALIGN) _Atomic uint64_t started;
    _Atomic uint64_t sum_ns, alone;
    _Atomic uint64_t buckets[SN_LATENCY_BUCKETS];
    _Atomic uint64_t errors[SN_METRICS_STATUSES];
} shard;

struct sn_series {
    shard shards[SHARDS];
    char *model;
    size_t model_bytes;
    uint32_t session;
    sn_series *_Atomic next;
};

struct sn_metrics {
    sn_allocator *alloc;
    sn_fork_lock lock; /* of adding to: */
    sn_series *_Atomic first;
    size_t n;
};

/* ------------------------------------------------------------------ life */
sonde_status sn_metrics_create(sn_metrics **metrics, sn_allocator *alloc, sonde_error *err)
{
    *metrics = NULL;
    sn_metrics *m = sn_alloc_zero(alloc, sizeof *m);
    if (!m)
        return sn_fail_memory(err, sizeof *m);
    m->alloc = alloc;
    sn_fork_lock_init(&m->lock);
    *metrics = m;
    return SONDE_OK;
}

static void series_free(sn_allocator *alloc, sn_series *s)
{
    if (!s)
        return;
    sn_free(alloc, s->model, s->model_bytes);
    sn_free(alloc, s, sizeof *s);
}

void sn_metrics_free(sn_metrics *m)
{
    if (!m)
        return;
    for (sn_series *s = atomic_load(&m->first), *next; s; s = next) {
        next = atomic_load(&s->next);
        series_free(m->alloc, s);
    }
    sn_fork_lock_destroy(&m->lock);
    sn_free(m->alloc, m, sizeof *m);
}

/* ------------------------------------------------------------------ finding one */
static sn_series *find(const sn_metrics *m, const char *model, uint32_t session)
{
    for (sn_series *s = atomic_load_explicit(&m->first, memory_order_acquire); s;
         s = atomic_load_explicit(&s->next, memory_order_acquire))
        if (s->session == session && strcmp(s->model, model) == 0)
            return s;
    return NULL;
}

static sn_series *make(sn_allocator *alloc, const char *model, uint32_t session)
{
    sn_series *s = sn_alloc_zero(alloc, sizeof *s);
    const size_t bytes = strlen(model) + 1;
    if (!s || !(s->model = sn_alloc(alloc, bytes))) {
        series_free(alloc, s);
        return NULL;
    }
    memcpy(s->model, model, bytes);
    s->model_bytes = bytes;
    s->session = session;
    return s;
}

/* Adds it at the end, unless another thread was faster: *found is whose it is then. False: there
 * are enough. */
static bool add(sn_metrics *m, sn_series *made, bool always, sn_series **found)
{
    sn_fork_lock_take(&m->lock);
    *found = find(m, made->model, made->session);
    const bool room = *found || always || m->n < MOST_SERIES;
    if (!*found && room) {
        sn_series *_Atomic *at = &m->first;
        for (sn_series *s; (s = atomic_load_explicit(at, memory_order_relaxed)) != NULL;)
            at = &s->next;
        atomic_store_explicit(at, made, memory_order_release);
        m->n++;
        *found = made;
    }
    sn_fork_lock_give(&m->lock);
    return room;
}

sn_series *sn_metrics_series(sn_metrics *m, const char *model, uint32_t session)
{
    static const char others[] = "(other)";
    sn_series *found = find(m, model, session);
    for (int rest = 0; !found && rest < 2; rest++) {
        sn_series *made = rest ? make(m->alloc, others, 0) : make(m->alloc, model, session);
        if (!made)
            return NULL;
        (void)add(m, made, rest == 1, &found);
        if (found != made)
            series_free(m->alloc, made);
    }
    return found;
}

/* ------------------------------------------------------------------ counting */
static shard *shard_of(sn_series *s)
{
    static _Atomic unsigned next;
    static _Thread_local unsigned own; /* 0: not given yet */
    if (!own)
        own = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % SHARDS + 1;
    return &s->shards[own - 1];
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void sn_series_begin(sn_series *s)
{
    count(&shard_of(s)->started, 1);
}

void sn_series_end(sn_series *s, uint64_t ns, sonde_status status, bool alone)
{
    shard *own = shard_of(s);
    if (alone)
        count(&own->alone, 1);
    if (status != SONDE_OK) {
        count(&own->errors[(unsigned)status < SN_METRICS_STATUSES ? status : SONDE_INTERNAL], 1);
        return;
    }
    count(&own->sum_ns, ns);
    count(&own->buckets[sn_latency_bucket(ns)], 1);
}

/* ------------------------------------------------------------------ reading */
static uint64_t read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)counter, memory_order_relaxed);
}

const sn_series *sn_series_next(const sn_metrics *m, const sn_series *s)
{
    return s ? atomic_load_explicit((sn_series * _Atomic *)(uintptr_t)&s->next,
                                    memory_order_acquire)
             : atomic_load_explicit((sn_series * _Atomic *)(uintptr_t)&m->first,
                                    memory_order_acquire);
}

static uint64_t finished(const shard *from)
{
    uint64_t n = 0;
    for (size_t k = 0; k < SN_LATENCY_BUCKETS; k++)
        n += read(&from->buckets[k]);
    for (size_t k = 0; k < SN_METRICS_STATUSES; k++)
        n += read(&from->errors[k]);
    return n;
}

/* What has ended is read before what has begun, so that no run ends before it begins. A thread may
 * end a run that it began before a fork; sums of all groups count, not those of one. */
void sn_series_sum(const sn_series *s, sn_series_sums *sums)
{
    uint64_t started = 0, ended = 0;
    *sums = (sn_series_sums){.model = s->model, .session = s->session};
    for (size_t i = 0; i < SHARDS; i++) {
        const shard *from = &s->shards[i];
        for (size_t k = 0; k < SN_LATENCY_BUCKETS; k++)
            sums->buckets[k] += read(&from->buckets[k]);
        for (size_t k = 0; k < SN_METRICS_STATUSES; k++)
            sums->errors[k] += read(&from->errors[k]);
        sums->sum_ns += read(&from->sum_ns);
        sums->alone += read(&from->alone);
    }
    for (size_t k = 0; k < SN_LATENCY_BUCKETS; k++)
        ended += sums->buckets[k];
    for (size_t k = 0; k < SN_METRICS_STATUSES; k++)
        ended += sums->errors[k];
    atomic_thread_fence(memory_order_acquire);
    for (size_t i = 0; i < SHARDS; i++)
        started += read(&s->shards[i].started);
    sums->in_flight = started > ended ? started - ended : 0;
}

void sn_metrics_after_fork(sn_metrics *m)
{
    for (sn_series *s = m ? atomic_load(&m->first) : NULL; s; s = atomic_load(&s->next))
        for (size_t i = 0; i < SHARDS; i++)
            atomic_store(&s->shards[i].started, finished(&s->shards[i]));
}
