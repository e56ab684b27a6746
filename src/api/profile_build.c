/* SPDX-License-Identifier: Apache-2.0 */
/* Records ► profile. Records are gathered from all rings, put in order of start with what contains
 * before what is contained, and linked: a step to its run, a body's run to the control step that
 * called it, a worker's slice to the step it worked for. A run still under way has not written its
 * RUN record yet; its steps are left out. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/profile_steps.h"
#include "plan/binding.h"

typedef struct event {
    sn_trace_rec rec;
    uint32_t thread; /* index into threads_seen */
    uint32_t span;   /* 1 + index into spans, once made */
} event;

typedef struct run_row {              /* one RUN record; sorted by id */
    uint32_t id, parent, event, root; /* root: row of the top-level run; UINT32_MAX: not known */
    uint32_t number, iteration;       /* of a root */
} run_row;

typedef struct table_row { /* one binding; sorted by id */
    uint32_t id, first_step, n_steps;
    const sn_binding *binding;
    const uint64_t *used; /* by step: weights and values live then, as far as known beforehand */
} table_row;

typedef struct step_key { /* span of a control step; sorted by (run, index) */
    uint32_t run, index, span;
} step_key;

typedef struct builder {
    sonde_context *c;
    sn_profile *p;
    sn_clock clock;
    uint64_t base_ns;
    SN_VEC(event) events;
    SN_VEC(run_row) runs;
    SN_VEC(table_row) tables;
    SN_VEC(step_key) controls;
    SN_VEC(uint32_t) operators; /* spans of steps, in order of start */
} builder;

static uint32_t rank_of(uint16_t kind)
{
    return kind == SN_TRACE_RUN ? 0 : kind == SN_TRACE_STEP ? 1 : 2;
}

static int by_start(const void *a, const void *b)
{
    const sn_trace_rec *x = &((const event *)a)->rec, *y = &((const event *)b)->rec;
    if (x->t0 != y->t0)
        return x->t0 < y->t0 ? -1 : 1;
    if (x->t1 != y->t1)
        return x->t1 > y->t1 ? -1 : 1;
    if (rank_of(x->kind) != rank_of(y->kind))
        return rank_of(x->kind) < rank_of(y->kind) ? -1 : 1;
    return x->run < y->run ? -1 : x->run > y->run;
}

static int by_run_id(const void *a, const void *b)
{
    const run_row *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_table_id(const void *a, const void *b)
{
    const table_row *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_step(const void *a, const void *b)
{
    const step_key *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sort(void *data, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n > 1)
        qsort(data, n, size, compare);
}

/* ------------------------------------------------------------------ gathering */
static sonde_status gather(builder *b, uint64_t since, sonde_error *err)
{
    sn_profile *p = b->p;
    for (const sn_trace_ring *r = atomic_load(&b->c->core.trace->rings); r; r = r->next) {
        const size_t n = atomic_load_explicit(&r->n, memory_order_acquire);
        p->dropped += atomic_load(&r->dropped);
        const sn_prof_thread thread = {.id = r->thread_id,
                                       .os_tid = r->os_tid,
                                       .name = sn_arena_strdup(&p->arena, r->thread_name)};
        /* A thread writes a record when its interval ends: the ones wanted are the last ones. */
        const size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        size_t first = n;
        while (first > tail && r->recs[(first - 1) & (r->cap - 1)].t1 >= since)
            first--;
        if (!thread.name || !sn_vec_push(&p->threads_seen, p->alloc, thread) ||
            !sn_vec_reserve(&b->events, p->alloc, n - first))
            return sn_fail_memory(err, (n - first) * sizeof(event));
        for (size_t i = first; i < n; i++) {
            const sn_trace_rec *rec = &r->recs[i & (r->cap - 1)];
            if (rec->t0 >= since && rec->t1 >= rec->t0)
                b->events.data[b->events.n++] =
                    (event){.rec = *rec, .thread = (uint32_t)(p->threads_seen.n - 1)};
        }
    }
    if (b->events.n >= UINT32_MAX / 2)
        return sn_fail(err, SONDE_LIMIT, "%zu records are too many for one profile", b->events.n);
    sort(b->events.data, b->events.n, sizeof(event), by_start);
    return SONDE_OK;
}

static run_row *find_run(const builder *b, uint32_t id)
{
    const run_row key = {.id = id};
    return id && b->runs.n ? bsearch(&key, b->runs.data, b->runs.n, sizeof key, by_run_id) : NULL;
}

/* The top-level run a run belongs to; NULL when a link of the chain is missing. */
static run_row *root_of(const builder *b, uint32_t id)
{
    run_row *start = find_run(b, id), *at = start;
    /* Parents have smaller numbers: the chain ends. */
    while (at && at->parent && at->root == UINT32_MAX)
        at = at->parent < at->id ? find_run(b, at->parent) : NULL;
    if (!at)
        return NULL;
    const uint32_t root = at->parent ? at->root : (uint32_t)(at - b->runs.data);
    start->root = root;
    return &b->runs.data[root];
}

static sonde_status list_runs(builder *b, sonde_error *err)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const run_row row = {
            .id = r->run, .parent = r->parent, .event = (uint32_t)i, .root = UINT32_MAX};
        if (r->kind == SN_TRACE_RUN && !sn_vec_push(&b->runs, b->p->alloc, row))
            return sn_fail_memory(err, sizeof row);
    }
    sort(b->runs.data, b->runs.n, sizeof(run_row), by_run_id);
    return SONDE_OK;
}

/* Drops what is not wanted: steps of unfinished runs and, with `only_run`, all but that inference.
 */
static void filter(builder *b, uint32_t only_run)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const run_row *root = root_of(b, r->run);
        const bool loose =
            r->kind == SN_TRACE_EXEC || r->kind == SN_TRACE_USER || r->kind == SN_TRACE_SLICE;
        if (only_run ? root && root->id == only_run : root || loose)
            b->events.data[kept++] = b->events.data[i];
    }
    b->events.n = kept;
    for (size_t i = 0; i < b->events.n; i++) {
        run_row *run = b->events.data[i].rec.kind == SN_TRACE_RUN
                           ? find_run(b, b->events.data[i].rec.run)
                           : NULL;
        if (run)
            run->event = (uint32_t)i;
    }
}

/* ------------------------------------------------------------------ tables */
static table_row *find_table(const builder *b, uint32_t id)
{
    const table_row key = {.id = id};
    return b->tables.n ? bsearch(&key, b->tables.data, b->tables.n, sizeof key, by_table_id) : NULL;
}

static sonde_status list_tables(builder *b, sonde_error *err)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        if (r->kind != SN_TRACE_RUN || find_table(b, r->table))
            continue;
        table_row row = {.id = r->table, .first_step = (uint32_t)b->p->steps.n};
        row.binding = sn_exec_pinned(&b->c->core, r->table);
        if (row.binding) {
            row.n_steps = row.binding->n_steps;
            SN_TRY(sn_api_profile_steps(b->p, row.binding, &b->clock, err));
            SN_TRY(sn_api_profile_lives(b->p, row.binding, &row.used, err));
        }
        if (!sn_vec_push(&b->tables, b->p->alloc, row))
            return sn_fail_memory(err, sizeof row);
        /* Ids grow, so this is almost always in order already. */
        for (size_t k = b->tables.n - 1; k > 0 && b->tables.data[k - 1].id > row.id; k--) {
            b->tables.data[k] = b->tables.data[k - 1];
            b->tables.data[k - 1] = row;
        }
    }
    return SONDE_OK;
}

static void name_model(builder *b)
{
    const sn_model *model = NULL;
    for (size_t i = 0; i < b->tables.n && !model; i++)
        if (b->tables.data[i].binding)
            model = b->tables.data[i].binding->program->model;
    if (!model)
        return;
    const char *name = model->graph_name ? model->graph_name : "";
    pthread_mutex_lock(&b->c->lock);
    for (const sonde_model *m = b->c->models; m; m = m->next)
        if (m->core == model)
            name = m->name;
    name = sn_arena_strdup(&b->p->arena, name);
    pthread_mutex_unlock(&b->c->lock);
    b->p->model_name = name ? name : "";
}

/* ------------------------------------------------------------------ spans */
static uint64_t to_ns(const builder *b, uint64_t ticks)
{
    const uint64_t ns = sn_clock_ns(&b->clock, ticks);
    return ns > b->base_ns ? ns - b->base_ns : 0;
}

/* Top-level runs by start: from 1 over all, from 0 over measured ones and over warm-ups. */
static void number_runs(builder *b)
{
    uint32_t number = 0, iterations[2] = {0, 0};
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        if (r->kind != SN_TRACE_RUN || r->parent)
            continue;
        run_row *run = find_run(b, r->run);
        run->number = ++number;
        run->iteration = iterations[(r->flags & SN_TRACE_WARMUP) != 0]++;
    }
}

/* One span over everything a model did, so that its iterations have a common parent. */
static sonde_status add_model_span(builder *b, sonde_error *err)
{
    uint64_t first = UINT64_MAX, last = 0;
    uint32_t thread = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        const event *e = &b->events.data[i];
        if (e->rec.kind != SN_TRACE_RUN)
            continue;
        if (first == UINT64_MAX) {
            first = e->rec.t0;
            thread = e->thread;
        }
        last = e->rec.t1 > last ? e->rec.t1 : last;
    }
    if (first == UINT64_MAX)
        return SONDE_OK;
    const uint64_t start = to_ns(b, first);
    const sn_prof_span span = {.cat = SN_CAT_MODEL,
                               .thread = thread,
                               .start_ns = start,
                               .dur_ns = to_ns(b, last) - start,
                               .step = UINT32_MAX,
                               .name = b->p->model_name,
                               .args = ""};
    return sn_vec_push(&b->p->spans, b->p->alloc, span) ? SONDE_OK
                                                        : sn_fail_memory(err, sizeof span);
}

/* The latest operator that began before `t0` and ended after it. */
static uint32_t operator_around(const builder *b, uint64_t start_ns)
{
    const sn_prof_span *spans = b->p->spans.data;
    for (size_t i = b->operators.n, look = 64; i > 0 && look > 0; i--, look--) {
        const sn_prof_span *s = &spans[b->operators.data[i - 1]];
        if (s->start_ns <= start_ns && s->start_ns + s->dur_ns >= start_ns)
            return b->operators.data[i - 1];
    }
    return UINT32_MAX;
}

static const char *span_name(builder *b, const event *e, const sn_prof_span *s, const run_row *run)
{
    switch (e->rec.kind) {
    case SN_TRACE_RUN:
        if (e->rec.parent)
            return "body";
        return sn_arena_printf(&b->p->arena, "%s%u", s->warmup ? "Warmup" : "Iteration",
                               run ? run->iteration : 0);
    case SN_TRACE_STEP:
        return s->step != UINT32_MAX ? b->p->steps.data[s->step].op_type : "step";
    case SN_TRACE_SLICE:
        return "slice";
    case SN_TRACE_ALLOC:
        return "memory";
    default:
        return sn_arena_strdup(&b->p->arena, sn_trace_name_text(b->c->core.trace, e->rec.index));
    }
}

/* A scope with a category or text: "name<1f>category<1f>text" ► name, "category: text". */
static bool split_scope(builder *b, sn_prof_span *s)
{
    char *category = strchr((char *)(uintptr_t)s->name, 0x1f); /* the profile's own copy */
    char *text = category ? strchr(category + 1, 0x1f) : NULL;
    if (!text)
        return true;
    *category++ = 0;
    *text++ = 0;
    const bool named = *category && strcmp(category, "user") != 0;
    s->args = named ? sn_arena_printf(&b->p->arena, *text ? "%s: %s" : "%s%s", category, text)
                    : text;
    return s->args != NULL;
}

static sn_prof_cat category(const sn_trace_rec *r)
{
    switch (r->kind) {
    case SN_TRACE_RUN:
        return r->parent ? SN_CAT_EXECUTOR : SN_CAT_ITERATION;
    case SN_TRACE_STEP:
        return SN_CAT_OPERATOR;
    case SN_TRACE_SLICE:
        return SN_CAT_THREAD;
    case SN_TRACE_ALLOC:
        return SN_CAT_MEMORY;
    case SN_TRACE_USER:
        return SN_CAT_USER;
    default:
        return SN_CAT_EXECUTOR;
    }
}

static uint32_t parent_of(const builder *b, const event *e, const sn_prof_span *s)
{
    const sn_trace_rec *r = &e->rec;
    if (r->kind == SN_TRACE_RUN) {
        if (!r->parent)
            return b->p->spans.data[0].cat == SN_CAT_MODEL ? 1 : 0;
        const step_key key = {.run = r->parent, .index = r->parent_index};
        const step_key *control =
            b->controls.n ? bsearch(&key, b->controls.data, b->controls.n, sizeof key, by_step)
                          : NULL;
        return control ? control->span + 1 : 0;
    }
    if (r->kind == SN_TRACE_SLICE) {
        const uint32_t op = operator_around(b, s->start_ns);
        return op == UINT32_MAX ? 0 : op + 1;
    }
    const run_row *run = find_run(b, r->run);
    return run ? b->events.data[run->event].span : 0;
}

/* A MEMORY record is two counters. */
static sonde_status add_counters(builder *b, const event *e, sonde_error *err)
{
    const sn_trace_rec *r = &e->rec;
    const table_row *table = find_table(b, r->table);
    if (!table || !table->used || r->index >= table->n_steps)
        return SONDE_OK;
    const double taken = (double)r->parent_index * 64, held = (double)r->parent * 64;
    const sn_prof_counter used = {.at_ns = to_ns(b, r->t0),
                                  .name = SN_COUNTER_USED,
                                  .value = (double)table->used[r->index] + taken,
                                  .step = table->first_step + r->index};
    sn_prof_counter allocated = used;
    allocated.name = SN_COUNTER_ALLOCATED;
    allocated.value = held;
    return sn_vec_push(&b->p->counters, b->p->alloc, used) &&
                   sn_vec_push(&b->p->counters, b->p->alloc, allocated)
               ? SONDE_OK
               : sn_fail_memory(err, sizeof used);
}

static sonde_status add_span(builder *b, event *e, sonde_error *err)
{
    const sn_trace_rec *r = &e->rec;
    sn_prof_span s = {.cat = category(r),
                      .thread = e->thread,
                      .start_ns = to_ns(b, r->t0),
                      .step = UINT32_MAX,
                      .args = ""};
    s.dur_ns = to_ns(b, r->t1) - s.start_ns;
    const run_row *root = root_of(b, r->run);
    if (root) {
        s.run = root->number;
        s.iteration = root->iteration;
        s.warmup = (b->events.data[root->event].rec.flags & SN_TRACE_WARMUP) != 0;
    }
    if (r->kind == SN_TRACE_STEP) {
        const table_row *table = find_table(b, r->table);
        if (table && r->index < table->n_steps)
            s.step = table->first_step + r->index;
    }
    s.parent = parent_of(b, e, &s);
    s.name = span_name(b, e, &s, root);
    const uint32_t at = (uint32_t)b->p->spans.n;
    if (r->kind == SN_TRACE_USER)
        s.warmup = (r->flags & SN_TRACE_WARMUP) != 0;
    if (!s.name || (r->kind == SN_TRACE_USER && !split_scope(b, &s)) ||
        !sn_vec_push(&b->p->spans, b->p->alloc, s))
        return sn_fail_memory(err, sizeof s);
    e->span = at + 1;
    if (r->kind == SN_TRACE_STEP && !sn_vec_push(&b->operators, b->p->alloc, at))
        return sn_fail_memory(err, sizeof at);
    if (s.step != UINT32_MAX && b->p->steps.data[s.step].control) {
        /* Runs are numbered as they begin, so keys arrive in order but for concurrent runs. */
        const step_key key = {.run = r->run, .index = r->index, .span = at};
        if (!sn_vec_push(&b->controls, b->p->alloc, key))
            return sn_fail_memory(err, sizeof key);
        for (size_t k = b->controls.n - 1; k > 0 && by_step(&b->controls.data[k - 1], &key) > 0;
             k--) {
            b->controls.data[k] = b->controls.data[k - 1];
            b->controls.data[k - 1] = key;
        }
    }
    return SONDE_OK;
}

/* Executor spans may begin before the model's first run: order by start again, and give ids. */
static sonde_status add_spans(builder *b, sonde_error *err)
{
    if (!sn_vec_reserve(&b->p->spans, b->p->alloc, b->events.n + 1))
        return sn_fail_memory(err, b->events.n * sizeof(sn_prof_span));
    SN_TRY(add_model_span(b, err));
    for (size_t i = 0; i < b->events.n; i++)
        SN_TRY(b->events.data[i].rec.kind == SN_TRACE_MEMORY
                   ? add_counters(b, &b->events.data[i], err)
                   : add_span(b, &b->events.data[i], err));
    sn_prof_span *spans = b->p->spans.data;
    const size_t n = b->p->spans.n;
    for (size_t i = 0; i < n; i++)
        spans[i].id = (uint32_t)i + 1;
    if (n && spans[0].cat == SN_CAT_MODEL) {
        const sn_prof_span model = spans[0];
        size_t at = 0;
        for (; at + 1 < n && spans[at + 1].start_ns < model.start_ns; at++)
            spans[at] = spans[at + 1];
        spans[at] = model;
    }
    return SONDE_OK;
}

static void describe_machine(builder *b, int level)
{
    sn_profile *p = b->p;
    const sn_context *core = &b->c->core;
    const char *cpu = sn_arena_strdup(&p->arena, core->cpu.model);
    p->version = SONDE_VERSION_TEXT;
    p->cpu_model = cpu ? cpu : "";
    p->cpu_level = sn_cpu_level_name(core->cpu.flags);
    p->cores = core->cpu.usable_cores;
    p->threads = core->threads;
    p->level = level;
    p->pid = (int64_t)getpid();
    p->record_ns = core->trace->record_ns;
    const uint64_t now = sn_now_ns();
    sn_api_profile_memory(p, b->c);
    p->start_wall_ns = sn_wall_ns() - (now > b->base_ns ? now - b->base_ns : 0);
}

sonde_status sn_api_profile_build(sonde_context *c, uint64_t since, uint32_t only_run, int level,
                                  sn_profile **profile, sonde_error *err)
{
    *profile = NULL;
    builder b = {.c = c};
    SN_TRY(sn_profile_new(&b.p, &c->alloc, err));
    sn_clock_calibrate(&b.clock);
    sonde_status st = gather(&b, since, err);
    if (st == SONDE_OK)
        st = list_runs(&b, err);
    if (st == SONDE_OK) {
        filter(&b, only_run);
        const uint64_t first = b.events.n ? b.events.data[0].rec.t0 : since;
        b.base_ns = sn_clock_ns(&b.clock, only_run || !since ? first : since);
        st = list_tables(&b, err);
    }
    if (st == SONDE_OK) {
        name_model(&b);
        describe_machine(&b, level);
        number_runs(&b);
        st = add_spans(&b, err);
    }
    sn_vec_free(&b.events, &c->alloc);
    sn_vec_free(&b.runs, &c->alloc);
    sn_vec_free(&b.tables, &c->alloc);
    sn_vec_free(&b.controls, &c->alloc);
    sn_vec_free(&b.operators, &c->alloc);
    if (st != SONDE_OK) {
        sn_profile_free(b.p);
        return st;
    }
    *profile = b.p;
    return SONDE_OK;
}
