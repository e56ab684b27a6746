/* SPDX-License-Identifier: Apache-2.0 */
/* What making a profile of records begins with: events in order of start with what contains before
 * what is contained, the runs they belong to, and the bindings that these ran. A run still under
 * way has not written its RUN record yet; its steps are left out, or wait for it where records are
 * drained meanwhile. */
#include "records/builder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/session.h"

/* ------------------------------------------------------------------ order */
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

void sn_builder_sort(sn_profile_builder *b)
{
    if (b->events.n > 1)
        qsort(b->events.data, b->events.n, sizeof(sn_event), by_start);
}

/* ------------------------------------------------------------------ threads and runs */
uint32_t sn_builder_thread(sn_profile_builder *b, const sn_trace_ring *r)
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

sn_run_row *sn_builder_run(const sn_profile_builder *b, uint32_t id)
{
    const sn_run_row key = {.id = id};
    return id && b->runs.n ? bsearch(&key, b->runs.data, b->runs.n, sizeof key, by_run_id) : NULL;
}

/* The top-level run a run belongs to; NULL when a link of the chain is missing. */
sn_run_row *sn_builder_root(const sn_profile_builder *b, uint32_t id)
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

static void add_caller(sn_run_row *run, const sn_trace_rec *r)
{
    const uint64_t number = sn_trace_number(r);
    const unsigned part = r->flags >> SN_TRACE_PART_SHIFT;
    if (part < 2)
        memcpy(run->caller.trace_id + part * sizeof number, &number, sizeof number);
    else
        memcpy(run->caller.span_id, &number, sizeof number);
    run->caller.flags = (uint8_t)r->index;
    run->caller_parts |= (uint8_t)(1u << part);
}

sonde_status sn_builder_list_runs(sn_profile_builder *b, sonde_error *err)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const sn_run_row row = {.id = r->run,
                                .parent = r->parent,
                                .event = (uint32_t)i,
                                .root = UINT32_MAX,
                                .held = UINT64_MAX,
                                .cut = (r->flags & SN_TRACE_CUT) != 0,
                                .sampled = (r->flags & SN_TRACE_SAMPLED) != 0,
                                .t0 = r->t0,
                                .t1 = r->t1};
        if (r->kind == SN_TRACE_RUN && !sn_vec_push(&b->runs, b->p->alloc, row))
            return sn_fail_memory(err, sizeof row);
    }
    if (b->runs.n > 1)
        qsort(b->runs.data, b->runs.n, sizeof(sn_run_row), by_run_id);
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const bool outputs = r->kind == SN_TRACE_ALLOC && r->index == SN_TRACE_NONE;
        const bool caller = r->kind == SN_TRACE_CALLER;
        sn_run_row *run = outputs || caller ? sn_builder_run(b, r->run) : NULL;
        if (run && caller)
            add_caller(run, r);
        else if (run)
            run->held = sn_trace_number(r);
    }
    return SONDE_OK;
}

/* Whether a recording wants an event: what belongs to an inference, if that began while it was not
 * paused; anything else, if a part of it lies there. */
static bool in_window(const sn_profile_builder *b, const sn_trace_rec *r, const sn_run_row *root)
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

void sn_builder_filter(sn_profile_builder *b, uint32_t only_run)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        const sn_run_row *root = sn_builder_root(b, r->run);
        const bool loose =
            r->kind == SN_TRACE_EXEC || r->kind == SN_TRACE_USER || r->kind == SN_TRACE_SLICE;
        const bool chosen = !b->only_sampled || (root && root->sampled);
        if ((only_run ? root && root->id == only_run : root || loose) && !(root && root->cut) &&
            chosen && in_window(b, r, root))
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
const sn_table_row *sn_builder_table(const sn_profile_builder *b, uint32_t id)
{
    const sn_table_row key = {.id = id};
    return b->tables.n ? bsearch(&key, b->tables.data, b->tables.n, sizeof key, by_table_id) : NULL;
}

static void note_precision(sn_profile *p, sonde_precision precision)
{
    const char *name = sn_precision_name(precision);
    p->precision = !*p->precision || strcmp(p->precision, name) == 0 ? name : "mixed";
}

sonde_status sn_builder_list_tables(sn_profile_builder *b, sonde_error *err)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const sn_trace_rec *r = &b->events.data[i].rec;
        if (r->kind != SN_TRACE_RUN || sn_builder_table(b, r->table))
            continue;
        sn_table_row row = {.id = r->table, .first_step = (uint32_t)b->p->steps.n};
        row.binding = sn_exec_pinned(b->r->ctx, r->table);
        if (row.binding) {
            row.n_steps = row.binding->n_steps;
            note_precision(b->p, row.binding->program->precision);
            SN_TRY(sn_records_add_steps(b->p, row.binding, &b->clock, b->brief, err));
            if (!b->brief)
                SN_TRY(sn_records_add_lives(b->p, row.binding, &row.bytes, err));
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

/* ------------------------------------------------------------------ times and facts */
uint64_t sn_builder_ns(const sn_profile_builder *b, uint64_t ticks)
{
    const uint64_t ns =
        b->streaming ? sn_clock_track_ns(&b->track, ticks) : sn_clock_ns(&b->clock, ticks);
    return ns > b->base_ns ? ns - b->base_ns : 0;
}

/* Top-level runs by start: from 1 over all, from 0 over measured ones and over warm-ups. */
void sn_builder_number_runs(sn_profile_builder *b)
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

sonde_status sn_builder_describe(sn_profile_builder *b, int level, sonde_error *err)
{
    sn_profile *p = b->p;
    const sn_context *ctx = b->r->ctx;
    const char *cpu = sn_arena_strdup(&p->arena, ctx->cpu.model);
    p->version = SONDE_VERSION_TEXT;
    p->cpu_model = cpu ? cpu : "";
    p->cpu_level = sn_cpu_level_name(ctx->cpu.flags);
    p->cores = ctx->cpu.usable_cores;
    p->threads = ctx->threads;
    p->level = level;
    p->pid = (int64_t)getpid();
    p->record_ns = ctx->trace->record_ns;
    sn_machine_describe_peaks(b->r->machine, ctx->threads, p);
    sn_machine_describe_counters(b->r->machine, p);
    return sn_builder_describe_origin(b, err);
}

void sn_builder_free_tables(sn_profile_builder *b)
{
    sn_allocator *alloc = b->r->ctx->alloc;
    sn_vec_free(&b->events, alloc);
    sn_vec_free(&b->runs, alloc);
    sn_vec_free(&b->tables, alloc);
    sn_vec_free(&b->controls, alloc);
    sn_vec_free(&b->operators, alloc);
    sn_vec_free(&b->written, alloc);
    sn_vec_free(&b->changes, alloc);
}
