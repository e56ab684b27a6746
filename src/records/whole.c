/* SPDX-License-Identifier: Apache-2.0 */
/* All records at once ► one profile. */
#include "records/builder.h"

static bool is_measured_run(const sn_trace_rec *r)
{
    return r->kind == SN_TRACE_RUN && !r->parent && !(r->flags & (SN_TRACE_WARMUP | SN_TRACE_CUT));
}

static sonde_status gather(sn_profile_builder *b, uint64_t since, size_t most, sonde_error *err)
{
    sn_profile *p = b->p;
    const sn_gap gap = sn_builder_gap(b->r->ctx->trace, since, most);
    size_t left_out = 0; /* measured runs */
    for (const sn_trace_ring *r = atomic_load(&b->r->ctx->trace->rings); r; r = r->next) {
        const size_t n = atomic_load_explicit(&r->n, memory_order_acquire);
        p->dropped += atomic_load(&r->dropped);
        const uint32_t thread = sn_builder_thread(b, r);
        /* A thread writes a record when its interval ends: the ones wanted are the last ones. */
        const size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        size_t first = n;
        while (first > tail && r->recs[(first - 1) & (r->cap - 1)].t1 >= since)
            first--;
        size_t kept = gap.to ? 0 : n - first;
        for (size_t i = gap.to ? first : n; i < n; i++)
            kept += !sn_gap_holds(&gap, &r->recs[i & (r->cap - 1)]);
        if (thread == UINT32_MAX || !sn_vec_reserve(&b->events, p->alloc, kept))
            return sn_fail_memory(err, kept * sizeof(sn_event));
        for (size_t i = first; i < n; i++) {
            const sn_trace_rec *rec = &r->recs[i & (r->cap - 1)];
            if (sn_gap_holds(&gap, rec))
                left_out += is_measured_run(rec);
            else if (rec->t0 >= since && rec->t1 >= rec->t0)
                b->events.data[b->events.n++] = (sn_event){.rec = *rec, .thread = thread};
        }
    }
    if (left_out)
        SN_TRY(sn_gap_note(p, left_out, err));
    if (b->events.n >= UINT32_MAX / 2)
        return sn_fail(err, SONDE_LIMIT, "%zu records are too many for one profile", b->events.n);
    sn_builder_sort(b);
    return SONDE_OK;
}

sonde_status sn_records_profile_of(sn_records *r, const sn_records_request *q, sn_profile **profile,
                                   sonde_error *err)
{
    sn_profile_builder b = {.r = r,
                            .level = q->level,
                            .windows = q->windows,
                            .n_windows = q->n_windows,
                            .only_sampled = q->sampled,
                            .brief = q->brief};
    sn_context *ctx = b.r->ctx;
    *profile = NULL;
    SN_TRY(sn_profile_new(&b.p, ctx->alloc, err));
    b.texts = &b.p->arena;
    sn_clock_calibrate(&b.clock);
    sonde_status st = gather(&b, q->since, q->most, err);
    if (st == SONDE_OK)
        st = sn_builder_list_runs(&b, err);
    if (st == SONDE_OK) {
        sn_builder_filter(&b, q->only_run);
        const uint64_t first = b.events.n ? b.events.data[0].rec.t0 : q->since;
        b.base_ns = sn_clock_ns(&b.clock, q->only_run || !q->since ? first : q->since);
        st = sn_builder_list_tables(&b, err);
    }
    if (st == SONDE_OK) {
        sn_builder_name_model(&b);
        st = sn_builder_describe(&b, b.level, err);
    }
    if (st == SONDE_OK) {
        if (!b.brief)
            sn_records_describe_memory(b.p, b.r);
        sn_builder_number_runs(&b);
        st = sn_builder_add_spans(&b, UINT64_MAX, err);
    }
    if (st == SONDE_OK)
        st = sn_profile_link_records(b.p, err);
    if (st == SONDE_OK && b.p->lives.n)
        st = sn_records_add_body_lives(b.p, err);
    sn_builder_free_tables(&b);
    if (st != SONDE_OK) {
        sn_profile_free(b.p);
        return st;
    }
    *profile = b.p;
    return SONDE_OK;
}

sonde_status sn_records_profile(sn_records *r, uint64_t since, uint32_t only_run, int level,
                                sn_profile **profile, sonde_error *err)
{
    const sn_records_request request = {.since = since, .only_run = only_run, .level = level};
    return sn_records_profile_of(r, &request, profile, err);
}
