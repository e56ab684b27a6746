/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of bounded size of a run of any length: who looks while it goes on wants its start (the
 * model as it was loaded, the first runs) and what happens now. What lies between is one stretch of
 * time, the same for all threads, so that the runs that remain are whole. */
#include "records/builder.h"

#include <stdio.h>

static const sn_trace_rec *record_at(const sn_trace_ring *r, size_t i)
{
    return &r->recs[i & (r->cap - 1)];
}

/* Of this thread's records since then: the number of the first. Those that end later are written
 * later. */
static size_t first_since(const sn_trace_ring *r, size_t n, uint64_t since)
{
    size_t low = atomic_load_explicit(&r->tail, memory_order_acquire), high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (record_at(r, middle)->t1 < since)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* When the last run of this thread began that has ended; 0: none. */
static uint64_t last_run(const sn_trace_ring *r, size_t first, size_t n)
{
    while (n > first) {
        const sn_trace_rec *rec = record_at(r, --n);
        if (rec->kind == SN_TRACE_RUN && !rec->parent)
            return rec->t0;
    }
    return 0;
}

sn_gap sn_builder_gap(const sn_trace *t, uint64_t since, size_t most)
{
    sn_gap gap = {.from = UINT64_MAX};
    uint64_t whole = 0;
    for (const sn_trace_ring *r = most ? atomic_load(&t->rings) : NULL; r; r = r->next) {
        const size_t n = atomic_load_explicit(&r->n, memory_order_acquire);
        const size_t first = first_since(r, n, since), head = most / 4;
        const uint64_t run = last_run(r, first, n);
        whole = run > whole ? run : whole;
        if (n - first <= most)
            continue;
        const uint64_t from = record_at(r, first + head)->t1;
        const uint64_t to = record_at(r, n - (most - head))->t1;
        gap.from = from < gap.from ? from : gap.from;
        gap.to = to > gap.to ? to : gap.to;
    }
    if (whole && whole < gap.to)
        gap.to = whole; /* a run of more records than are wanted */
    return gap.from < gap.to ? gap : (sn_gap){0};
}

bool sn_gap_holds(const sn_gap *gap, const sn_trace_rec *r)
{
    if (r->kind == SN_TRACE_USER || r->kind == SN_TRACE_EXEC) /* of what is around runs, a part */
        return r->t0 > gap->from && r->t1 < gap->to;
    return r->t1 > gap->from && r->t0 < gap->to;
}

sonde_status sn_gap_note(sn_profile *p, size_t left_out, sonde_error *err)
{
    char text[128];
    snprintf(text, sizeof text,
             "the first and the latest runs; %zu measured runs between them are left out",
             left_out);
    const char *note = sn_arena_strdup(&p->arena, text);
    if (!note)
        return sn_fail_memory(err, sizeof text);
    p->note = note;
    return SONDE_OK;
}
