/* SPDX-License-Identifier: Apache-2.0 */
/* All records at once ► one profile. */
#include "records/builder.h"

static sonde_status gather(sn_profile_builder *b, uint64_t since, sonde_error *err)
{
    sn_profile *p = b->p;
    for (const sn_trace_ring *r = atomic_load(&b->r->ctx->trace->rings); r; r = r->next) {
        const size_t n = atomic_load_explicit(&r->n, memory_order_acquire);
        p->dropped += atomic_load(&r->dropped);
        const uint32_t thread = sn_builder_thread(b, r);
        /* A thread writes a record when its interval ends: the ones wanted are the last ones. */
        const size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        size_t first = n;
        while (first > tail && r->recs[(first - 1) & (r->cap - 1)].t1 >= since)
            first--;
        if (thread == UINT32_MAX || !sn_vec_reserve(&b->events, p->alloc, n - first))
            return sn_fail_memory(err, (n - first) * sizeof(sn_event));
        for (size_t i = first; i < n; i++) {
            const sn_trace_rec *rec = &r->recs[i & (r->cap - 1)];
            if (rec->t0 >= since && rec->t1 >= rec->t0)
                b->events.data[b->events.n++] = (sn_event){.rec = *rec, .thread = thread};
        }
    }
    if (b->events.n >= UINT32_MAX / 2)
        return sn_fail(err, SONDE_LIMIT, "%zu records are too many for one profile", b->events.n);
    sn_builder_sort(b);
    return SONDE_OK;
}

/* `template` says what is wanted. */
static sonde_status build(const sn_profile_builder *template, uint64_t since, uint32_t only_run,
                          sn_profile **profile, sonde_error *err)
{
    sn_profile_builder b = *template;
    sn_context *ctx = b.r->ctx;
    *profile = NULL;
    SN_TRY(sn_profile_new(&b.p, ctx->alloc, err));
    b.texts = &b.p->arena;
    sn_clock_calibrate(&b.clock);
    sonde_status st = gather(&b, since, err);
    if (st == SONDE_OK)
        st = sn_builder_list_runs(&b, err);
    if (st == SONDE_OK) {
        sn_builder_filter(&b, only_run);
        const uint64_t first = b.events.n ? b.events.data[0].rec.t0 : since;
        b.base_ns = sn_clock_ns(&b.clock, only_run || !since ? first : since);
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
    sn_builder_free_tables(&b);
    if (st != SONDE_OK) {
        sn_profile_free(b.p);
        return st;
    }
    *profile = b.p;
    return SONDE_OK;
}

sonde_status sn_records_profile_of(sn_records *r, const sn_records_request *request,
                                   sn_profile **profile, sonde_error *err)
{
    const sn_profile_builder wanted = {.r = r,
                                       .level = request->level,
                                       .windows = request->windows,
                                       .n_windows = request->n_windows,
                                       .only_sampled = request->sampled,
                                       .brief = request->brief};
    return build(&wanted, request->since, request->only_run, profile, err);
}

sonde_status sn_records_profile(sn_records *r, uint64_t since, uint32_t only_run, int level,
                                sn_profile **profile, sonde_error *err)
{
    const sn_records_request request = {.since = since, .only_run = only_run, .level = level};
    return sn_records_profile_of(r, &request, profile, err);
}
