/* SPDX-License-Identifier: Apache-2.0 */
/* Observers, and the two ways of forgetting: with nothing under way the rings are rewound and
 * bindings let go; otherwise the places of records older than anybody wants are freed. */
#include "records/records.h"

#include "exec/session.h"

void sn_records_init(sn_records *r, sn_context *ctx, sn_machine *machine)
{
    *r = (sn_records){.ctx = ctx, .machine = machine};
    pthread_mutex_init(&r->lock, NULL);
}

void sn_records_fini(sn_records *r)
{
    pthread_mutex_destroy(&r->lock);
}

void sn_records_enter(sn_records *r)
{
    atomic_fetch_add(&r->in_flight, 1);
    while (atomic_load(&r->clearing)) {
        /* Step back until the records are gone: whoever clears holds the lock. */
        atomic_fetch_sub(&r->in_flight, 1);
        pthread_mutex_lock(&r->lock);
        pthread_mutex_unlock(&r->lock);
        atomic_fetch_add(&r->in_flight, 1);
    }
}

void sn_records_leave(sn_records *r)
{
    atomic_fetch_sub(&r->in_flight, 1);
}

/* ------------------------------------------------------------------ observers */
void sn_records_add(sn_records *r, sn_observer *o)
{
    o->next = r->observers;
    r->observers = o;
}

void sn_records_remove(sn_records *r, sn_observer *o)
{
    for (sn_observer **at = &r->observers; *at; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
}

uint64_t sn_records_wanted(const sn_records *r)
{
    uint64_t since = SN_NO_RECORDS;
    for (const sn_observer *o = r->observers; o; o = o->next)
        since = o->since < since ? o->since : since;
    return since;
}

static sonde_status set_sampling(sn_records *r, uint32_t every, double overhead, sonde_error *err)
{
#if SONDE_RECORDER
    (void)err;
    if (every)
        sn_exec_measure_cost(r->ctx);
    atomic_store(&r->sampler.max_overhead, overhead);
    atomic_store(&r->sampler.every, every);
    return SONDE_OK;
#else
    (void)r;
    (void)overhead;
    return every ? sn_fail(err, SONDE_UNSUPPORTED, "this build of sonde has no recorder")
                 : SONDE_OK;
#endif
}

sonde_status sn_records_set_level(sn_records *r, sonde_error *err)
{
    int level = 0;
    bool memory = false;
    uint32_t every = 0;
    double overhead = 0;
    for (const sn_observer *o = r->observers; o; o = o->next) {
        memory |= o->memory;
        if (!o->level || !o->sample_every) {
            level = o->level > level ? o->level : level;
            continue;
        }
        every = every && every < o->sample_every ? every : o->sample_every;
        overhead = o->max_overhead > overhead ? o->max_overhead : overhead;
    }
    SN_TRY(set_sampling(r, every, overhead, err));
    atomic_store(&r->ctx->trace->memory, memory);
    return sn_exec_record(r->ctx, level, err);
}

/* ------------------------------------------------------------------ forgetting */
void sn_records_forget(sn_records *r)
{
    if (r->streams)
        return; /* they free what they have written, unless others want it */
    sn_trace *trace = r->ctx->trace;
    const uint64_t since = sn_records_wanted(r);
    bool all = false;
    if (since == SN_NO_RECORDS) {
        atomic_store(&r->clearing, 1);
        all = atomic_load(&r->in_flight) == 0;
        if (all) {
            sn_trace_set_cap(trace, trace->reserved_cap); /* a stream had less */
            sn_exec_clear(r->ctx);
        }
        atomic_store(&r->clearing, 0);
    }
    if (!all)
        sn_trace_forget(trace, since);
}

void sn_records_shrink(sn_records *r, size_t cap)
{
    if (r->streams || sn_records_wanted(r) != SN_NO_RECORDS)
        return;
    atomic_store(&r->clearing, 1);
    if (atomic_load(&r->in_flight) == 0)
        sn_trace_set_cap(r->ctx->trace, cap);
    atomic_store(&r->clearing, 0);
}

void sn_records_read_begin(sn_records *r, sn_observer *reader, uint64_t since)
{
    *reader = (sn_observer){.since = since, .ends_at_fork = true};
    sn_records_add(r, reader);
}

void sn_records_read_end(sn_records *r, sn_observer *reader)
{
    pthread_mutex_lock(&r->lock);
    sn_records_remove(r, reader);
    sn_records_forget(r);
    pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------ models */
void sn_records_add_model(sn_records *r, sn_known_model *m)
{
    pthread_mutex_lock(&r->lock);
    m->next = r->models;
    r->models = m;
    pthread_mutex_unlock(&r->lock);
}

void sn_records_remove_model(sn_records *r, sn_known_model *m)
{
    pthread_mutex_lock(&r->lock);
    for (sn_known_model **at = &r->models; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------ forks */
void sn_records_before_fork(sn_records *r)
{
    pthread_mutex_lock(&r->lock);
    sn_exec_before_fork(r->ctx);
}

void sn_records_after_fork(sn_records *r, bool child)
{
    if (child) {
        sn_trace_after_fork(r->ctx->trace);
        atomic_store(&r->in_flight, 0);
        atomic_store(&r->clearing, 0);
        r->fork_ticks = sn_ticks();
        r->streams = NULL; /* the parent's threads write the parent's traces */
        for (sn_observer **at = &r->observers; *at;)
            if ((*at)->ends_at_fork)
                *at = (*at)->next;
            else
                at = &(*at)->next;
    }
    sn_exec_after_fork(r->ctx);
    pthread_mutex_unlock(&r->lock);
}
