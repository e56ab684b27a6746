/* SPDX-License-Identifier: Apache-2.0 */
/* Records ► profile. Records are gathered from all rings, put in order of start with what contains
 * before what is contained, and linked: a step to its run, a body's run to the control step that
 * called it, a worker's slice to the step it worked for. A run still under way has not written its
 * RUN record yet; its steps are left out, or wait for it where records are drained meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/machine.h"
#include "api/profile_build.h"
#include "api/profile_steps.h"
#include "base/counters.h"
#include "plan/binding.h"

static uint32_t rank_of(uint16_t kind)
{
    return kind == SN_TRACE_RUN ? 0 : kind == SN_TRACE_STEP ? 1 : 2;
}

static int by_start(const void *a, const void *b)
{
    const sn_trace_rec *x = &((const sn_event *)a)->rec, *y = &((const sn_event *)b)->rec;
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
    const sn_run_row *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_table_id(const void *a, const void *b)
{
    const sn_table_row *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_step(const void *a, const void *b)
{
    const sn_step_key *x = a, *y = b;
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
uint32_t sn_builder_thread(sn_builder *b, const sn_trace_ring *r)
{
    sn_profile *p = b->p;
    for (size_t i = 0; i < p->threads_seen.n; i++)
        if (p->threads_seen.data[i].id == r->thread_id)
            return (uint32_t)i;
    const sn_prof_thread thread = {.id = r->thread_id,
                                   .os_tid = r->os_tid,
                                   .name = sn_arena_strdup(&p->arena, r->thread_name)};
    if (!thread.name || !sn_vec_push(&p->threads_seen, p->alloc, thread))
        return UINT32_MAX;
    return (uint32_t)p->threads_seen.n - 1;
}

static sonde_status gather(sn_builder *b, uint64_t since, sonde_error *err)
{
    sn_profile *p = b->p;
    for (const sn_trace_ring *r = atomic_load(&b->c->core.trace->rings); r; r = r->next) {
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
    sort(b->events.data, b->events.n, sizeof(sn_event), by_start);
    return SONDE_OK;
}

sn_run_row *sn_builder_run(const sn_builder *b, uint32_t id)
{
    const sn_run_row key = {.id = id};
    return id && b->runs.n ? bsearch(&key, b->runs.data, b->runs.n, sizeof key, by_run_id) : NULL;
}

/* The top-level run a run belongs to; NULL when a link of the chain is missing. */
static sn_run_row *root_of(const sn_builder *b, uint32_t id)
{
    sn_run_row *start = sn_builder_run(b, id), *at = start;
    /* Parents have smaller numbers: the chain ends. */
    while (at && at->parent && at->root == UINT32_MAX)
        at = at->parent < at->id ? sn_builder_run(b, at->parent) : NULL;
    if (!at)
        return NULL;
    const uint32_t root = at->parent ? at->root : (uint32_t)(at - b->runs.data);
    start->root = root;
    return &b->runs.data[root];
}

static sonde_status list_runs(sn_builder *b, sonde_error *err)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const sn_run_row row = {.id = r->run,
                                .parent = r->parent,
                                .event = (uint32_t)i,
                                .root = UINT32_MAX,
                                .cut = (r->flags & SN_TRACE_CUT) != 0,
                                .t0 = r->t0,
                                .t1 = r->t1};
        if (r->kind == SN_TRACE_RUN && !sn_vec_push(&b->runs, b->p->alloc, row))
            return sn_fail_memory(err, sizeof row);
    }
    sort(b->runs.data, b->runs.n, sizeof(sn_run_row), by_run_id);
    return SONDE_OK;
}

/* Whether a recording wants an event: what belongs to an inference, if that began while it was not
 * paused; anything else, if a part of it lies there. */
static bool in_window(const sn_builder *b, const sn_trace_rec *r, const sn_run_row *root)
{
    if (!b->windows)
        return true;
    if ((r->kind == SN_TRACE_EXEC && b->level < 2) || (r->kind == SN_TRACE_SLICE && b->level < 3))
        return false;
    /* They are in order and do not overlap: the last that began in time decides. */
    const uint64_t end = root ? root->t0 : r->t1, start = root ? root->t0 : r->t0;
    size_t low = 0, high = b->n_windows;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (b->windows[middle].from <= end)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && b->windows[low - 1].to > start;
}

/* Drops what is not wanted: steps of unfinished and of cancelled runs, what lies outside of the
 * windows and, with `only_run`, all but that inference. */
static void filter(sn_builder *b, uint32_t only_run)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const sn_run_row *root = root_of(b, r->run);
        const bool loose =
            r->kind == SN_TRACE_EXEC || r->kind == SN_TRACE_USER || r->kind == SN_TRACE_SLICE;
        if ((only_run ? root && root->id == only_run : root || loose) && !(root && root->cut) &&
            in_window(b, r, root))
            b->events.data[kept++] = b->events.data[i];
    }
    b->events.n = kept;
    for (size_t i = 0; i < b->events.n; i++) {
        sn_run_row *run = b->events.data[i].rec.kind == SN_TRACE_RUN
                              ? sn_builder_run(b, b->events.data[i].rec.run)
                              : NULL;
        if (run)
            run->event = (uint32_t)i;
    }
}

/* ------------------------------------------------------------------ tables */
const sn_table_row *sn_builder_table(const sn_builder *b, uint32_t id)
{
    const sn_table_row key = {.id = id};
    return b->tables.n ? bsearch(&key, b->tables.data, b->tables.n, sizeof key, by_table_id) : NULL;
}

static sonde_status list_tables(sn_builder *b, sonde_error *err)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        if (r->kind != SN_TRACE_RUN || sn_builder_table(b, r->table))
            continue;
        sn_table_row row = {.id = r->table, .first_step = (uint32_t)b->p->steps.n};
        row.binding = sn_exec_pinned(&b->c->core, r->table);
        if (row.binding) {
            row.n_steps = row.binding->n_steps;
            SN_TRY(sn_api_profile_steps(b->p, row.binding, &b->clock, err));
            SN_TRY(sn_api_profile_lives(b->p, row.binding, &row.bytes, err));
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

/* ------------------------------------------------------------------ spans */
uint64_t sn_builder_ns(const sn_builder *b, uint64_t ticks)
{
    const uint64_t ns = sn_clock_ns(&b->clock, ticks);
    return ns > b->base_ns ? ns - b->base_ns : 0;
}

/* Top-level runs by start: from 1 over all, from 0 over measured ones and over warm-ups. */
static void number_runs(sn_builder *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        if (r->kind != SN_TRACE_RUN)
            continue;
        if (!b->first_ticks) {
            b->first_ticks = r->t0;
            b->model_thread = b->events.data[i].thread;
        }
        b->last_ticks = r->t1 > b->last_ticks ? r->t1 : b->last_ticks;
        if (r->parent)
            continue;
        sn_run_row *run = sn_builder_run(b, r->run);
        run->number = ++b->numbers;
        run->iteration = b->iterations[(r->flags & SN_TRACE_WARMUP) != 0]++;
    }
}

/* One span over everything a model did: the parent of its iterations, but for those in a record. */
bool sn_builder_model_span(const sn_builder *b, sn_prof_span *span)
{
    if (!b->first_ticks)
        return false;
    const uint64_t start = sn_builder_ns(b, b->first_ticks);
    *span = (sn_prof_span){.id = 1,
                           .cat = SN_CAT_MODEL,
                           .thread = b->model_thread,
                           .start_ns = start,
                           .dur_ns = sn_builder_ns(b, b->last_ticks) - start,
                           .step = UINT32_MAX,
                           .name = b->p->model_name,
                           .args = ""};
    return true;
}

/* The operator a slice is a share of: the latest on the calling thread that began before it and
 * ended after it. NULL: none, as while weights are packed. */
static const sn_prof_span *operator_of(const sn_builder *b, const sn_event *slice)
{
    const uint64_t start_ns = sn_builder_ns(b, slice->rec.t0);
    const size_t most = 64 * b->p->threads_seen.n; /* every thread may have begun others since */
    for (size_t i = b->operators.n, look = most; i > 0 && look > 0; i--, look--) {
        const sn_prof_span *s = &b->p->spans.data[b->operators.data[i - 1]];
        if (b->p->threads_seen.data[s->thread].id == slice->rec.parent && s->start_ns <= start_ns &&
            s->start_ns + s->dur_ns >= start_ns)
            return s;
    }
    return NULL;
}

static const char *span_name(sn_builder *b, const sn_event *e, const sn_prof_span *s,
                             const sn_run_row *run)
{
    switch (e->rec.kind) {
    case SN_TRACE_RUN:
        if (e->rec.parent)
            return "body";
        return sn_arena_printf(b->texts, "%s%u", s->warmup ? "Warmup" : "Iteration",
                               run ? run->iteration : 0);
    case SN_TRACE_STEP:
        return s->step != UINT32_MAX ? b->p->steps.data[s->step].op_type : "step";
    case SN_TRACE_SLICE:
        return "slice";
    case SN_TRACE_ALLOC:
        return "memory";
    default:
        return sn_arena_strdup(b->texts, sn_trace_name_text(b->c->core.trace, e->rec.index));
    }
}

/* "name<1f>category<1f>text" ► its parts. The text is missing where there were too many of them. */
static void split_scope(sn_prof_span *s)
{
    char *at = strchr((char *)(uintptr_t)s->name, SN_TRACE_SEPARATOR); /* the profile's own copy */
    if (!at)
        return;
    *at++ = 0;
    s->category = at;
    at = strchr(at, SN_TRACE_SEPARATOR);
    if (!at)
        return;
    *at++ = 0;
    s->args = at;
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

static uint32_t parent_of(const sn_builder *b, const sn_event *e)
{
    const sn_trace_rec *r = &e->rec;
    if (r->kind == SN_TRACE_RUN) {
        if (!r->parent)
            return 1; /* the model's */
        const sn_step_key key = {.run = r->parent, .index = r->parent_index};
        const sn_step_key *control =
            b->controls.n ? bsearch(&key, b->controls.data, b->controls.n, sizeof key, by_step)
                          : NULL;
        return control ? b->p->spans.data[control->span].id : 0;
    }
    const sn_run_row *run = sn_builder_run(b, r->run);
    return run ? b->events.data[run->event].span : 0;
}

/* A MEMORY record is two counters. */
static sonde_status add_counters(sn_builder *b, const sn_event *e, sonde_error *err)
{
    const sn_trace_rec *r = &e->rec;
    const sn_table_row *table = sn_builder_table(b, r->table);
    if (!table || !table->bytes || r->index >= table->n_steps)
        return SONDE_OK;
    const double taken = (double)r->parent_index * 64, held = (double)r->parent * 64;
    const sn_prof_counter used = {.at_ns = sn_builder_ns(b, r->t0),
                                  .name = SN_COUNTER_USED,
                                  .value = (double)table->bytes[r->index].used + taken,
                                  .step = table->first_step + r->index};
    sn_prof_counter allocated = used;
    allocated.name = SN_COUNTER_ALLOCATED;
    allocated.value = held;
    return sn_vec_push(&b->p->counters, b->p->alloc, used) &&
                   sn_vec_push(&b->p->counters, b->p->alloc, allocated)
               ? SONDE_OK
               : sn_fail_memory(err, sizeof used);
}

/* A COUNT record adds to its step. */
static void add_count(sn_builder *b, const sn_trace_rec *r)
{
    const sn_table_row *table = sn_builder_table(b, r->table);
    if (!table || r->index >= table->n_steps || (r->flags & SN_TRACE_WARMUP))
        return;
    if (!b->counted)
        b->p->record_ns += sn_api_counters_cost_ns(b->c);
    b->counted = true;
    sn_prof_hw *hw = &b->p->steps.data[table->first_step + r->index].hw;
    const double n = (double)((uint64_t)r->parent_index << 32 | r->parent);
    switch ((sn_hw)(r->flags >> SN_TRACE_HW_SHIFT)) {
    case SN_HW_CYCLES:
        hw->cycles += n;
        hw->calls++;
        break;
    case SN_HW_INSTRUCTIONS:
        hw->instructions += n;
        break;
    case SN_HW_CACHE_MISSES:
        hw->cache_misses += n;
        break;
    case SN_HW_BRANCH_MISSES:
        hw->branch_misses += n;
        break;
    case SN_HW_COUNT:
        break;
    }
}

static sonde_status add_span(sn_builder *b, sn_event *e, sonde_error *err)
{
    const sn_trace_rec *r = &e->rec;
    sn_prof_span s = {.cat = category(r),
                      .thread = e->thread,
                      .start_ns = sn_builder_ns(b, r->t0),
                      .step = UINT32_MAX,
                      .args = ""};
    s.dur_ns = sn_builder_ns(b, r->t1) - s.start_ns;
    const sn_run_row *root = root_of(b, r->run);
    if (root) {
        s.run = root->number;
        s.iteration = root->iteration;
        s.instance = b->events.data[root->event].rec.index;
        s.warmup = (b->events.data[root->event].rec.flags & SN_TRACE_WARMUP) != 0;
    }
    if (r->kind == SN_TRACE_STEP) {
        const sn_table_row *table = sn_builder_table(b, r->table);
        if (table && r->index < table->n_steps)
            s.step = table->first_step + r->index;
        s.bound = (r->flags & SN_TRACE_BOUND) != 0;
    }
    s.id = ++b->ids;
    s.parent = parent_of(b, e);
    const sn_prof_span *op = r->kind == SN_TRACE_SLICE ? operator_of(b, e) : NULL;
    if (op) {
        s.parent = op->id;
        s.step = op->step;
        s.run = op->run;
        s.iteration = op->iteration;
        s.instance = op->instance;
        s.warmup = op->warmup;
    }
    s.name = span_name(b, e, &s, root);
    const uint32_t at = (uint32_t)b->p->spans.n;
    if (r->kind == SN_TRACE_USER)
        s.warmup = (r->flags & SN_TRACE_WARMUP) != 0;
    if (s.name && r->kind == SN_TRACE_USER && (r->flags & SN_TRACE_PARTED))
        split_scope(&s);
    if (!s.name || !sn_vec_push(&b->p->spans, b->p->alloc, s))
        return sn_fail_memory(err, sizeof s);
    e->span = s.id;
    if (r->kind == SN_TRACE_STEP && !sn_vec_push(&b->operators, b->p->alloc, at))
        return sn_fail_memory(err, sizeof at);
    if (s.cat == SN_CAT_OPERATOR && s.step != UINT32_MAX && b->p->steps.data[s.step].control) {
        /* Runs are numbered as they begin, so keys arrive in order but for concurrent runs. */
        const sn_step_key key = {.run = r->run, .index = r->index, .span = at};
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

/* Executor spans may begin before the model's first run: it goes where its start says. */
static sonde_status add_spans(sn_builder *b, uint64_t until, sonde_error *err)
{
    if (!sn_vec_reserve(&b->p->spans, b->p->alloc, b->events.n + 1))
        return sn_fail_memory(err, b->events.n * sizeof(sn_prof_span));
    sn_prof_span model;
    bool pending = !b->streaming && sn_builder_model_span(b, &model);
    if (!b->ids)
        b->ids = 1; /* the model's, whether it shows or not */
    for (size_t i = 0; i < b->events.n; i++) {
        sn_event *e = &b->events.data[i];
        if (pending && sn_builder_ns(b, e->rec.t0) >= model.start_ns) {
            b->p->spans.data[b->p->spans.n++] = model; /* room was made above */
            pending = false;
        }
        if (e->rec.kind == SN_TRACE_COUNT)
            add_count(b, &e->rec);
        else
            SN_TRY(e->rec.kind == SN_TRACE_MEMORY ? add_counters(b, e, err) : add_span(b, e, err));
    }
    return sn_builder_live(b, until, err);
}

static void describe_machine(sn_builder *b, int level)
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
    sn_api_describe_peaks(b->c, p);
    sn_api_describe_counters(b->c, p);
    const uint64_t now = sn_now_ns();
    p->start_wall_ns = sn_wall_ns() - (now > b->base_ns ? now - b->base_ns : 0);
}

static void free_tables(sn_builder *b)
{
    sn_allocator *alloc = &b->c->alloc;
    sn_vec_free(&b->events, alloc);
    sn_vec_free(&b->runs, alloc);
    sn_vec_free(&b->tables, alloc);
    sn_vec_free(&b->controls, alloc);
    sn_vec_free(&b->operators, alloc);
    sn_vec_free(&b->written, alloc);
    sn_vec_free(&b->changes, alloc);
}

/* `template` says what is wanted. */
static sonde_status build(const sn_builder *template, uint64_t since, uint32_t only_run,
                          sn_profile **profile, sonde_error *err)
{
    sn_builder b = *template;
    sonde_context *c = b.c;
    *profile = NULL;
    SN_TRY(sn_profile_new(&b.p, &c->alloc, err));
    b.texts = &b.p->arena;
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
        sn_builder_name_model(&b);
        describe_machine(&b, b.level);
        sn_api_profile_memory(b.p, c);
        number_runs(&b);
        st = add_spans(&b, UINT64_MAX, err);
    }
    if (st == SONDE_OK)
        st = sn_profile_link_records(b.p, err);
    free_tables(&b);
    if (st != SONDE_OK) {
        sn_profile_free(b.p);
        return st;
    }
    *profile = b.p;
    return SONDE_OK;
}

sonde_status sn_api_profile_build(sonde_context *c, uint64_t since, uint32_t only_run, int level,
                                  sn_profile **profile, sonde_error *err)
{
    const sn_builder wanted = {.c = c, .level = level};
    return build(&wanted, since, only_run, profile, err);
}

sonde_status sn_api_profile_build_within(sonde_context *c, const sn_window *windows, size_t n,
                                         int level, sn_profile **profile, sonde_error *err)
{
    const sn_builder wanted = {.c = c, .level = level, .windows = windows, .n_windows = n};
    return build(&wanted, windows[0].from, 0, profile, err);
}

/* ------------------------------------------------------------------ batch by batch */
sonde_status sn_builder_init(sn_builder *b, sonde_context *c, uint64_t since, int level,
                             sonde_error *err)
{
    *b = (sn_builder){.c = c, .streaming = true};
    SN_TRY(sn_profile_new(&b->p, &c->alloc, err));
    sn_arena_init(&b->batch, &c->alloc);
    b->texts = &b->batch;
    sn_clock_calibrate(&b->clock);
    b->base_ns = sn_clock_ns(&b->clock, since);
    describe_machine(b, level);
    return SONDE_OK;
}

/* Whether an event must wait for the end of its run. A slice does not know its run: it waits until
 * the thread that called for it has written the step it lies in, and then with that step. */
static bool must_wait(const sn_builder *b, const sn_event *e, uint64_t waits_since)
{
    const sn_trace_rec *r = &e->rec;
    if (r->kind != SN_TRACE_SLICE)
        return r->run && !root_of(b, r->run);
    for (size_t i = 0; i < b->written.n && i < b->p->threads_seen.n; i++)
        if (b->p->threads_seen.data[i].id == r->parent)
            return r->t1 > b->written.data[i] || r->t0 >= waits_since;
    return false;
}

/* Up to when each thread has written its steps; the earliest start of those that wait. */
static bool look_ahead(sn_builder *b, uint64_t *waits_since)
{
    *waits_since = UINT64_MAX;
    if (b->p->level < 3)
        return true; /* no slices */
    while (b->written.n < b->p->threads_seen.n)
        if (!sn_vec_push(&b->written, b->p->alloc, 0))
            return false;
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_event *e = &b->events.data[i];
        const uint16_t kind = e->rec.kind;
        uint64_t *written = &b->written.data[e->thread];
        if ((kind == SN_TRACE_STEP || kind == SN_TRACE_RUN || kind == SN_TRACE_EXEC) &&
            e->rec.t1 > *written)
            *written = e->rec.t1;
        if (kind == SN_TRACE_STEP && e->rec.t0 < *waits_since && must_wait(b, e, 0))
            *waits_since = e->rec.t0;
    }
    return true;
}

/* Events that must wait go to `waiting`, which has room for all. */
static size_t hold_back(sn_builder *b, sn_event *waiting, uint64_t waits_since)
{
    size_t kept = 0, held = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        if (must_wait(b, &b->events.data[i], waits_since))
            waiting[held++] = b->events.data[i];
        else
            b->events.data[kept++] = b->events.data[i];
    }
    b->events.n = kept;
    return held;
}

/* The earliest that a run under way may still have to say; they wait in order of start. */
static uint64_t earliest(const sn_event *waiting, size_t n, uint64_t until)
{
    for (size_t i = 0; i < n; i++)
        if (waiting[i].rec.run)
            return waiting[i].rec.t0 < until ? waiting[i].rec.t0 : until;
    return until;
}

sonde_status sn_builder_batch(sn_builder *b, size_t keep, uint64_t until, sonde_error *err)
{
    sn_allocator *alloc = b->p->alloc;
    const size_t n = b->events.n;
    b->p->spans.n = b->p->counters.n = 0;
    sn_arena_reset(&b->batch);
    b->runs.n = b->controls.n = b->operators.n = 0;
    sort(b->events.data, n, sizeof(sn_event), by_start);
    SN_TRY(list_runs(b, err));
    uint64_t waits_since;
    sn_event *waiting = sn_alloc(alloc, n * sizeof *waiting);
    if (!waiting || !look_ahead(b, &waits_since)) {
        sn_free(alloc, waiting, n * sizeof *waiting);
        return sn_fail_memory(err, n * sizeof *waiting);
    }
    size_t held = hold_back(b, waiting, waits_since);
    filter(b, 0);
    sonde_status st = list_tables(b, err);
    if (st == SONDE_OK && !*b->p->model_name)
        sn_builder_name_model(b);
    if (held > keep) { /* a run without end, or one whose record was lost */
        b->p->dropped += held;
        held = 0;
    }
    if (st == SONDE_OK) {
        const bool last = until == UINT64_MAX;
        number_runs(b);
        st = add_spans(b, last ? until : earliest(waiting, held, until), err);
    }
    if (held)
        memcpy(b->events.data, waiting, held * sizeof *waiting); /* there was room for n */
    b->events.n = held;
    sn_free(alloc, waiting, n * sizeof *waiting);
    return st;
}

void sn_builder_free(sn_builder *b)
{
    if (!b->c)
        return;
    free_tables(b);
    sn_arena_free(&b->batch);
    sn_profile_free(b->p);
    *b = (sn_builder){.c = NULL};
}
