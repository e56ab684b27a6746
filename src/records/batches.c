/* SPDX-License-Identifier: Apache-2.0 */
/* Records ► profile batch by batch, while more are being made: what belongs to a run that has not
 * ended waits for a later batch. */
#include <string.h>

#include "records/builder.h"

sonde_status sn_builder_init(sn_profile_builder *b, sn_records *r, uint64_t since, int level,
                             sonde_error *err)
{
    *b = (sn_profile_builder){.r = r, .level = level, .streaming = true};
    SN_TRY(sn_profile_new(&b->p, r->ctx->alloc, err));
    sn_arena_init(&b->batch, r->ctx->alloc);
    b->texts = &b->batch;
    sn_clock_calibrate(&b->clock);
    sn_clock_track_init(&b->track, &b->clock);
    b->base_ns = sn_clock_ns(&b->clock, since);
    return sn_builder_describe(b, level, err);
}

/* Whether an event must wait for the end of its run. A slice does not know its run: it waits until
 * the thread that called for it has written the step it lies in, and then with that step. */
static bool must_wait(const sn_profile_builder *b, const sn_event *e, uint64_t waits_since)
{
    const sn_trace_rec *r = &e->rec;
    if (r->kind != SN_TRACE_SLICE)
        return r->run && !sn_builder_root(b, r->run);
    for (size_t i = 0; i < b->written.n && i < b->p->threads_seen.n; i++)
        if (b->p->threads_seen.data[i].id == r->parent)
            return r->t1 > b->written.data[i] || r->t0 >= waits_since;
    return false;
}

/* Up to when each thread has written its steps; the earliest start of those that wait. */
static bool look_ahead(sn_profile_builder *b, uint64_t *waits_since)
{
    *waits_since = UINT64_MAX;
    if (b->p->level < 3)
        return true; /* no slices */
    while (b->written.n < b->p->threads_seen.n)
        if (!sn_vec_push(&b->written, b->p->alloc, 0))
            return false;
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_event *e = &b->events.data[i];
        const uint16_t kind = e->rec.kind;
        uint64_t *written = &b->written.data[e->thread];
        if ((kind == SN_TRACE_STEP || kind == SN_TRACE_RUN || kind == SN_TRACE_EXEC) &&
            e->rec.t1 > *written)
            *written = e->rec.t1;
        if (kind == SN_TRACE_STEP && e->rec.t0 < *waits_since && must_wait(b, e, 0))
            *waits_since = e->rec.t0;
    }
    return true;
}

/* Events that must wait go to `waiting`, which has room for all. */
static size_t hold_back(sn_profile_builder *b, sn_event *waiting, uint64_t waits_since)
{
    size_t kept = 0, held = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        if (must_wait(b, &b->events.data[i], waits_since))
            waiting[held++] = b->events.data[i];
        else
            b->events.data[kept++] = b->events.data[i];
    }
    b->events.n = kept;
    return held;
}

/* The earliest that a run under way may still have to say; they wait in order of start. */
static uint64_t earliest(const sn_event *waiting, size_t n, uint64_t until)
{
    for (size_t i = 0; i < n; i++)
        if (waiting[i].rec.run)
            return waiting[i].rec.t0 < until ? waiting[i].rec.t0 : until;
    return until;
}

sonde_status sn_builder_batch(sn_profile_builder *b, size_t keep, uint64_t until, sonde_error *err)
{
    sn_allocator *alloc = b->p->alloc;
    const size_t n = b->events.n;
    uint64_t now_ticks, now_ns;
    sn_clock_read(&now_ticks, &now_ns);
    sn_clock_track_follow(&b->track, now_ticks, now_ns);
    b->p->spans.n = b->p->counters.n = 0;
    sn_arena_reset(&b->batch);
    b->runs.n = b->controls.n = b->operators.n = 0;
    sn_builder_sort(b);
    SN_TRY(sn_builder_list_runs(b, err));
    uint64_t waits_since;
    sn_event *waiting = sn_alloc(alloc, n * sizeof *waiting);
    if (!waiting || !look_ahead(b, &waits_since)) {
        sn_free(alloc, waiting, n * sizeof *waiting);
        return sn_fail_memory(err, n * sizeof *waiting);
    }
    size_t held = hold_back(b, waiting, waits_since);
    sn_builder_filter(b, 0);
    sonde_status st = sn_builder_list_tables(b, err);
    if (st == SONDE_OK && !*b->p->model_name)
        sn_builder_name_model(b);
    if (held > keep) { /* a run without end, or one whose record was lost */
        b->p->dropped += held;
        held = 0;
    }
    if (st == SONDE_OK) {
        const bool last = until == UINT64_MAX;
        sn_builder_number_runs(b);
        st = sn_builder_add_spans(b, last ? until : earliest(waiting, held, until), err);
    }
    if (held)
        memcpy(b->events.data, waiting, held * sizeof *waiting); /* there was room for n */
    b->events.n = held;
    sn_free(alloc, waiting, n * sizeof *waiting);
    return st;
}

void sn_builder_free(sn_profile_builder *b)
{
    if (!b->r)
        return;
    sn_builder_free_tables(b);
    sn_arena_free(&b->batch);
    sn_profile_free(b->p);
    *b = (sn_profile_builder){.r = NULL};
}
