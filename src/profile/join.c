/* SPDX-License-Identifier: Apache-2.0 */
/* Tables are appended part by part with their numbers moved up; what needs all of them, the common
 * beginning, the order of spans, the sums of counters and the facts, is done at the end. Parts stay
 * whole: texts of the joined tables are theirs, and whoever writes the workers one by one has them.
 */
#include "profile/join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/join_facts.h"
#include "profile/left.h"

const char *sn_profile_worker_name(const sn_profile *p, sn_arena *arena)
{
    const char *host = sn_labels_get(&p->labels, SN_LABEL_HOST);
    const char *worker = sn_labels_get(&p->labels, SN_LABEL_WORKER);
    char pid[32];
    snprintf(pid, sizeof pid, p->pid > 0 ? "%" PRId64 : "unknown", p->pid);
    return sn_arena_printf(arena, "%s%s%s", host, *host ? " / " : "", *worker ? worker : pid);
}

/* ------------------------------------------------------------------ tables */
/* The highest numbers that the tables have so far. */
typedef struct highest {
    uint64_t span, run, instance, table;
} highest;

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static highest highest_of(const sn_profile *p)
{
    highest h = {.span = p->spans.n};
    for (size_t i = 0; i < p->spans.n; i++) {
        h.run = more(h.run, p->spans.data[i].run);
        h.instance = more(h.instance, (uint64_t)p->spans.data[i].instance + 1);
    }
    for (size_t i = 0; i < p->steps.n; i++)
        h.table = more(h.table, p->steps.data[i].table);
    for (size_t i = 0; i < p->lives.n; i++)
        h.table = more(h.table, p->lives.data[i].table);
    return h;
}

/* Those of the joined tables follow from the last part's. */
static highest highest_joined(const sn_profile *to)
{
    if (!to->workers.n)
        return (highest){.span = 0};
    const sn_prof_worker *w = &to->workers.data[to->workers.n - 1];
    highest h = highest_of(w->part);
    h.span = to->spans.n;
    h.run += w->first_run;
    h.instance += w->first_instance;
    h.table += w->first_table;
    return h;
}

static sonde_status check_room(const sn_profile *to, const sn_profile *part, const highest *have,
                               const highest *add, sonde_error *err)
{
    const struct {
        const char *what;
        uint64_t a, b;
    } all[] = {{"spans", have->span, add->span},
               {"runs", have->run, add->run},
               {"instances", have->instance, add->instance},
               {"tables of steps", have->table, add->table},
               {"threads", to->threads_seen.n, part->threads_seen.n},
               {"steps", to->steps.n, part->steps.n}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (all[k].a + all[k].b >= UINT32_MAX - 1)
            return sn_fail(err, SONDE_LIMIT, "joined, the profiles have too many %s", all[k].what);
    return SONDE_OK;
}

static bool add_threads(sn_profile *to, const sn_profile *part, uint32_t worker)
{
    const char *who = sn_profile_worker_name(part, &to->arena);
    for (size_t i = 0; i < part->threads_seen.n && who; i++) {
        sn_prof_thread t = part->threads_seen.data[i];
        t.worker = worker;
        t.id = (uint32_t)to->threads_seen.n + 1;
        t.name = sn_arena_printf(&to->arena, "%s: %s", who, t.name);
        if (!t.name || !sn_vec_push(&to->threads_seen, to->alloc, t))
            return false;
    }
    return who != NULL;
}

static bool add_steps(sn_profile *to, const sn_profile *part, uint32_t first_table)
{
    if (!sn_vec_reserve(&to->steps, to->alloc, part->steps.n) ||
        !sn_vec_reserve(&to->lives, to->alloc, part->lives.n))
        return false;
    for (size_t i = 0; i < part->steps.n; i++) {
        sn_prof_step s = part->steps.data[i];
        s.table += first_table;
        to->steps.data[to->steps.n++] = s;
    }
    for (size_t i = 0; i < part->lives.n; i++) {
        sn_prof_life l = part->lives.data[i];
        l.table += first_table;
        to->lives.data[to->lives.n++] = l;
    }
    return true;
}

/* Ids become the places they have here. */
static sonde_status add_spans(sn_profile *to, const sn_profile *part, const sn_prof_worker *w,
                              sonde_error *err)
{
    const size_t first = to->spans.n;
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(part, &index, err));
    const bool room = sn_vec_reserve(&to->spans, to->alloc, part->spans.n);
    for (size_t i = 0; i < part->spans.n && room; i++) {
        sn_prof_span s = part->spans.data[i];
        const uint32_t parent = sn_prof_index_find(&index, s.parent);
        s.id = (uint32_t)(first + i + 1);
        s.parent = parent == UINT32_MAX ? 0 : (uint32_t)(first + parent + 1);
        s.thread += w->first_thread;
        s.step = s.step == UINT32_MAX ? UINT32_MAX : s.step + w->first_step;
        s.run = s.run ? s.run + w->first_run : 0;
        s.instance += w->first_instance;
        to->spans.data[to->spans.n++] = s;
    }
    sn_prof_index_free(&index);
    return room ? SONDE_OK : sn_fail_memory(err, part->spans.n * sizeof(sn_prof_span));
}

/* Runs without spans count here, too. When they were is added at the end. */
static bool add_left(sn_profile *to, const sn_profile *part, const sn_prof_worker *w)
{
    sn_prof_left *all = &to->left;
    const sn_prof_left *own = &part->left;
    if (!sn_vec_reserve(&all->wall_ns, to->alloc, own->wall_ns.n) ||
        !sn_vec_reserve(&all->steps, to->alloc, own->steps.n))
        return false;
    for (size_t i = 0; i < own->wall_ns.n; i++)
        all->wall_ns.data[all->wall_ns.n++] = own->wall_ns.data[i];
    for (size_t i = 0; i < own->steps.n; i++) {
        sn_prof_left_step s = own->steps.data[i];
        const bool is_step = s.step != SN_LEFT_MEMORY && s.step != SN_LEFT_OTHER;
        s.step += is_step ? w->first_step : 0;
        all->steps.data[all->steps.n++] = s;
    }
    all->warmups = more(all->warmups, own->warmups);
    all->cost_ns += own->cost_ns;
    return true;
}

sonde_status sn_profile_join(sn_profile *to, sn_profile *part, sonde_error *err)
{
    const highest have = highest_joined(to), add = highest_of(part);
    const sn_prof_worker w = {.part = part,
                              .first_thread = (uint32_t)to->threads_seen.n,
                              .first_step = (uint32_t)to->steps.n,
                              .first_run = (uint32_t)have.run,
                              .first_instance = (uint32_t)have.instance,
                              .first_table = (uint32_t)have.table};
    sonde_status st = check_room(to, part, &have, &add, err);
    if (st == SONDE_OK && !sn_vec_push(&to->workers, to->alloc, w))
        st = sn_fail_memory(err, sizeof w);
    if (st != SONDE_OK) {
        sn_profile_free(part);
        return st;
    }
    if (!add_threads(to, part, (uint32_t)to->workers.n - 1) || !add_steps(to, part, w.first_table))
        return sn_fail_memory(err, part->steps.n * sizeof(sn_prof_step));
    if (!add_left(to, part, &w))
        return sn_fail_memory(err, part->left.wall_ns.n * sizeof(double));
    return add_spans(to, part, &w, err);
}

/* ------------------------------------------------------------------ time */
static uint64_t at_most(uint64_t v)
{
    return v < SN_PROF_MAX_NS ? v : SN_PROF_MAX_NS;
}

static void set_offsets(sn_profile *to)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < to->workers.n; i++) {
        const uint64_t start = to->workers.data[i].part->start_wall_ns;
        first = start && start < first ? start : first;
    }
    for (size_t i = 0; i < to->workers.n; i++) {
        sn_prof_worker *w = &to->workers.data[i];
        w->offset_ns = w->part->start_wall_ns ? at_most(w->part->start_wall_ns - first) : 0;
    }
    to->start_wall_ns = first == UINT64_MAX ? 0 : first;
    for (size_t i = 0; i < to->spans.n; i++) {
        sn_prof_span *s = &to->spans.data[i];
        s->start_ns = at_most(s->start_ns +
                              to->workers.data[to->threads_seen.data[s->thread].worker].offset_ns);
    }
}

/* From the first start to the last end, of all parts. */
static void set_left_times(sn_profile *to)
{
    bool any = false;
    for (size_t i = 0; i < to->workers.n; i++) {
        const sn_prof_worker *w = &to->workers.data[i];
        const sn_prof_left *own = &w->part->left;
        if (!own->wall_ns.n)
            continue;
        const uint64_t first = at_most(own->first_ns + w->offset_ns);
        const uint64_t last = at_most(own->last_ns + w->offset_ns);
        to->left.first_ns = !any || first < to->left.first_ns ? first : to->left.first_ns;
        to->left.last_ns = !any || last > to->left.last_ns ? last : to->left.last_ns;
        any = true;
    }
}

typedef struct entry {
    sn_prof_span span;
    size_t at;
} entry;

static int by_start(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->span.start_ns != y->span.start_ns)
        return x->span.start_ns < y->span.start_ns ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Parts are in order: a parent stays before its children. */
static sonde_status order_spans(sn_profile *to, sonde_error *err)
{
    const size_t n = to->spans.n;
    size_t bytes;
    entry *all = sn_size_mul(n, sizeof *all, &bytes) ? sn_alloc(to->alloc, bytes) : NULL;
    if (!all)
        return sn_fail_memory(err, n * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = (entry){to->spans.data[i], i};
    if (n > 1)
        qsort(all, n, sizeof *all, by_start);
    for (size_t i = 0; i < n; i++)
        to->spans.data[i] = all[i].span;
    sn_free(to->alloc, all, bytes);
    return SONDE_OK;
}

sonde_status sn_profile_join_end(sn_profile *to, sonde_error *err)
{
    set_offsets(to);
    set_left_times(to);
    sn_left_sort(to);
    SN_TRY(order_spans(to, err));
    SN_TRY(sn_prof_join_counters(to, err));
    return sn_prof_join_facts(to, err);
}
