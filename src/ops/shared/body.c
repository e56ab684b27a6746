/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of control flow: see body.h. Type inference of a loop starts from the initial types,
 * infers the body and drops what an iteration changes, until nothing changes; three rounds at most,
 * and one with nothing assumed for loops nested deeply, so that hostile nesting stays linear. */
#include "ops/shared/body.h"

#include <string.h>

#define DEEP_NESTING 3

sonde_status sn_body_find(sn_prep *p, const char *name, sn_body_ref *b)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < p->node->n_attrs; i++) {
        const sn_attr *a = &p->node->attrs[i];
        if (a->kind != SN_ATTR_GRAPH)
            continue;
        if (strcmp(a->name, name) == 0 && a->graph) {
            *b = (sn_body_ref){a->graph, index};
            return SONDE_OK;
        }
        index++;
    }
    return sn_prep_fail(p, "attribute '%s' is missing or not a graph", name);
}

sonde_status sn_body_need_inputs(sn_prep *p, uint32_t first)
{
    for (uint32_t i = first; i < p->node->n_formal_in; i++)
        if (!p->node->in[i].value)
            return sn_prep_fail(p, "input %u is missing", i);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ infer */
static bool join_elem(const sn_type *a, const sn_type *b, sn_type *out, sn_arena *arena)
{
    *out = *a;
    if (!a->elem || !b->elem) {
        out->elem = NULL;
        return true;
    }
    sn_type *elem = SN_NEW(arena, sn_type);
    out->elem = elem;
    return !elem || sn_body_join(a->elem, b->elem, elem, arena);
}

bool sn_body_join(const sn_type *a, const sn_type *b, sn_type *out, sn_arena *arena)
{
    if (a->kind == SN_KIND_NONE || b->kind == SN_KIND_NONE) {
        *out = (sn_type){.kind = SN_KIND_NONE, .rank = -1};
        return true;
    }
    if (a->kind != b->kind)
        return false;
    if (a->kind != SN_KIND_TENSOR)
        return join_elem(a, b, out, arena);
    bool open = a->dtype == SONDE_DTYPE_UNDEFINED || b->dtype == SONDE_DTYPE_UNDEFINED;
    if (!open && a->dtype != b->dtype)
        return false;
    *out = (sn_type){.kind = SN_KIND_TENSOR, .dtype = a->dtype ? a->dtype : b->dtype, .rank = -1};
    if (a->rank < 0 || a->rank != b->rank)
        return true;
    sn_dim *dims = SN_NEW_N(arena, sn_dim, a->rank ? a->rank : 1);
    if (!dims)
        return true; /* an unknown rank is a valid, weaker statement */
    out->rank = a->rank;
    out->dims = dims;
    for (int i = 0; i < a->rank; i++)
        dims[i] = sn_dim_same(a->dims[i], b->dims[i]) ? a->dims[i] : SN_DIM_UNKNOWN;
    return true;
}

/* Does `wide` say no more than `narrow` does? Then an iteration keeps it. */
static bool covers(const sn_type *wide, const sn_type *narrow)
{
    if (wide->kind == SN_KIND_NONE)
        return true;
    if (wide->kind != narrow->kind)
        return false;
    if (wide->kind != SN_KIND_TENSOR)
        return !wide->elem || (narrow->elem && covers(wide->elem, narrow->elem));
    if (wide->rank < 0)
        return true;
    if (wide->rank != narrow->rank)
        return false;
    for (int i = 0; i < wide->rank; i++)
        if (wide->dims[i] != SN_DIM_UNKNOWN && !sn_dim_same(wide->dims[i], narrow->dims[i]))
            return false;
    return true;
}

static bool is_deep(const sn_graph *g)
{
    int depth = 0;
    while (g && depth <= DEEP_NESTING) {
        g = g->parent;
        depth++;
    }
    return depth > DEEP_NESTING;
}

static void forget_shape(sn_type *t)
{
    if (t->kind == SN_KIND_TENSOR) {
        t->rank = -1;
        t->dims = NULL;
    } else {
        t->elem = NULL;
    }
}

sonde_status sn_body_fixpoint(sn_infer *c, const sn_body_ref *b, sn_fact *formal, uint32_t n,
                              uint32_t first, uint32_t n_carried, uint32_t first_out)
{
    const sn_fact **facts = SN_NEW_N(c->arena, const sn_fact *, n ? n : 1);
    if (!facts)
        return sn_fail_memory(c->err, n * sizeof *facts);
    for (uint32_t i = 0; i < n; i++)
        facts[i] = &formal[i];
    bool deep = is_deep(b->graph);
    for (uint32_t i = 0; i < n_carried; i++) {
        sn_fact *f = &formal[first + i];
        *f = (sn_fact){.type = f->type}; /* the value changes from one iteration to the next */
        if (deep)
            forget_shape(&f->type);
    }
    for (int round = 0;; round++) {
        SN_TRY(sn_infer_body(c, b->graph, facts, n));
        if (b->graph->outputs.n < (size_t)first_out + n_carried)
            return sn_infer_fail(c, "its body has %zu outputs, at least %u are needed",
                                 b->graph->outputs.n, first_out + n_carried);
        bool stable = true;
        for (uint32_t i = 0; i < n_carried; i++) {
            sn_type *have = &formal[first + i].type, joined;
            const sn_type *made = &b->graph->outputs.data[first_out + i]->fact.type;
            if (covers(have, made))
                continue;
            if (!sn_body_join(have, made, &joined, c->arena)) {
                if (have->kind == made->kind)
                    return sn_infer_fail(
                        c, "loop-carried value %u has a different type after the body", i);
                joined =
                    (sn_type){.kind = SN_KIND_NONE, .rank = -1}; /* an optional that gets filled */
            }
            stable = false;
            *have = joined;
            if (round > 0)
                forget_shape(have);
        }
        if (stable || round >= 2 || deep)
            return SONDE_OK;
    }
}

sonde_status sn_body_stacked(sn_infer *c, uint32_t o, const sn_type *t, sn_dim count, int64_t axis)
{
    sn_dim dims[SN_MAX_RANK];
    int at;
    if (t->kind != SN_KIND_TENSOR && t->kind != SN_KIND_NONE)
        return sn_infer_fail(c, "scan output %u is not a tensor", o);
    if (t->kind == SN_KIND_NONE || t->rank < 0)
        return sn_infer_rank(c, o, t->dtype, -1);
    if (t->rank >= SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    SN_TRY(sn_infer_axis(c, axis, t->rank + 1, false, &at));
    for (int i = 0, k = 0; i <= t->rank; i++)
        dims[i] = i == at ? count : t->dims[k++];
    return sn_infer_bounded(c, o, t->dtype, dims, t->rank + 1);
}

/* ------------------------------------------------------------------ run */
sonde_status sn_body_run(const sn_step *s, sn_frame *f, const sn_body_ref *b, const sn_slot *in,
                         uint32_t n_in, sn_slot *out, uint32_t n_out)
{
    if (!f->hooks || !f->hooks->run_body)
        return sn_run_fail(s, f, "its body cannot run in this context");
    return f->hooks->run_body(f, s, b->index, in, n_in, out, n_out);
}

sonde_status sn_body_cancelled(const sn_step *s, sn_frame *f)
{
    (void)s;
    return sn_frame_cancelled(f) ? sn_fail(f->err, SONDE_CANCELLED, "the run was cancelled")
                                 : SONDE_OK;
}

void sn_body_move(sn_slot *dst, sn_slot *src)
{
    sn_slot_clear(dst);
    *dst = *src;
    memset(src, 0, sizeof *src);
}

void sn_body_clear(sn_slot *slots, uint32_t n)
{
    for (uint32_t i = 0; slots && i < n; i++)
        sn_slot_clear(&slots[i]);
}

/* ------------------------------------------------------------------ stack */
static sonde_status stack_grow(sn_frame *f, sn_stack *k, int64_t rows)
{
    size_t bytes;
    if (!sn_size_mul((size_t)rows, k->row.bytes, &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sn_buffer *b = sn_buffer_new(f->alloc, bytes);
    if (!b)
        return sn_fail_memory(f->err, bytes);
    if (k->n && k->row.bytes)
        memcpy(b->data, k->buffer->data, (size_t)k->n * k->row.bytes);
    sn_buffer_unref(k->buffer);
    k->buffer = b;
    k->cap = rows;
    return SONDE_OK;
}

sonde_status sn_stack_push(const sn_step *s, sn_frame *f, sn_stack *k, sn_slot *row, int64_t expect)
{
    const sn_tensor *t = &row->t;
    if (row->kind != SN_KIND_TENSOR || !sn_tensor_is_plain(t))
        return sn_run_fail(s, f, "a scan output of the body is not a tensor");
    if (k->n == 0) {
        k->row = *t;
        k->row.bytes = (size_t)sn_tensor_count(t) * sn_dtype_bytes(t->dtype);
    } else if (t->dtype != k->row.dtype ||
               !sn_same_dims(t->dims, t->rank, k->row.dims, k->row.rank)) {
        return sn_run_fail(s, f, "a scan output of the body changes its shape between iterations");
    }
    if (t->dtype == SONDE_DTYPE_STRING) {
        if (!sn_vec_push(&k->strings, f->alloc, *row))
            return sn_fail_memory(f->err, sizeof *row);
        memset(row, 0, sizeof *row);
        k->n++;
        return SONDE_OK;
    }
    if (k->n == k->cap) {
        /* A trip count from the model is only believed for what fits a modest block. */
        int64_t limit = k->row.bytes ? (int64_t)(((size_t)1 << 24) / k->row.bytes) : 1 << 20;
        int64_t rows = k->cap                        ? 2 * k->cap
                       : expect < 8                  ? 8
                       : expect > limit && limit > 8 ? limit
                                                     : expect;
        if (k->cap == 0 && limit < 8)
            rows = expect > 0 && expect < 8 ? expect : 2;
        SN_TRY(stack_grow(f, k, rows));
    }
    if (k->row.bytes)
        memcpy((char *)k->buffer->data + (size_t)k->n * k->row.bytes, t->data, k->row.bytes);
    k->n++;
    sn_slot_clear(row);
    return SONDE_OK;
}

static sonde_status finish_strings(sn_frame *f, sn_stack *k, const int64_t *dims, int rank,
                                   sn_slot *out)
{
    size_t each = (size_t)sn_tensor_count(&k->row), n = each * k->strings.n, bytes;
    if (!sn_size_mul(n, sizeof(sonde_string), &bytes))
        return sn_fail_memory(f->err, SIZE_MAX);
    sonde_string *all = sn_alloc(f->alloc, bytes);
    if (!all)
        return sn_fail_memory(f->err, bytes);
    for (size_t i = 0; i < k->strings.n && each; i++)
        memcpy(all + i * each, k->strings.data[i].t.data, each * sizeof *all);
    sonde_status st = sn_slot_new_strings(out, dims, rank, all, f->alloc, f->err);
    sn_free(f->alloc, all, bytes);
    return st;
}

sonde_status sn_stack_finish(const sn_step *s, sn_frame *f, sn_stack *k, const sn_type *type,
                             sn_slot *out)
{
    int64_t dims[SN_MAX_RANK] = {k->n};
    int rank = k->n ? k->row.rank : type->rank > 0 ? type->rank : 0;
    if (rank >= SN_MAX_RANK)
        return sn_run_fail(s, f, "a scan output has rank %d, which is too large to be stacked",
                           rank);
    if (k->n == 0) {
        for (int i = 0; i < rank; i++)
            dims[i + 1] = sn_dim_known(type->dims[i]) ? type->dims[i] : 0;
        return sn_slot_new_tensor(out, type->dtype, dims, rank + 1, f->alloc, f->err);
    }
    memcpy(dims + 1, k->row.dims, (size_t)rank * sizeof *dims);
    if (k->row.dtype == SONDE_DTYPE_STRING)
        return finish_strings(f, k, dims, rank + 1, out);
    sn_slot_clear(out);
    out->kind = SN_KIND_TENSOR;
    out->t = (sn_tensor){.dtype = k->row.dtype,
                         .rank = rank + 1,
                         .data = k->buffer->data,
                         .bytes = (size_t)k->n * k->row.bytes,
                         .owner = k->buffer};
    memcpy(out->t.dims, dims, sizeof dims);
    k->buffer = NULL;
    return SONDE_OK;
}

void sn_stack_free(sn_frame *f, sn_stack *k)
{
    sn_buffer_unref(k->buffer);
    for (size_t i = 0; i < k->strings.n; i++)
        sn_slot_clear(&k->strings.data[i]);
    sn_vec_free(&k->strings, f->alloc);
}
