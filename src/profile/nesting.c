/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over the spans in order of start finds for each its owner: the nearest iteration,
 * operator or allocation around it. Links say so where they are set; a span without one (an
 * allocation knows only its run) is placed by time, under the innermost open span of its thread.
 * A span's time is then taken off its owner's, and the recorder's cost of writing a span off the
 * owner in whose interval it was written. */
#include "profile/nesting.h"

/* Placing by time looks at most this many levels up, so that no input makes the walk quadratic. */
enum { MAX_LEVELS = 64 };

typedef struct walk {
    const sn_profile *p;
    sn_prof_nest *nest;
    sn_prof_index index;
    uint32_t *owner;    /* per span */
    uint32_t *below;    /* per span: the one under it on its thread's stack */
    uint32_t *records;  /* per span: spans written inside it */
    uint64_t *child_ns; /* per span: time of counted spans directly inside it */
    uint32_t *top;      /* per thread: innermost open counted span */
} walk;

static uint64_t end_of(const sn_prof_span *s)
{
    uint64_t end;
    return __builtin_add_overflow(s->start_ns, s->dur_ns, &end) ? UINT64_MAX : end;
}

/* Spans whose time is taken off what is around them. A nested ITERATION is only a link. */
static bool counted(const walk *w, uint32_t i)
{
    const sn_prof_span *s = &w->p->spans.data[i];
    if (s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_MEMORY)
        return true;
    uint32_t it = w->nest->iteration[i];
    return s->cat == SN_CAT_ITERATION && it != SN_PROF_NONE && w->nest->iteration_span[it] == i;
}

/* The innermost open counted span of this thread that contains span i; closes those that ended. */
static uint32_t around(walk *w, uint32_t i)
{
    const sn_prof_span *spans = w->p->spans.data, *s = &spans[i];
    if (s->thread >= w->p->threads_seen.n)
        return SN_PROF_NONE;
    uint32_t *top = &w->top[s->thread];
    while (*top != SN_PROF_NONE && end_of(&spans[*top]) <= s->start_ns)
        *top = w->below[*top];
    uint32_t at = *top;
    for (int level = 0; at != SN_PROF_NONE && level < MAX_LEVELS; level++) {
        if (end_of(&spans[at]) >= end_of(s))
            return at;
        at = w->below[at];
    }
    return SN_PROF_NONE;
}

static void place(walk *w, uint32_t i)
{
    const sn_prof_span *spans = w->p->spans.data, *s = &spans[i];
    sn_prof_nest *nest = w->nest;
    uint32_t parent = sn_prof_index_find(&w->index, s->parent);
    if (parent != SN_PROF_NONE && parent >= i) /* parents come first; anything else is no parent */
        parent = SN_PROF_NONE;
    uint32_t owner = SN_PROF_NONE, it = SN_PROF_NONE;
    if (parent != SN_PROF_NONE) {
        owner = counted(w, parent) ? parent : w->owner[parent];
        it = nest->iteration[parent];
    }
    uint32_t open = around(w, i);
    /* An allocation is linked to its run at best: the operator it lies in is found by time. */
    bool by_time = s->cat == SN_CAT_MEMORY && open != SN_PROF_NONE &&
                   spans[open].cat == SN_CAT_OPERATOR && owner != SN_PROF_NONE && open > owner;
    if (open != SN_PROF_NONE && (owner == SN_PROF_NONE || by_time)) {
        owner = open;
        it = nest->iteration[open];
    }
    if (s->cat == SN_CAT_ITERATION && it == SN_PROF_NONE) {
        it = (uint32_t)nest->n_iterations++;
        nest->iteration_span[it] = i;
        owner = SN_PROF_NONE;
    }
    bool same_thread = owner != SN_PROF_NONE && spans[owner].thread == s->thread;
    if (s->cat == SN_CAT_MEMORY && !same_thread)
        it = SN_PROF_NONE; /* another thread's allocation is no part of this one's wall time */
    nest->iteration[i] = it;
    w->owner[i] = owner;
    if (same_thread) {
        w->records[owner]++;
        if (counted(w, i) && w->child_ns[owner] < UINT64_MAX - s->dur_ns)
            w->child_ns[owner] += s->dur_ns; /* what is more than time has no meaning */
    }
    if (counted(w, i) && s->thread < w->p->threads_seen.n) {
        w->below[i] = w->top[s->thread];
        w->top[s->thread] = i;
    }
}

static void net_time(walk *w, uint32_t i)
{
    sn_prof_nest *nest = w->nest;
    if (nest->iteration[i] == SN_PROF_NONE || !counted(w, i))
        return;
    const sn_prof_span *s = &w->p->spans.data[i];
    double net = s->dur_ns > w->child_ns[i] ? (double)(s->dur_ns - w->child_ns[i]) : 0;
    double cost = w->records[i] * sn_prof_record_ns(w->p, s->thread);
    if (!(cost >= 0))
        cost = 0;
    if (cost > net)
        cost = net;
    nest->net_ns[i] = net - cost;
    nest->cost_ns[nest->iteration[i]] += cost;
}

static void walk_free(walk *w, size_t n)
{
    sn_allocator *alloc = w->p->alloc;
    sn_free(alloc, w->owner, n * sizeof *w->owner);
    sn_free(alloc, w->below, n * sizeof *w->below);
    sn_free(alloc, w->records, n * sizeof *w->records);
    sn_free(alloc, w->child_ns, n * sizeof *w->child_ns);
    sn_free(alloc, w->top, w->p->threads_seen.n * sizeof *w->top);
    sn_prof_index_free(&w->index);
}

sonde_status sn_prof_nest_build(const sn_profile *p, sn_prof_nest *nest, sonde_error *err)
{
    size_t n = p->spans.n;
    *nest = (sn_prof_nest){.alloc = p->alloc, .n_spans = n};
    walk w = {.p = p, .nest = nest};
    sonde_status st = sn_prof_index_build(p, &w.index, err);
    if (st != SONDE_OK)
        return st;
    /* n spans exist in memory at more than 8 bytes each: these products cannot overflow. */
    nest->iteration = sn_alloc(p->alloc, n * sizeof *nest->iteration);
    nest->net_ns = sn_alloc_zero(p->alloc, n * sizeof *nest->net_ns);
    nest->iteration_span = sn_alloc(p->alloc, n * sizeof *nest->iteration_span);
    nest->cost_ns = sn_alloc_zero(p->alloc, n * sizeof *nest->cost_ns);
    w.owner = sn_alloc(p->alloc, n * sizeof *w.owner);
    w.below = sn_alloc(p->alloc, n * sizeof *w.below);
    w.records = sn_alloc_zero(p->alloc, n * sizeof *w.records);
    w.child_ns = sn_alloc_zero(p->alloc, n * sizeof *w.child_ns);
    w.top = sn_alloc(p->alloc, p->threads_seen.n * sizeof *w.top);
    if (!nest->iteration || !nest->net_ns || !nest->iteration_span || !nest->cost_ns || !w.owner ||
        !w.below || !w.records || !w.child_ns || !w.top) {
        st = sn_fail_memory(err, n * sizeof *nest->net_ns);
    } else {
        for (size_t t = 0; t < p->threads_seen.n; t++)
            w.top[t] = SN_PROF_NONE;
        for (uint32_t i = 0; i < n; i++)
            place(&w, i);
        for (uint32_t i = 0; i < n; i++)
            net_time(&w, i);
    }
    walk_free(&w, n);
    if (st != SONDE_OK)
        sn_prof_nest_free(nest);
    return st;
}

void sn_prof_nest_free(sn_prof_nest *nest)
{
    size_t n = nest->n_spans;
    sn_free(nest->alloc, nest->iteration, n * sizeof *nest->iteration);
    sn_free(nest->alloc, nest->net_ns, n * sizeof *nest->net_ns);
    sn_free(nest->alloc, nest->iteration_span, n * sizeof *nest->iteration_span);
    sn_free(nest->alloc, nest->cost_ns, n * sizeof *nest->cost_ns);
    *nest = (sn_prof_nest){.alloc = nest->alloc};
}
