/* SPDX-License-Identifier: Apache-2.0 */
/* The profiling twin of run.c: the same run with a record for every step, for memory taken and
 * given back, and for the run itself; and the verbose form that prints every step. What recording
 * costs lies between the intervals, never inside one. Not built when SONDE_RECORDER is off, which
 * is how one can see that a recorder that is off costs nothing. */
#include "exec/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/counters.h"
#include "base/utf8.h"
#include "exec/pins.h"

#if SONDE_RECORDER

/* ------------------------------------------------------------------ recording */

static uint64_t held_bytes(const sn_context *ctx)
{
    return atomic_load_explicit(&ctx->alloc->live_bytes, memory_order_relaxed);
}

/* What is held after a step. */
static void push_memory(sn_trace_ring *ring, const sn_trace_rec *step, uint64_t held)
{
    sn_trace_rec rec = *step;
    rec.kind = SN_TRACE_MEMORY;
    rec.t0 = rec.t1;
    sn_trace_set_number(&rec, held);
    sn_trace_push(ring, &rec);
}

/* What each hardware counter counted in a step. */
static void push_counts(sn_trace_ring *ring, const sn_trace_rec *step, const uint64_t *before,
                        const uint64_t *after)
{
    sn_trace_rec rec = *step;
    rec.kind = SN_TRACE_COUNT;
    rec.t0 = rec.t1;
    for (unsigned k = 0; k < SN_HW_COUNT; k++) {
        rec.flags = (uint16_t)(step->flags | k << SN_TRACE_HW_SHIFT);
        sn_trace_set_number(&rec, after[k] > before[k] ? after[k] - before[k] : 0);
        sn_trace_push(ring, &rec);
    }
}

/* A control step's own share is not known: its bodies count in their own steps. */
static const sn_counters *counters_of(const sn_counters *all, const sn_step *s)
{
    return s->op && (s->op->flags & SN_OP_CONTROL) ? NULL : all;
}

/* A step's record, written part by part where it stays. */
static inline void push_step(sn_trace_ring *ring, const sn_run *run, uint32_t table, uint32_t step,
                             uint64_t t0, uint64_t t1)
{
    sn_trace_rec *rec = sn_trace_place(ring);
    if (!rec)
        return;
    rec->t0 = t0;
    rec->t1 = t1;
    rec->table = table;
    rec->index = step;
    rec->run = run->id;
    rec->parent = rec->parent_index = 0;
    rec->kind = SN_TRACE_STEP;
    rec->flags = run->flags;
    sn_trace_commit(ring);
}

/* `detailed`: memory and counters are looked at too. A constant where this is used, so that the
 * plain loop is made without them. */
__attribute__((always_inline)) static inline sonde_status record_steps(sn_run *run, bool detailed)
{
    const sn_binding *b = run->binding;
    const uint32_t table = b->id;
    sn_frame *f = &run->frame->f;
    sn_trace_ring *ring = run->ring;
    const bool memory =
        detailed && atomic_load_explicit(&f->ctx->trace->memory, memory_order_relaxed);
    const sn_counters *counters =
        detailed ? atomic_load_explicit(&f->ctx->trace->counters, memory_order_acquire) : NULL;
    uint64_t before[SN_HW_COUNT], after[SN_HW_COUNT];
    sonde_status st = SONDE_OK;
    for (uint32_t i = 0; i < b->n_steps && !st; i++) {
        const sn_step *s = &b->steps[i];
        if (sn_run_stopped(run))
            return sn_stop_error(run->call->err);
        const sn_counters *counted = counters ? counters_of(counters, s) : NULL;
        if (counted)
            sn_counters_read(counted, before);
        const uint64_t t0 = sn_ticks();
        st = s->run(s, f);
        const uint64_t t1 = sn_ticks();
        push_step(ring, run, table, i, t0, t1);
        sn_trace_rec more = {
            .t0 = t1, .t1 = t1, .table = table, .index = i, .run = run->id, .flags = run->flags};
        if (counted) {
            sn_counters_read(counted, after);
            push_counts(ring, &more, before, after);
        }
        if (memory)
            push_memory(ring, &more, held_bytes(f->ctx));
        if (b->is_static || b->release_start[i] == b->release_start[i + 1] || st)
            continue;
        more.kind = SN_TRACE_ALLOC;
        more.t0 = sn_ticks();
        sn_run_release(b, f, i);
        more.t1 = sn_ticks();
        sn_trace_push(ring, &more);
    }
    return st;
}

static sonde_status loop_plain(sn_run *run)
{
    return record_steps(run, false);
}

static sonde_status loop_detailed(sn_run *run)
{
    return record_steps(run, true);
}

static sonde_status loop_profile(sn_run *run)
{
    sn_trace *trace = run->frame->f.ctx->trace;
    const bool detailed = atomic_load_explicit(&trace->memory, memory_order_relaxed) ||
                          atomic_load_explicit(&trace->counters, memory_order_relaxed);
    return detailed ? loop_detailed(run) : loop_plain(run);
}

/* ------------------------------------------------------------------ verbose */

/* A line that is put together, as long as names are, and goes out whole: other runs print too. */
typedef struct verbose_line {
    const sn_run *run;
    SN_VEC(char) text;
} verbose_line;

static void say(verbose_line *l, const char *text)
{
    const size_t n = strlen(text);
    /* Out of memory: the run matters more than its report. */
    (void)sn_vec_append(&l->text, l->run->frame->f.ctx->alloc, text, n);
}

/* Names come from models: nothing of them but text reaches a terminal. */
static void say_name(verbose_line *l, const char *name)
{
    const size_t from = l->text.n;
    size_t to = from;
    uint32_t code;
    say(l, name);
    for (size_t at = from, n; at < l->text.n; at += n ? n : 1) {
        char *c = l->text.data + at;
        n = sn_utf8_char((const unsigned char *)c, l->text.n - at, &code);
        if (!n || code < 0x20 || (code >= 0x7F && code < 0xA0)) {
            l->text.data[to++] = '?';
        } else {
            memmove(l->text.data + to, c, n);
            to += n;
        }
    }
    l->text.n = to;
}

static void end_line(verbose_line *l, const char *text)
{
    const sn_run_config *cfg = l->run->call->cfg;
    say(l, text);
    if (l->text.n)
        cfg->verbose(cfg->verbose_user, l->text.data, l->text.n);
    l->text.n = 0;
}

static void print_slot(verbose_line *l, const char *what, uint32_t k, const char *name,
                       const sn_value *v, const sn_slot *slot)
{
    char type[256], text[320];
    if (slot->kind == SN_KIND_TENSOR) {
        sn_type t = {.kind = SN_KIND_TENSOR,
                     .dtype = slot->t.dtype,
                     .rank = slot->t.rank,
                     .dims = slot->t.dims};
        sn_type_text(&t, NULL, type, sizeof type);
    } else {
        sn_type_text(&v->fact.type, NULL, type, sizeof type);
    }
    snprintf(text, sizeof text, "  %s %" PRIu32 ": ", what, k);
    say(l, text);
    say_name(l, name);
    snprintf(text, sizeof text, " (%s)\n", type);
    end_line(l, text);
}

/* "#3 Conv+Relu (conv1, relu1)": what kind of step, and all the nodes of the file it stands for. */
static void print_step(verbose_line *l, uint32_t i, const sn_node *n)
{
    const sn_graph *g = l->run->binding->program->graph;
    char number[16];
    snprintf(number, sizeof number, "#%" PRIu32 " ", i);
    say(l, number);
    say_name(l, n->shown_type);
    say(l, *n->post_op ? "+" : "");
    say(l, n->post_op);
    say(l, " (");
    for (uint32_t k = 0; g->origins && k < n->n_origins; k++) {
        const sn_origin *o = &g->origins->list.data[n->origins[k]];
        say(l, k ? ", " : "");
        say_name(l, *o->name || n->n_origins == 1 ? o->name : o->op_type);
    }
    end_line(l, ")\n");
}

static sonde_status loop_verbose(sn_run *run)
{
    const sn_binding *b = run->binding;
    sn_frame *f = &run->frame->f;
    sn_clock clock;
    sn_clock_calibrate(&clock);
    sonde_status st = SONDE_OK;
    verbose_line line = {.run = run};
    char time[64];
    for (uint32_t i = 0; i < b->n_steps && !st; i++) {
        const sn_step *s = &b->steps[i];
        const sn_node *n = s->node;
        if (sn_run_stopped(run)) {
            st = sn_stop_error(run->call->err);
            break;
        }
        print_step(&line, i, n);
        for (uint32_t k = 0; k < s->n_in; k++)
            if (sn_has(s, k))
                print_slot(&line, "input", k, sn_edge_shown(&n->in[k]), n->in[k].value,
                           sn_in_slot(s, f, k));
        uint64_t t0 = sn_ticks();
        st = s->run(s, f);
        uint64_t t1 = sn_ticks();
        for (uint32_t k = 0; k < s->n_out && !st; k++)
            if (sn_wants(s, k))
                print_slot(&line, "output", k, sn_value_shown(n->out[k]), n->out[k],
                           sn_out_slot(s, f, k));
        const double ns = sn_ticks_to_ns(&clock, t1 - t0); /* three digits of the shortest, too */
        snprintf(time, sizeof time, "  time: %.*fms%s\n", ns < 1e5 ? 6 : 3, ns / 1e6,
                 st ? " (failed)" : "");
        end_line(&line, time);
        if (run->ring) {
            sn_trace_rec rec = {.t0 = t0,
                                .t1 = t1,
                                .table = b->id,
                                .index = i,
                                .run = run->id,
                                .kind = SN_TRACE_STEP,
                                .flags = run->flags};
            sn_trace_push(run->ring, &rec);
        }
        if (!b->is_static)
            sn_run_release(b, f, i);
    }
    sn_vec_free(&line.text, f->ctx->alloc);
    return st;
}

/* ------------------------------------------------------------------ the call */

static void push_run(const sn_run *run, uint64_t t0, uint64_t t1)
{
    const sn_run *parent = run->call->parent;
    const sn_trace_rec rec = {.t0 = t0,
                              .t1 = t1,
                              .table = run->binding->id,
                              .index = run->call->instance,
                              .run = run->id,
                              .parent = parent ? parent->id : 0,
                              .parent_index = run->call->parent_step,
                              .kind = SN_TRACE_RUN,
                              .flags = run->flags};
    sn_trace_push(run->ring, &rec);
}

/* The caller's trace, in parts: a record has room for 8 bytes. */
static void push_caller(const sn_run *run, uint64_t t)
{
    const sn_caller *caller = run->call->cfg->caller;
    uint64_t numbers[3];
    memcpy(numbers, caller->trace_id, sizeof caller->trace_id);
    memcpy(numbers + 2, caller->span_id, sizeof caller->span_id);
    for (unsigned part = 0; part < 3; part++) {
        sn_trace_rec rec = {.t0 = t,
                            .t1 = t,
                            .table = run->binding->id,
                            .index = caller->flags,
                            .run = run->id,
                            .kind = SN_TRACE_CALLER,
                            .flags = (uint16_t)(run->flags | part << SN_TRACE_PART_SHIFT)};
        sn_trace_set_number(&rec, numbers[part]);
        sn_trace_push(run->ring, &rec);
    }
}

/* The time that a run's outputs took, and what is held from then on. */
static void push_outputs(const sn_run *run, uint64_t t0, uint64_t t1)
{
    sn_trace_rec rec = {.t0 = t0,
                        .t1 = t1,
                        .table = run->binding->id,
                        .index = SN_TRACE_NONE,
                        .run = run->id,
                        .kind = SN_TRACE_ALLOC,
                        .flags = run->flags};
    sn_trace_set_number(&rec, held_bytes(run->frame->f.ctx));
    sn_trace_push(run->ring, &rec);
}

sonde_status sn_call_recorded(const sn_call *call)
{
    sn_context *ctx = call->program->ctx;
    sn_trace *trace = ctx->trace;
    sn_run_config *cfg = call->cfg;
    sn_run run = {.call = call, .self = sn_call_recorded};
    SN_TRY(sn_run_begin(&run));
    if (cfg->record || sn_trace_on(trace, 1))
        run.ring = sn_trace_ring_get(trace); /* out of memory: the run goes on unrecorded */
    if (run.ring) {
        run.id = atomic_fetch_add(&trace->next_run, 1) + 1;
        run.flags =
            (uint16_t)((cfg->warmup ? SN_TRACE_WARMUP : 0) | (run.bound ? SN_TRACE_BOUND : 0) |
                       (cfg->sampled ? SN_TRACE_SAMPLED : 0));
        if (!call->parent)
            cfg->run_id = run.id;
        if (!atomic_load_explicit(&run.binding->pinned, memory_order_acquire))
            sn_pin_binding(ctx->pins, run.binding);
    }
    uint64_t t0 = sn_ticks();
    sonde_status st = sn_run_set_outputs(&run);
    uint64_t t1 = sn_ticks();
    if (run.ring && cfg->caller && !call->parent)
        push_caller(&run, t0);
    if (run.ring)
        push_outputs(&run, t0, t1);
    if (!st)
        st = cfg->verbose ? loop_verbose(&run) : run.ring ? loop_profile(&run) : sn_run_steps(&run);
    if (!st)
        st = sn_run_take_outputs(&run);
    if (st == SONDE_CANCELLED) /* half a run is none */
        run.flags |= SN_TRACE_CUT;
    if (run.ring)
        push_run(&run, t0, sn_ticks());
    sn_run_end(&run, st);
    if (run.ring && !call->parent &&
        atomic_load_explicit(&trace->drain.readers, memory_order_relaxed))
        sn_trace_make_room(trace);
    return st;
}

#else

sonde_status sn_call_recorded(const sn_call *call)
{
    return sn_call_plain(call);
}

#endif
