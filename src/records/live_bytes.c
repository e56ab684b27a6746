/* SPDX-License-Identifier: Apache-2.0 */
/* Live bytes as a counter. The recorder says nothing of memory and need not: which values live
 * while a step runs, and how large they are, stands in the step's binding, so the steps' own time
 * stamps are all that is missing. Each run adds its bytes to those of the others under way; what a
 * step that depends on data allocates is not planned and therefore not counted.
 *
 * Batches come by the ends of runs, so one may tell of times before another's: changes wait until
 * no run that is still under way can say anything earlier. */
#include <stdlib.h>
#include <string.h>

#include "records/builder.h"

/* Changes that may wait, for a run that takes very long; then they are told as they are. */
#define MOST_WAITING ((size_t)1 << 20)
/* A record may become visible to the reader this much after it was made. */
#define SLACK_NS 1000000u

static int by_time(const void *a, const void *b)
{
    const sn_live_change *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static bool change(sn_profile_builder *b, sn_run_row *run, uint64_t ticks, uint64_t live)
{
    const sn_live_change c = {.at_ns = sn_builder_ns(b, ticks),
                              .bytes = (int64_t)(live - run->live)};
    run->live = live;
    return !c.bytes || sn_vec_push(&b->changes, b->p->alloc, c);
}

/* A step's values are there from its start, a run's until its end. */
static bool list_changes(sn_profile_builder *b)
{
    bool fine = true;
    for (size_t i = 0; fine && i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const sn_table_row *table = r->kind == SN_TRACE_STEP ? sn_builder_table(b, r->table) : NULL;
        sn_run_row *run = table && table->bytes ? sn_builder_run(b, r->run) : NULL;
        if (run && r->index < table->n_steps)
            fine = change(b, run, r->t0, table->bytes[r->index].live);
    }
    for (size_t i = 0; fine && i < b->runs.n; i++)
        fine = change(b, &b->runs.data[i], b->runs.data[i].t1, 0);
    return fine;
}

/* What happened in one nanosecond is one counter, and none if it comes to nothing. */
static sonde_status make_counters(sn_profile_builder *b, uint64_t until_ns, sonde_error *err)
{
    sn_live_change *all = b->changes.data;
    size_t at = 0;
    while (at < b->changes.n && all[at].at_ns < until_ns) {
        const uint64_t ns = all[at].at_ns;
        uint64_t live = b->live;
        for (; at < b->changes.n && all[at].at_ns == ns; at++)
            live += (uint64_t)all[at].bytes;
        if (live == b->live)
            continue;
        b->live = live;
        b->live_ns = ns > b->live_ns ? ns : b->live_ns;
        const sn_prof_counter c = {.at_ns = b->live_ns,
                                   .name = SN_COUNTER_LIVE,
                                   .value = (double)live,
                                   .step = UINT32_MAX};
        if (!sn_vec_push(&b->p->counters, b->p->alloc, c))
            return sn_fail_memory(err, sizeof c);
    }
    b->changes.n -= at;
    if (b->changes.n)
        memmove(all, all + at, b->changes.n * sizeof *all);
    return SONDE_OK;
}

sonde_status sn_builder_live(sn_profile_builder *b, uint64_t until, sonde_error *err)
{
    if (!list_changes(b))
        return sn_fail_memory(err, sizeof(sn_live_change));
    if (b->changes.n > 1)
        qsort(b->changes.data, b->changes.n, sizeof(sn_live_change), by_time);
    uint64_t until_ns = UINT64_MAX;
    if (until != UINT64_MAX && b->changes.n <= MOST_WAITING) {
        const uint64_t ns = sn_builder_ns(b, until);
        until_ns = ns > SLACK_NS ? ns - SLACK_NS : 0;
    }
    return make_counters(b, until_ns, err);
}
