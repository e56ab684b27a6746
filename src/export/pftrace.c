/* SPDX-License-Identifier: Apache-2.0 */
/* A whole profile as a Perfetto trace: the tables first, then every span in order. */
#include "export/pftrace_stream.h"

/* For every operator the threads, other than its own, that had a slice of it, as bits; the slices
 * get 1. NULL where there are no slices, or no memory. */
static uint64_t *find_arrows(const sn_profile *p, sonde_status *st, sonde_error *err)
{
    size_t slices = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        slices += p->spans.data[i].cat == SN_CAT_THREAD;
    if (!slices)
        return NULL;
    sn_prof_index index;
    *st = sn_prof_index_build(p, &index, err);
    if (*st != SONDE_OK)
        return NULL;
    uint64_t *arrows = sn_alloc_zero(p->alloc, p->spans.n * sizeof *arrows);
    if (!arrows)
        *st = sn_fail_memory(err, p->spans.n * sizeof *arrows);
    for (size_t i = 0; arrows && i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        uint32_t parent =
            s->cat == SN_CAT_THREAD ? sn_prof_index_find(&index, s->parent) : UINT32_MAX;
        if (parent == UINT32_MAX || p->spans.data[parent].cat != SN_CAT_OPERATOR ||
            p->spans.data[parent].thread == s->thread || s->thread >= 64)
            continue;
        arrows[parent] |= UINT64_C(1) << s->thread;
        arrows[i] = 1;
    }
    sn_prof_index_free(&index);
    return arrows;
}

static sonde_status write_pftrace(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sonde_status st = SONDE_OK;
    sn_pftrace *t = NULL;
    uint64_t *arrows = find_arrows(p, &st, err);
    if (st == SONDE_OK)
        st = sn_pftrace_open(&t, sink, p, p->alloc, err);
    if (st == SONDE_OK) {
        bool good = true;
        for (size_t i = 0; i < p->threads_seen.n && good; i++)
            good = sn_pftrace_thread(t, &p->threads_seen.data[i]);
        for (size_t i = 0; i < p->steps.n && good; i++)
            good = sn_pftrace_step(t, &p->steps.data[i]);
        for (size_t i = 0; i < p->lives.n && good; i++)
            good = sn_pftrace_life(t, &p->lives.data[i]);
        for (size_t i = 0; i < p->spans.n && good; i++)
            good = sn_pftrace_slice(t, &p->spans.data[i], arrows ? arrows[i] : 0);
        for (size_t i = 0; i < p->counters.n && good; i++)
            good = sn_pftrace_counter(t, &p->counters.data[i]);
        st = sn_pftrace_close(t, NULL, err);
    }
    sn_free(p->alloc, arrows, p->spans.n * sizeof *arrows);
    return st;
}

const sn_exporter sn_exporter_pftrace = {
    .suffix = ".pftrace",
    .name = "pftrace",
    .summary = "Perfetto trace with the complete profile",
    .write = write_pftrace,
};
