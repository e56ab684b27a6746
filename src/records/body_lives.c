/* SPDX-License-Identifier: Apache-2.0 */
/* What the bodies of control flow hold, told at the steps that run them. A body is bound by itself,
 * so its values stand in a table of their own; while they live, those of the step around it do,
 * too. So the step gets one more value, as large as its bodies need at most, and whoever looks for
 * the peak of the table finds it. Which table runs in which step is told by the spans. */
#include <stdlib.h>

#include "records/builder.h"

typedef struct body {
    uint32_t table;        /* of the body */
    uint32_t parent, step; /* of the step that runs it */
    int depth;
} body;

typedef struct bodies {
    SN_VEC(body) list;
} bodies;

static const body *find(const bodies *all, uint32_t table)
{
    for (size_t i = 0; i < all->list.n; i++)
        if (all->list.data[i].table == table)
            return &all->list.data[i];
    return NULL;
}

/* The step that runs the body in which a span stands: above them is the run of the body. */
static const sn_prof_step *control_of(const sn_profile *p, const sn_prof_index *index,
                                      const sn_prof_span *s)
{
    const uint32_t run = s->parent ? sn_prof_index_find(index, s->parent) : UINT32_MAX;
    if (run == UINT32_MAX || p->spans.data[run].cat != SN_CAT_EXECUTOR)
        return NULL;
    const uint32_t above = sn_prof_index_find(index, p->spans.data[run].parent);
    if (above == UINT32_MAX || p->spans.data[above].cat != SN_CAT_OPERATOR ||
        p->spans.data[above].step >= p->steps.n)
        return NULL;
    return &p->steps.data[p->spans.data[above].step];
}

static sonde_status list_bodies(const sn_profile *p, bodies *all, sonde_error *err)
{
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    bool *seen = sn_alloc_zero(p->alloc, p->steps.n + 1), fine = seen != NULL;
    for (size_t i = 0; i < p->spans.n && fine; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (s->cat != SN_CAT_OPERATOR || s->step >= p->steps.n || seen[s->step])
            continue;
        seen[s->step] = true;
        const uint32_t table = p->steps.data[s->step].table;
        const sn_prof_step *control = find(all, table) ? NULL : control_of(p, &index, s);
        const body own = {.table = table,
                          .parent = control ? control->table : 0,
                          .step = control ? control->index : 0};
        fine = !control || sn_vec_push(&all->list, p->alloc, own);
    }
    sn_free(p->alloc, seen, p->steps.n + 1);
    sn_prof_index_free(&index);
    return fine ? SONDE_OK : sn_fail_memory(err, p->steps.n + sizeof(body));
}

static int deepest_first(const void *a, const void *b)
{
    const body *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

static void sort(bodies *all)
{
    enum { DEEPEST = 64 };
    for (size_t i = 0; i < all->list.n; i++)
        for (const body *at = &all->list.data[i]; at && all->list.data[i].depth < DEEPEST;
             at = find(all, at->parent))
            all->list.data[i].depth++;
    if (all->list.n > 1)
        qsort(all->list.data, all->list.n, sizeof *all->list.data, deepest_first);
}

/* The most that values of a table take at once. */
static sonde_status peak_of(const sn_profile *p, uint32_t table, uint64_t *peak, sonde_error *err)
{
    size_t steps = 0;
    *peak = 0;
    for (size_t i = 0; i < p->lives.n; i++)
        if (p->lives.data[i].table == table && p->lives.data[i].last + (size_t)2 > steps)
            steps = p->lives.data[i].last + (size_t)2;
    uint64_t *change = sn_alloc_zero(p->alloc, (steps + 1) * sizeof *change), live = 0;
    if (!change)
        return sn_fail_memory(err, steps * sizeof *change);
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (l->table != table)
            continue;
        change[l->first] += l->bytes; /* they may wrap */
        change[l->last + 1] -= l->bytes;
    }
    for (size_t i = 0; i < steps; i++) {
        live += change[i];
        *peak = live > *peak ? live : *peak;
    }
    sn_free(p->alloc, change, (steps + 1) * sizeof *change);
    return SONDE_OK;
}

sonde_status sn_records_add_body_lives(sn_profile *p, sonde_error *err)
{
    bodies all = {0};
    sonde_status st = list_bodies(p, &all, err);
    if (st == SONDE_OK)
        sort(&all);
    for (size_t i = 0, next; i < all.list.n && st == SONDE_OK; i = next) {
        const body *first = &all.list.data[i];
        uint64_t most = 0; /* one body runs at a time */
        for (next = i;
             next < all.list.n && st == SONDE_OK && deepest_first(first, &all.list.data[next]) == 0;
             next++) {
            uint64_t peak;
            st = peak_of(p, all.list.data[next].table, &peak, err);
            most = peak > most ? peak : most;
        }
        const sn_prof_life life = {.table = first->parent,
                                   .first = first->step,
                                   .last = first->step,
                                   .name = "[values of its body]",
                                   .bytes = most,
                                   .place = SN_LIFE_DYNAMIC};
        if (st == SONDE_OK && most && !sn_vec_push(&p->lives, p->alloc, life))
            st = sn_fail_memory(err, sizeof life);
    }
    sn_vec_free(&all.list, p->alloc);
    return st;
}
