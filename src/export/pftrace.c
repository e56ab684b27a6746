/* SPDX-License-Identifier: Apache-2.0 */
/* A whole profile as a Perfetto trace: the tables first, then every span in order. A joined profile
 * is the traces of its workers, one behind the other. */
#include "export/pftrace_sections.h"

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

sonde_status sn_pftrace_write(const sn_profile *p, const sn_pftrace_section *section, sn_sink *sink,
                              sonde_error *err)
{
    sonde_status st = SONDE_OK;
    sn_pftrace *t = NULL;
    uint64_t *arrows = find_arrows(p, &st, err);
    if (st == SONDE_OK)
        st = sn_pftrace_open_section(&t, sink, p, section, p->alloc, err);
    if (st == SONDE_OK) {
        bool good = true;
        for (size_t i = 0; i < p->threads_seen.n && good; i++)
            good = sn_pftrace_thread(t, &p->threads_seen.data[i]);
        for (size_t i = 0; i < p->steps.n && good; i++)
            good = sn_pftrace_step(t, &p->steps.data[i]);
        for (size_t i = 0; i < p->lives.n && good; i++)
            good = sn_pftrace_life(t, &p->lives.data[i]);
        good = good && sn_pftrace_left(t, &p->left);
        for (size_t i = 0; i < p->spans.n && good; i++)
            good = sn_pftrace_slice(t, &p->spans.data[i], arrows ? arrows[i] : 0);
        for (size_t i = 0; i < p->counters.n && good; i++)
            good = sn_pftrace_counter(t, &p->counters.data[i]);
        st = sn_pftrace_close(t, NULL, err);
    }
    sn_free(p->alloc, arrows, p->spans.n * sizeof *arrows);
    return st;
}

/* What both show; where that is nothing, no set can say so. */
static void show_only(sn_profile *part, uint32_t categories)
{
    const uint32_t both = part->categories & categories;
    if (!categories)
        return;
    if (part->categories && !both)
        part->spans.n = part->counters.n = 0;
    part->categories = both ? both : categories;
}

/* A worker's times stay its own: only the moment its ns 0 is at is that of the joined profile, and
 * what is shown is what the joined profile shows. */
static sonde_status write_workers(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_pftrace_sections sections;
    sn_pftrace_sections_init(&sections, p->workers.n, p->alloc);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < p->workers.n && st == SONDE_OK; i++) {
        const sn_prof_worker *w = &p->workers.data[i];
        sn_profile part = *w->part; /* borrows everything */
        sn_pftrace_section section;
        part.start_wall_ns = p->start_wall_ns + w->offset_ns;
        show_only(&part, p->categories);
        st = sn_pftrace_sections_next(&sections, &part, &section, err);
        if (st == SONDE_OK)
            st = sn_pftrace_write(&part, &section, sink, err);
    }
    sn_pftrace_sections_free(&sections);
    return st;
}

static sonde_status write_pftrace(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return p->workers.n ? write_workers(p, sink, err) : sn_pftrace_write(p, NULL, sink, err);
}

const sn_exporter sn_exporter_pftrace = {
    .suffix = ".pftrace",
    .name = "pftrace",
    .summary = "Perfetto trace with the complete profile",
    .lists_spans = true,
    .write = write_pftrace,
};
