/* SPDX-License-Identifier: Apache-2.0 */
/* One run: find the binding, check out a frame, point the slots of inputs and outputs at memory,
 * loop over the steps, hand over the results. Bodies of control flow come through the same door.
 * The loop does nothing but call steps: no allocation, no check, no lock; cancel is one relaxed
 * load a step, and a run that may be interrupted looks at the clock, too. Profiling is a twin of
 * this call (run_recorded.c), not a branch in it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "exec/run.h"
#include "plan/memory_nodes.h"

static const _Atomic int never_cancelled;

/* ------------------------------------------------------------------ frames */

static void frame_free(sn_frame_impl *f)
{
    sn_allocator *alloc = f->binding->arena.alloc;
    if (f->f.workspace)
        sn_workspace_open(f->f.workspace, f->binding->workspace_bytes);
    if (f->memory)
        atomic_fetch_sub_explicit(&f->binding->program->ctx->frame_bytes, f->memory->bytes,
                                  memory_order_relaxed);
    sn_program_unbind_buffer(f->binding->program, f->memory);
    sn_buffer_unref(f->memory);
    sn_free(alloc, f->f.slots, f->binding->n_slots * sizeof *f->f.slots);
    sn_free(alloc, f, sizeof *f);
}

/* Those of a binding that nobody uses any more. */
static void free_frames(sn_binding *b)
{
    while (b->frames) {
        sn_frame_impl *f = b->frames;
        b->frames = f->next;
        frame_free(f);
    }
}

static sonde_status run_body(sn_frame *f, const sn_step *s, uint32_t body, const sn_slot *in,
                             uint32_t n_in, sn_slot *out, uint32_t n_out);

static const sn_frame_hooks hooks = {run_body};

/* So much is taken without a look at the machine. */
#define SMALL_RUN_BYTES ((size_t)256 << 20)

/* What may be held at once: what was asked for, else what there is: a run beyond that would not
 * fail but be killed, and perhaps something else with it. 0: not known. */
static size_t budget(const sn_allocator *alloc, size_t run_bytes)
{
    if (alloc->limit_bytes || run_bytes <= SMALL_RUN_BYTES)
        return alloc->limit_bytes;
    const double usable = sn_usable_memory();
    return usable < (double)SIZE_MAX ? (size_t)usable : 0;
}

/* A run that cannot fit is refused before its first step, and says what it would take.
 * `input_bytes`: of inputs that are not there yet. */
static sonde_status check_budget(const sn_binding *b, size_t frame_bytes, size_t input_bytes,
                                 sonde_error *err)
{
    const sn_allocator *alloc = b->program->ctx->alloc;
    const size_t held = atomic_load_explicit(&alloc->live_bytes, memory_order_relaxed);
    size_t run = SIZE_MAX, total = SIZE_MAX;
    char inputs[40] = "";
    if (sn_size_add(frame_bytes, b->output_bytes, &run) && sn_size_add(run, input_bytes, &run))
        (void)sn_size_add(held, run, &total);
    else
        run = SIZE_MAX;
    const size_t limit = budget(alloc, run);
    if (!limit || total <= limit)
        return SONDE_OK;
    if (input_bytes)
        snprintf(inputs, sizeof inputs, ", inputs %zu", input_bytes);
    return sn_fail(
        err, SONDE_OUT_OF_MEMORY,
        "a run at these shapes needs %zu bytes (activations %zu, workspace %zu, outputs "
        "%zu%s) in addition to %zu already in use; %s %zu",
        run, b->arena_bytes, b->workspace_bytes, b->output_bytes, inputs, held,
        alloc->limit_bytes ? "the memory limit (max_memory, --max-memory) is" : "there are", limit);
}

/* Where the parts of a frame's memory lie. */
typedef struct frame_layout {
    sn_piece values, workspace;
    size_t bytes;
} frame_layout;

static sonde_status lay_out(const sn_binding *b, frame_layout *l, sonde_error *err)
{
    sn_workspace all = {0};
    l->values = sn_carve_bytes(&all, b->arena_bytes);
    l->workspace = sn_carve_bytes(&all, b->workspace_bytes);
    l->bytes = all.bytes;
    if (all.overflow)
        return sn_fail(err, SONDE_LIMIT, "the values of the model exceed the address space");
    return SONDE_OK;
}

sonde_status sn_binding_fits(const sn_binding *b, size_t input_bytes, sonde_error *err)
{
    frame_layout layout;
    SN_TRY(lay_out(b, &layout, err));
    return check_budget(b, layout.bytes, input_bytes, err);
}

static sonde_status frame_new(sn_binding *b, sn_frame_impl **out, sonde_error *err)
{
    sn_context *ctx = b->program->ctx;
    frame_layout layout;
    SN_TRY(lay_out(b, &layout, err));
    SN_TRY(check_budget(b, layout.bytes, 0, err));
    sn_frame_impl *f = sn_alloc_zero(ctx->alloc, sizeof *f);
    if (!f)
        return sn_fail_memory(err, sizeof *f);
    f->binding = b;
    f->f.slots = sn_alloc(ctx->alloc, b->n_slots * sizeof *f->f.slots);
    f->memory = sn_buffer_new(ctx->alloc, layout.bytes);
    if (f->memory)
        atomic_fetch_add_explicit(&ctx->frame_bytes, f->memory->bytes, memory_order_relaxed);
    if (!f->f.slots || !f->memory) {
        frame_free(f);
        return sn_fail_memory(err, layout.bytes);
    }
    sn_program_bind_buffer(b->program, f->memory);
    memcpy(f->f.slots, b->slots, b->n_slots * sizeof *f->f.slots);
    uint8_t *memory = f->memory->data;
    for (uint32_t s = 0; s < b->n_slots; s++)
        if (b->place[s] == SN_PLACE_ARENA)
            f->f.slots[s].t.data = memory + layout.values.at + b->offset[s];
    f->f.workspace = memory + layout.workspace.at;
    sn_workspace_close(f->f.workspace, b->workspace_bytes);
    f->f.ctx = ctx;
    f->f.alloc = ctx->alloc;
    f->f.hooks = &hooks;
    sn_fork_lock_take(&b->lock);
    b->free_frames = free_frames;
    sn_fork_lock_give(&b->lock);
    *out = f;
    return SONDE_OK;
}

static sonde_status frame_checkout(sn_binding *b, sn_frame_impl **frame, sonde_error *err)
{
    sn_fork_lock_take(&b->lock);
    *frame = b->frames;
    if (*frame)
        b->frames = (*frame)->next;
    sn_fork_lock_give(&b->lock);
    return *frame ? SONDE_OK : frame_new(b, frame, err);
}

static void frame_return(sn_frame_impl *f)
{
    sn_binding *b = f->binding;
    sn_fork_lock_take(&b->lock);
    f->next = b->frames;
    b->frames = f;
    sn_fork_lock_give(&b->lock);
}

/* ------------------------------------------------------------------ inputs and outputs */

static void set_inputs(const sn_call *c, const sn_binding *b, sn_frame *f)
{
    for (uint32_t i = 0; i < c->program->n_inputs; i++) {
        sn_slot *slot = &f->slots[b->inputs[i]];
        *slot = *c->in[i];
        slot->t.owner = NULL; /* borrowed for the length of the run */
    }
    for (uint32_t v = 0; v < b->n_views; v++)
        f->slots[b->views[v].slot].t.data = f->slots[b->views[v].of].t.data;
}

static bool same_shape(const sn_tensor *a, const sn_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static sonde_status shape_error(const sn_call *c, uint32_t o, const sn_tensor *want,
                                const sn_tensor *given)
{
    char a[200], b[200];
    sn_type ta = {
        .kind = SN_KIND_TENSOR, .dtype = want->dtype, .rank = want->rank, .dims = want->dims};
    sn_type tb = {
        .kind = SN_KIND_TENSOR, .dtype = given->dtype, .rank = given->rank, .dims = given->dims};
    return sn_fail(c->err, SONDE_INVALID_ARGUMENT, "output '%s' is %s but the buffer given is %s",
                   c->program->graph->outputs.data[o]->name, sn_type_text(&ta, NULL, a, sizeof a),
                   sn_type_text(&tb, NULL, b, sizeof b));
}

/* Outputs with static shapes: the caller's buffer, or a fresh one the caller will own. */
sonde_status sn_run_set_outputs(sn_run *run)
{
    const sn_call *c = run->call;
    const sn_binding *b = run->binding;
    sn_frame *f = &run->frame->f;
    for (uint32_t o = 0; o < c->program->n_outputs; o++) {
        uint32_t s = b->outputs[o];
        if (b->place[s] != SN_PLACE_OUTPUT)
            continue;
        sn_tensor *t = &f->slots[s].t;
        if (c->out[o].kind == SN_KIND_TENSOR) {
            if (!same_shape(t, &c->out[o].t))
                return shape_error(c, o, t, &c->out[o].t);
        } else {
            SN_TRY(sn_slot_new_tensor(&c->out[o], t->dtype, t->dims, t->rank, f->alloc, c->err));
        }
        t->data = c->out[o].t.data; /* listed twice: the last place is written, the others copied */
    }
    return SONDE_OK;
}

sonde_status sn_run_take_outputs(sn_run *run)
{
    const sn_call *c = run->call;
    const sn_binding *b = run->binding;
    sn_frame *f = &run->frame->f;
    for (uint32_t o = 0; o < c->program->n_outputs; o++) {
        uint32_t s = b->outputs[o];
        const sn_slot *slot = &f->slots[s];
        sn_slot *out = &c->out[o];
        bool string = slot->kind == SN_KIND_TENSOR && slot->t.dtype == SONDE_DTYPE_STRING;
        if (b->place[s] == SN_PLACE_OUTPUT && !string) {
            if (out->t.data != slot->t.data)
                memcpy(out->t.data, slot->t.data, slot->t.bytes);
        } else if (out->kind == SN_KIND_TENSOR && !string) {
            if (slot->kind != SN_KIND_TENSOR || !same_shape(&slot->t, &out->t))
                return shape_error(c, o, &slot->t, &out->t);
            memcpy(out->t.data, slot->t.data, slot->t.bytes);
        } else {
            sn_slot owned = {0};
            SN_TRY(sn_slot_share(&owned, slot, true, f->alloc, c->err));
            sn_slot_clear(out); /* strings: elements that pointed elsewhere */
            *out = owned;
        }
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the call */

bool sn_run_interrupted(sn_run_config *cfg)
{
    enum { EVERY_NS = 100000000 };
    const uint64_t now = sn_coarse_ns();
    if (cfg->asks_at_ns && now < cfg->asks_at_ns)
        return false;
    const bool stop = cfg->asks_at_ns && cfg->interrupt(cfg->interrupt_user);
    cfg->asks_at_ns = sn_coarse_ns() + EVERY_NS;
    return stop;
}

static bool stop_wanted(void *user)
{
    sn_run_config *cfg = user;
    return (cfg->cancel && atomic_load_explicit(cfg->cancel, memory_order_relaxed)) ||
           (cfg->interrupt && sn_run_interrupted(cfg));
}

const sn_stop *sn_run_stop(sn_run_config *cfg, sn_stop *stop)
{
    *stop = (sn_stop){stop_wanted, cfg};
    return cfg->cancel || cfg->interrupt ? stop : NULL;
}

sonde_status sn_run_begin(sn_run *run)
{
    const sn_call *c = run->call;
    sn_stop stop;
    SN_TRY(sn_binding_get(c->program, c->in, c->threads, c->pool, sn_run_stop(c->cfg, &stop),
                          &run->binding, &run->bound, c->err));
    sonde_status st = frame_checkout(run->binding, &run->frame, c->err);
    if (st) {
        sn_binding_unref(run->binding);
        return st;
    }
    sn_frame_impl *f = run->frame;
    f->run = run;
    f->f.err = c->err;
    f->f.pool = c->pool;
    f->f.cancel = c->cfg->cancel ? c->cfg->cancel : &never_cancelled;
    set_inputs(c, run->binding, &f->f);
    return SONDE_OK;
}

/* `watched` is a constant where this is used: who cannot be interrupted does not pay for it. */
__attribute__((always_inline)) static inline sonde_status run_steps(sn_run *run, bool watched)
{
    const sn_binding *b = run->binding;
    sn_frame *f = &run->frame->f;
    for (const sn_step *s = b->steps, *end = s + b->n_steps; s < end; s++) {
        if (watched ? sn_run_stopped(run) : sn_run_cancelled(f))
            return sn_stop_error(run->call->err);
        sonde_status st = s->run(s, f);
        if (st)
            return st;
        if (!b->is_static)
            sn_run_release(b, f, s->index);
    }
    return SONDE_OK;
}

sonde_status sn_run_steps(sn_run *run)
{
    return run->call->cfg->interrupt ? run_steps(run, true) : run_steps(run, false);
}

/* What dynamic steps left behind: outputs once they are shared, everything after a failure. */
void sn_run_end(sn_run *run, sonde_status st)
{
    const sn_binding *b = run->binding;
    uint32_t first = st ? 0 : b->release_start[b->n_steps];
    for (uint32_t r = first; r < b->release_start[b->n_steps + 1]; r++)
        sn_slot_clear(&run->frame->f.slots[b->release[r]]);
    frame_return(run->frame);
    sn_binding_unref(run->binding);
}

sonde_status sn_call_plain(const sn_call *call)
{
    sn_run run = {.call = call, .self = sn_call_plain};
    SN_TRY(sn_run_begin(&run));
    sonde_status st = sn_run_set_outputs(&run);
    if (!st)
        st = sn_run_steps(&run);
    if (!st)
        st = sn_run_take_outputs(&run);
    sn_run_end(&run, st);
    return st;
}

/* ------------------------------------------------------------------ bodies */

static sonde_status run_body(sn_frame *f, const sn_step *s, uint32_t body, const sn_slot *in,
                             uint32_t n_in, sn_slot *out, uint32_t n_out)
{
    sn_frame_impl *impl = (sn_frame_impl *)f;
    sn_program *p = (sn_program *)(uintptr_t)s->bodies[body];
    if (n_in != p->n_formal_inputs || n_out != p->n_outputs)
        return sn_fail(f->err, SONDE_INVALID_MODEL,
                       "node '%s' (%s): its body has %u inputs and %u outputs, expected %u and %u",
                       s->node->name, s->node->op_type, p->n_formal_inputs, p->n_outputs, n_in,
                       n_out);
    const sn_slot *small[32], **all = small;
    size_t bytes = p->n_inputs * sizeof *all;
    if (p->n_inputs > 32) {
        all = sn_alloc(f->alloc, bytes);
        if (!all)
            return sn_fail_memory(f->err, bytes);
    }
    for (uint32_t i = 0; i < n_in; i++)
        all[i] = &in[i];
    for (uint32_t i = n_in; i < p->n_inputs; i++)
        all[i] = &f->slots[s->in[p->graph->capture_map.data[i - n_in]]];
    for (uint32_t o = 0; o < n_out; o++)
        sn_slot_clear(&out[o]);
    sn_call call = {.program = p,
                    .in = all,
                    .out = out,
                    .pool = f->pool,
                    .threads = impl->binding->threads,
                    .cfg = impl->run->call->cfg,
                    .parent = impl->run,
                    .parent_step = s->index,
                    .err = f->err};
    sonde_status st = impl->run->self(&call);
    for (uint32_t o = 0; st && o < n_out; o++)
        sn_slot_clear(&out[o]);
    if (all != small)
        sn_free(f->alloc, all, bytes);
    return st;
}
