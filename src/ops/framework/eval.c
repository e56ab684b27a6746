/* SPDX-License-Identifier: Apache-2.0 */
/* One operator from real slots: the same infer, bind and run a planned step goes through, in one
 * go. Facts point at the slots (data = the actual tensor), outputs get buffers of their own. */
#include "ops/framework/eval.h"

#include <string.h>

#include "ops/framework/workspace_guard.h"

/* The fact of a value that is really there. */
static void fact_of_slot(sn_fact *fact, const sn_slot *s, sn_arena *arena)
{
    memset(fact, 0, sizeof(*fact));
    fact->type.kind = s->kind;
    fact->type.rank = -1;
    if (s->kind == SN_KIND_TENSOR) {
        fact->type.dtype = s->t.dtype;
        fact->type.rank = s->t.rank;
        fact->type.dims = s->t.dims;
        fact->data = &s->t;
        fact->form.layout = s->t.layout;
        fact->form.space = s->t.space;
        fact->pack = s->t.pack;
        return;
    }
    if (!s->list || s->list->elem_kind == SN_KIND_NONE)
        return;
    sn_type *elem = SN_NEW(arena, sn_type);
    if (!elem)
        return; /* an unknown element type is a valid, weaker fact */
    elem->kind = s->list->elem_kind;
    elem->dtype = s->list->elem_dtype;
    elem->rank = -1;
    fact->type.elem = elem;
}

/* Memory for output o: its own buffer, or for a view operator input 0's when that is refcounted. */
static sonde_status make_output(const sn_step *s, sn_frame *f, uint32_t o, const sn_fact *fact)
{
    sn_slot *slot = sn_out_slot(s, f, o);
    if (fact->type.kind != SN_KIND_TENSOR || !sn_type_is_concrete(&fact->type) ||
        fact->type.dtype == SONDE_DTYPE_UNDEFINED)
        return sn_run_fail(s, f, "the shape of output %u cannot be determined", o);
    size_t bytes;
    if (fact->type.rank > SN_MAX_RANK || !sn_fact_bytes(fact, &bytes))
        return sn_run_fail(s, f, "output %u is too large", o);
    const sn_tensor *in0 = sn_has(s, 0) ? sn_in(s, f, 0) : NULL;
    bool share = (s->op->flags & SN_OP_VIEW) && o == 0 && in0 && in0->owner &&
                 in0->bytes == bytes && in0->dtype == sn_fact_stored(fact) &&
                 sn_layout_same(in0->layout, fact->form.layout);
    if (!share && sn_form_is_native(fact->form))
        return sn_slot_new_tensor(slot, fact->type.dtype, fact->type.dims, fact->type.rank,
                                  f->alloc, f->err);
    sn_buffer *b = share ? sn_buffer_ref(in0->owner) : sn_buffer_new(f->alloc, bytes);
    if (!b)
        return sn_fail_memory(f->err, bytes);
    slot->kind = SN_KIND_TENSOR;
    slot->t = (sn_tensor){.dtype = sn_fact_stored(fact),
                          .layout = fact->form.layout,
                          .space = fact->form.space,
                          .rank = fact->type.rank,
                          .data = share ? in0->data : b->data,
                          .bytes = bytes,
                          .owner = b};
    if (fact->type.rank > 0)
        memcpy(slot->t.dims, fact->type.dims, sizeof(int64_t) * (size_t)fact->type.rank);
    return SONDE_OK;
}

static sonde_status infer_outputs(const sn_step *s, sn_frame *f, sn_arena *scratch,
                                  const sn_fact *const *in, sn_fact *out)
{
    sn_infer c = {.node = s->node,
                  .params = s->params,
                  .in = in,
                  .out = out,
                  .n_in = s->n_in,
                  .n_out = s->n_out,
                  .arena = scratch,
                  .err = f->err};
    SN_TRY(s->op->infer(&c));
    /* The form of a value is planned, not inferred. */
    for (uint32_t o = 0; o < s->n_out; o++)
        if (s->node->out[o])
            out[o].form = s->node->out[o]->fact.form;
    return SONDE_OK;
}

static sonde_status run_nothing(const sn_step *s, sn_frame *f)
{
    (void)s;
    (void)f;
    return SONDE_OK;
}

sonde_status sn_op_bind_step(const sn_step *s, sn_bind *b)
{
    const uint32_t own_ways = SN_OP_CONTROL | SN_OP_NONTENSOR | SN_OP_DATA_DEPENDENT;
    if (s->op->bind)
        SN_TRY(s->op->bind(b));
    bool nothing = (s->op->flags & own_ways) == 0 && s->n_out > 0;
    for (uint32_t o = 0; o < s->n_out && nothing; o++) {
        int64_t count;
        nothing = !sn_wants(s, o) || (sn_type_count(&b->out[o].type, &count) && count == 0);
    }
    if (nothing) {
        b->run = run_nothing;
        b->workspace = (sn_workspace){0};
        return SONDE_OK;
    }
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the tensors are too large");
    return sn_workspace_guard(b);
}

static sonde_status bind_and_run(const sn_step *step, sn_frame *f, sn_arena *scratch,
                                 const sn_fact *const *in, const sn_fact *out)
{
    sn_step s = *step;
    sn_bind b = {.node = s.node,
                 .params = s.params,
                 .in = in,
                 .out = out,
                 .n_in = s.n_in,
                 .n_out = s.n_out,
                 .ctx = f->ctx,
                 .cpu_flags = f->ctx->cpu.flags,
                 .threads = sn_pool_threads(f->pool),
                 .arena = scratch,
                 .err = f->err,
                 .run = s.op->run};
    SN_TRY(sn_op_bind_step(&s, &b));
    s.bound = b.bound;
    s.run = b.run;
    static uint8_t nothing[1]; /* a piece without bytes lies somewhere, too */
    uint8_t *kept = f->workspace, *own = NULL;
    if (b.workspace.bytes > 0) {
        own = sn_alloc(f->alloc, b.workspace.bytes);
        if (!own)
            return sn_fail_memory(f->err, b.workspace.bytes);
    }
    /* Swapped, not copied: the frame may be part of a larger one that run_body knows. */
    f->workspace = own ? own : nothing;
    sn_workspace_close(own, b.workspace.bytes);
    sonde_status st = s.run(&s, f);
    sn_workspace_open(own, b.workspace.bytes);
    f->workspace = kept;
    sn_free(f->alloc, own, b.workspace.bytes);
    return st;
}

static sonde_status eval(const sn_step *s, sn_frame *f, sn_arena *scratch)
{
    sn_fact *facts = SN_NEW_N(scratch, sn_fact, (size_t)s->n_in + s->n_out + 1);
    const sn_fact **in = SN_NEW_N(scratch, const sn_fact *, (size_t)s->n_in + 1);
    if (!facts || !in)
        return sn_fail_memory(f->err, sizeof(sn_fact) * ((size_t)s->n_in + s->n_out));
    sn_fact *out = facts + s->n_in;
    bool any_kind = (s->op->flags & (SN_OP_NONTENSOR | SN_OP_CONTROL)) != 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (!sn_has(s, i))
            continue;
        const sn_slot *slot = sn_in_slot(s, f, i);
        if (slot->kind == SN_KIND_NONE && !any_kind)
            return sn_run_fail(s, f, "input %u has no value", i);
        if (slot->kind != SN_KIND_TENSOR && !any_kind)
            return sn_run_fail(s, f, "input %u must be a tensor", i);
        fact_of_slot(&facts[i], slot, scratch);
        in[i] = &facts[i];
    }
    for (uint32_t o = 0; o < s->n_out; o++) {
        out[o].type.rank = -1;
        if (sn_wants(s, o))
            sn_slot_clear(sn_out_slot(s, f, o));
    }
    if (!(s->op->flags & SN_OP_CONTROL))
        SN_TRY(infer_outputs(s, f, scratch, in, out));
    if (!any_kind && !(s->op->flags & SN_OP_DATA_DEPENDENT))
        for (uint32_t o = 0; o < s->n_out; o++)
            if (sn_wants(s, o))
                SN_TRY(make_output(s, f, o, &out[o]));
    return bind_and_run(s, f, scratch, in, out);
}

sonde_status sn_eval_step(const sn_step *step, sn_frame *f, sn_arena *scratch)
{
    sonde_status st = eval(step, f, scratch);
    if (st != SONDE_OK)
        for (uint32_t o = 0; o < step->n_out; o++)
            if (sn_wants(step, o))
                sn_slot_clear(sn_out_slot(step, f, o));
    sn_arena_reset(scratch);
    return st;
}

sonde_status sn_eval_node(const sn_context *ctx, const sn_node *node, const sn_slot *const *in,
                          sn_slot *out, sonde_error *err)
{
    if (!node->op)
        return sn_fail(err, SONDE_INTERNAL, "node '%s' is not prepared", node->name);
    if (node->op->flags & SN_OP_CONTROL)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "node '%s' (%s) is a control-flow operator and cannot run alone", node->name,
                       node->shown_type);
    size_t n = (size_t)node->n_in + node->n_out;
    size_t slot_bytes = sizeof(sn_slot) * (n + 1), number_bytes = sizeof(uint32_t) * (n + 1);
    sn_slot *slots = sn_alloc_zero(ctx->alloc, slot_bytes);
    uint32_t *numbers = sn_alloc_zero(ctx->alloc, number_bytes);
    sn_arena scratch;
    sn_arena_init(&scratch, ctx->alloc);
    sonde_status st = SONDE_OK;
    if (!slots || !numbers) {
        st = sn_fail_memory(err, slot_bytes);
    } else {
        for (uint32_t i = 0; i < node->n_in; i++) {
            numbers[i] = in[i] ? i : SN_NO_SLOT;
            if (in[i])
                slots[i] = *in[i]; /* borrowed: never cleared */
        }
        for (uint32_t o = 0; o < node->n_out; o++)
            numbers[node->n_in + o] = node->out[o] ? node->n_in + o : SN_NO_SLOT;
        sn_step step = {.op = node->op,
                        .params = node->params,
                        .node = node,
                        .in = numbers,
                        .out = numbers + node->n_in,
                        .n_in = node->n_in,
                        .n_out = node->n_out};
        sn_frame f = {
            .slots = slots, .ctx = ctx, .pool = ctx->pool, .alloc = ctx->alloc, .err = err};
        st = sn_eval_step(&step, &f, &scratch);
        if (st == SONDE_OK && node->n_out > 0)
            memcpy(out, slots + node->n_in, sizeof(sn_slot) * node->n_out);
    }
    sn_arena_free(&scratch);
    sn_free(ctx->alloc, slots, slot_bytes);
    sn_free(ctx->alloc, numbers, number_bytes);
    return st;
}
