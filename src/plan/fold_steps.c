/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without anything to do in a run: their results are known from the shapes (Shape ► Gather ►
 * Concat), or follow from constants and such results (a mask cut to the length, positions looked up
 * in a table). They are computed once, while a binding is made, and become its constants. */
#include <string.h>

#include "ops/framework/eval.h"
#include "plan/binding.h"

/* Larger results are computed anew in every run rather than kept by every binding. */
#define MAX_FOLDED_BYTES ((size_t)1 << 20)

/* The contents of a value as a constant of the binding. */
static sonde_status keep(sn_binding *b, sn_fact *f, const sn_tensor *from, sonde_error *err)
{
    sn_tensor *t = SN_NEW(&b->arena, sn_tensor);
    size_t bytes = from ? from->bytes : (size_t)f->n_ints * sn_dtype_bytes(f->type.dtype);
    void *data = sn_arena_alloc(&b->arena, bytes ? bytes : 1, SN_ALIGN);
    if (!t || !data)
        return sn_fail_memory(err, bytes);
    *t = (sn_tensor){.dtype = f->type.dtype, .rank = f->type.rank, .data = data, .bytes = bytes};
    if (t->rank)
        memcpy(t->dims, f->type.dims, (size_t)t->rank * sizeof *t->dims);
    if (!from)
        sn_fact_write_ints(f, data);
    else if (bytes)
        memcpy(data, from->data, bytes);
    f->data = t;
    return SONDE_OK;
}

static bool is_constant(const sn_fact *f)
{
    return f->data && sn_tensor_is_plain(f->data) && sn_tensor_is_readable(f->data);
}

/* All inputs are constants, and the results are small: it can be computed now. */
static bool can_compute(const sn_binding *b, const sn_step *s, const sn_fact *out)
{
    size_t bytes, total = 0;
    if (b->program->plan_only || (s->op->flags & (SN_OP_DATA_DEPENDENT | SN_OP_NO_FOLD)))
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (sn_has(s, i) && !is_constant(&b->facts[s->in[i]]))
            return false;
    for (uint32_t o = 0; o < s->n_out; o++) {
        const sn_type *t = &out[o].type;
        if (!sn_wants(s, o))
            continue;
        if (!sn_type_is_concrete(t) || t->dtype == SONDE_DTYPE_STRING ||
            !sn_form_is_native(out[o].form) ||
            !sn_tensor_bytes(t->dtype, t->dims, t->rank, &bytes) ||
            !sn_size_add(total, bytes, &total))
            return false;
    }
    return total <= MAX_FOLDED_BYTES;
}

static bool is_as_planned(const sn_slot *s, const sn_fact *f)
{
    return s->kind == SN_KIND_TENSOR && s->t.dtype == f->type.dtype && sn_tensor_is_plain(&s->t) &&
           s->t.rank == f->type.rank &&
           (!s->t.rank ||
            memcmp(s->t.dims, f->type.dims, (size_t)s->t.rank * sizeof *s->t.dims) == 0);
}

/* Runs the step's node on its constant inputs. What an operator objects to is for the run to
 * report: then *done stays false. */
static sonde_status compute(sn_binding *b, const sn_step *s, sn_fact *out, bool *done,
                            sonde_error *err)
{
    sn_allocator *alloc = b->arena.alloc;
    size_t slot_bytes = ((size_t)s->n_in + s->n_out + 1) * sizeof(sn_slot);
    size_t ref_bytes = ((size_t)s->n_in + 1) * sizeof(sn_slot *);
    sn_slot *slots = sn_alloc_zero(alloc, slot_bytes), *made = slots ? slots + s->n_in : NULL;
    const sn_slot **in = sn_alloc_zero(alloc, ref_bytes);
    sonde_error local = {0};
    sonde_status st = slots && in ? SONDE_OK : sn_fail_memory(err, slot_bytes);
    for (uint32_t i = 0; i < s->n_in && !st; i++)
        if (sn_has(s, i)) {
            slots[i] = (sn_slot){.kind = SN_KIND_TENSOR, .t = *b->facts[s->in[i]].data};
            in[i] = &slots[i];
        }
    if (!st) {
        st = sn_eval_node(b->program->ctx, s->node, in, made, &local);
        *done = st == SONDE_OK;
        if (st == SONDE_OUT_OF_MEMORY)
            sn_fail(err, st, "%s", local.message);
        else
            st = SONDE_OK;
    }
    for (uint32_t o = 0; o < s->n_out; o++)
        *done = *done && (!sn_wants(s, o) || is_as_planned(&made[o], &out[o]));
    for (uint32_t o = 0; o < s->n_out && !st && *done; o++)
        if (sn_wants(s, o))
            st = keep(b, &out[o], &made[o].t, err);
    for (uint32_t o = 0; made && o < s->n_out; o++)
        sn_slot_clear(&made[o]);
    sn_free(alloc, slots, slots ? slot_bytes : 0);
    sn_free(alloc, in, in ? ref_bytes : 0);
    return st;
}

sonde_status sn_binding_fold_step(sn_binding *b, const sn_step *s, sn_fact *out, bool *done,
                                  sonde_error *err)
{
    bool known = true;
    *done = false;
    if (b->program->unoptimized ||
        (s->op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR | SN_OP_RANDOM)))
        return SONDE_OK;
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!sn_wants(s, o))
            continue;
        if (s->node->out[o]->n_outputs)
            return SONDE_OK;
        known &= out[o].data ? is_constant(&out[o]) : sn_fact_ints_known(&out[o]);
    }
    if (!known && can_compute(b, s, out))
        SN_TRY(compute(b, s, out, done, err));
    for (uint32_t o = 0; o < s->n_out && known; o++)
        if (sn_wants(s, o) && !out[o].data)
            SN_TRY(keep(b, &out[o], NULL, err));
    *done |= known;
    for (uint32_t o = 0; o < s->n_out && *done; o++)
        if (sn_wants(s, o))
            b->facts[s->out[o]] = out[o];
    if (*done)
        b->skipped[b->n_skipped++] = s->node;
    return SONDE_OK;
}
