/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: lists that share their elements' buffers, and mostly their memory (graph/slot.c), so
 * that a loop may grow one element by element. No tensor bytes move unless they were borrowed from
 * an arena. */
#include <string.h>

#include "ops/shared/data_movement.h"

static sonde_status sequence_of(sn_infer *c, uint32_t o, const sn_type *elem)
{
    sn_type *copy = SN_NEW(c->arena, sn_type);
    if (!copy)
        return sn_fail_memory(c->err, sizeof *copy);
    *copy = *elem;
    c->out[o].type = (sn_type){.kind = SN_KIND_SEQUENCE, .rank = -1, .elem = copy};
    return SONDE_OK;
}

static sonde_status elem_type(sn_infer *c, uint32_t i, sn_type *elem)
{
    const sn_type *t = &c->in[i]->type;
    *elem = (sn_type){.kind = SN_KIND_NONE, .rank = -1};
    if (t->kind != SN_KIND_SEQUENCE && t->kind != SN_KIND_NONE)
        return sn_infer_fail(c, "input %u is not a sequence", i);
    if (t->elem)
        *elem = *t->elem;
    return SONDE_OK;
}

/* The shape two elements share, as far as they do. */
static void join_elem(sn_type *a, const sn_type *b, sn_arena *arena)
{
    bool tensors = a->kind == SN_KIND_TENSOR && b->kind == SN_KIND_TENSOR;
    if (!tensors || a->rank != b->rank || a->rank < 0) {
        a->rank = -1;
        a->dims = NULL;
        return;
    }
    sn_dim *dims = SN_NEW_N(arena, sn_dim, a->rank ? a->rank : 1);
    for (int i = 0; dims && i < a->rank; i++)
        dims[i] = sn_dim_same(a->dims[i], b->dims[i]) ? a->dims[i] : SN_DIM_UNKNOWN;
    a->rank = dims ? a->rank : -1;
    a->dims = dims;
}

static sonde_status input_list(const sn_step *s, sn_frame *f, const sn_list **l)
{
    const sn_slot *x = sn_in_slot(s, f, 0);
    if (x->kind != SN_KIND_SEQUENCE || !x->list)
        return sn_run_fail(s, f, "input 0 is not a sequence");
    *l = x->list;
    return SONDE_OK;
}

/* Output 0 becomes this list; the reference goes with it. */
static void set_list(const sn_step *s, sn_frame *f, sn_list *l)
{
    sn_slot *y = sn_out_slot(s, f, 0);
    sn_slot_clear(y);
    y->kind = SN_KIND_SEQUENCE;
    y->list = l;
}

/* Position in a list of n, negative from the end; `extra` allows n itself. */
static sonde_status read_position(const sn_step *s, sn_frame *f, uint32_t i, size_t n, int extra,
                                  int64_t *at)
{
    const sn_slot *x = sn_in_slot(s, f, i);
    if (x->kind != SN_KIND_TENSOR || sn_tensor_count(&x->t) != 1)
        return sn_run_fail(s, f, "the position is not a single number");
    int64_t v = sn_tensor_int(&x->t, 0), len = (int64_t)n;
    if (v < -len || v >= len + extra)
        return sn_run_fail(s, f, "position %lld is outside a sequence of %zu", (long long)v, n);
    *at = v < 0 ? v + len : v;
    return SONDE_OK;
}

#define SEQUENCE_OP(NAME, SINCE, MIN_IN, MAX_IN, PARAMS, PREPARE, INFER, RUN)                      \
    {                                                                                              \
        {SN_OP_HEAD(NAME, SINCE, 0, MIN_IN, MAX_IN, 1, 1),                                         \
         .flags = SN_OP_NONTENSOR,                                                                 \
         .params_size = PARAMS,                                                                    \
         .prepare = PREPARE,                                                                       \
         .infer = INFER,                                                                           \
         .run = RUN,                                                                               \
         .types = SN_ALL_TYPES},                                                                   \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }

/* ------------------------------------------------------------------ SequenceEmpty */
typedef struct empty_params {
    int64_t dtype;
} empty_params;

static sonde_status prepare_empty(sn_prep *p)
{
    empty_params *r = p->params;
    SN_TRY(sn_prep_int(p, "dtype", SONDE_DTYPE_F32, &r->dtype));
    return sn_dtype_valid(r->dtype) ? SONDE_OK
                                    : sn_prep_fail(p, "attribute 'dtype' is not an element type");
}

static sonde_status infer_empty(sn_infer *c)
{
    sn_dtype dtype = (sn_dtype)((const empty_params *)c->params)->dtype;
    return sequence_of(c, 0, &(sn_type){.kind = SN_KIND_TENSOR, .dtype = dtype, .rank = -1});
}

static sonde_status run_empty(const sn_step *s, sn_frame *f)
{
    sn_list *l = sn_list_new(f->alloc, 0);
    if (!l)
        return sn_fail_memory(f->err, sizeof *l);
    l->elem_kind = SN_KIND_TENSOR;
    l->elem_dtype = (sn_dtype)((const empty_params *)s->params)->dtype;
    set_list(s, f, l);
    return SONDE_OK;
}

const sn_op sn_op_sequence_empty[] = SEQUENCE_OP("SequenceEmpty", 11, 0, 0, sizeof(empty_params),
                                                 prepare_empty, infer_empty, run_empty);

/* ------------------------------------------------------------------ SequenceConstruct */
static sonde_status infer_construct(sn_infer *c)
{
    sn_type elem = c->in[0]->type;
    for (uint32_t i = 1; i < c->n_in; i++) {
        if (!sn_infer_has(c, i))
            return sn_infer_fail(c, "input %u is missing", i);
        const sn_type *t = &c->in[i]->type;
        if (t->kind == SN_KIND_TENSOR && elem.kind == SN_KIND_TENSOR && t->dtype != elem.dtype &&
            t->dtype != SONDE_DTYPE_UNDEFINED && elem.dtype != SONDE_DTYPE_UNDEFINED)
            return sn_infer_fail(c, "input %u is %s, the others are %s", i, sn_dtype_name(t->dtype),
                                 sn_dtype_name(elem.dtype));
        join_elem(&elem, t, c->arena);
    }
    return sequence_of(c, 0, &elem);
}

static sonde_status run_construct(const sn_step *s, sn_frame *f)
{
    sn_list *l = sn_list_new(f->alloc, s->n_in);
    if (!l)
        return sn_fail_memory(f->err, s->n_in * sizeof(sn_slot));
    const sn_slot *first = sn_in_slot(s, f, 0);
    l->elem_kind = first->kind;
    l->elem_dtype = first->kind == SN_KIND_TENSOR ? first->t.dtype : SONDE_DTYPE_UNDEFINED;
    for (uint32_t i = 0; i < s->n_in; i++) {
        sonde_status st = sn_list_push(l, sn_in_slot(s, f, i), f->err);
        if (st != SONDE_OK) {
            sn_list_unref(l);
            return st;
        }
    }
    set_list(s, f, l);
    return SONDE_OK;
}

const sn_op sn_op_sequence_construct[] =
    SEQUENCE_OP("SequenceConstruct", 11, 1, -1, 0, NULL, infer_construct, run_construct);

/* ------------------------------------------------------------------ SequenceInsert, SequenceErase
 */
static sonde_status infer_insert(sn_infer *c)
{
    sn_type elem;
    SN_TRY(elem_type(c, 0, &elem));
    if (elem.kind == SN_KIND_NONE)
        elem = c->in[1]->type;
    else
        join_elem(&elem, &c->in[1]->type, c->arena);
    return sequence_of(c, 0, &elem);
}

static sonde_status run_insert(const sn_step *s, sn_frame *f)
{
    const sn_list *l = NULL;
    const sn_slot *item = sn_in_slot(s, f, 1);
    SN_TRY(input_list(s, f, &l));
    int64_t at = (int64_t)l->n;
    if (sn_has(s, 2) && sn_in_slot(s, f, 2)->kind != SN_KIND_NONE)
        SN_TRY(read_position(s, f, 2, l->n, 1, &at));
    if (l->elem_dtype != SONDE_DTYPE_UNDEFINED && item->kind == SN_KIND_TENSOR &&
        item->t.dtype != l->elem_dtype)
        return sn_run_fail(s, f, "cannot insert a %s tensor into a sequence of %s",
                           sn_dtype_name(item->t.dtype), sn_dtype_name(l->elem_dtype));
    sn_list *made = NULL;
    SN_TRY(sn_list_with(&made, l, (size_t)at, item, f->err));
    set_list(s, f, made);
    return SONDE_OK;
}

const sn_op sn_op_sequence_insert[] =
    SEQUENCE_OP("SequenceInsert", 11, 2, 3, 0, NULL, infer_insert, run_insert);

static sonde_status infer_erase(sn_infer *c)
{
    sn_type elem;
    SN_TRY(elem_type(c, 0, &elem));
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_erase(const sn_step *s, sn_frame *f)
{
    const sn_list *l = NULL;
    SN_TRY(input_list(s, f, &l));
    if (l->n == 0)
        return sn_run_fail(s, f, "cannot erase an element of an empty sequence");
    int64_t at = (int64_t)l->n - 1;
    if (sn_has(s, 1) && sn_in_slot(s, f, 1)->kind != SN_KIND_NONE)
        SN_TRY(read_position(s, f, 1, l->n, 0, &at));
    sn_list *made = NULL;
    SN_TRY(sn_list_without(&made, l, (size_t)at, f->err));
    set_list(s, f, made);
    return SONDE_OK;
}

const sn_op sn_op_sequence_erase[] =
    SEQUENCE_OP("SequenceErase", 11, 1, 2, 0, NULL, infer_erase, run_erase);

/* ------------------------------------------------------------------ SequenceAt, SequenceLength */
static sonde_status infer_at(sn_infer *c)
{
    return elem_type(c, 0, &c->out[0].type);
}

static sonde_status run_at(const sn_step *s, sn_frame *f)
{
    const sn_list *l = NULL;
    int64_t at = 0;
    SN_TRY(input_list(s, f, &l));
    SN_TRY(read_position(s, f, 1, l->n, 0, &at));
    return sn_slot_share(sn_out_slot(s, f, 0), &l->items[at], true, f->alloc, f->err);
}

const sn_op sn_op_sequence_at[] = SEQUENCE_OP("SequenceAt", 11, 2, 2, 0, NULL, infer_at, run_at);

static sonde_status infer_length(sn_infer *c)
{
    sn_type elem;
    SN_TRY(elem_type(c, 0, &elem));
    return sn_infer_bounded(c, 0, SONDE_DTYPE_I64, NULL, 0);
}

static sonde_status run_length(const sn_step *s, sn_frame *f)
{
    const sn_list *l = NULL;
    sn_tensor *y;
    SN_TRY(input_list(s, f, &l));
    int64_t n = (int64_t)l->n;
    SN_TRY(sn_run_output(s, f, 0, SONDE_DTYPE_I64, NULL, 0, &y));
    if (y)
        *(int64_t *)y->data = n;
    return SONDE_OK;
}

const sn_op sn_op_sequence_length[] =
    SEQUENCE_OP("SequenceLength", 11, 1, 1, 0, NULL, infer_length, run_length);

/* ------------------------------------------------------------------ SplitToSequence */
typedef struct split_params {
    int64_t axis, keepdims;
} split_params;

static sonde_status prepare_split(sn_prep *p)
{
    split_params *r = p->params;
    SN_TRY(sn_prep_int(p, "axis", 0, &r->axis));
    return sn_prep_int(p, "keepdims", 1, &r->keepdims);
}

static sonde_status infer_split(sn_infer *c)
{
    const split_params *r = c->params;
    sn_input_type x;
    sn_type elem = {.kind = SN_KIND_TENSOR, .rank = -1};
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    elem.dtype = x.dtype;
    if (x.rank < 0)
        return sequence_of(c, 0, &elem);
    SN_TRY(sn_infer_axis(c, r->axis, x.rank, false, &axis));
    sn_dim *dims = SN_NEW_N(c->arena, sn_dim, x.rank);
    if (!dims)
        return sn_fail_memory(c->err, SN_MAX_RANK * sizeof *dims);
    bool drop = !sn_infer_has(c, 1) && !r->keepdims;
    elem.rank = 0;
    for (int i = 0; i < x.rank; i++)
        if (i != axis)
            dims[elem.rank++] = x.dims[i];
        else if (!drop)
            dims[elem.rank++] = sn_infer_has(c, 1) ? SN_DIM_UNKNOWN : 1;
    elem.dims = dims;
    return sequence_of(c, 0, &elem);
}

/* Entries [at, at + size) of the axis as a tensor of its own. */
static sonde_status push_part(sn_frame *f, sn_list *l, const sn_tensor *x, int axis, int64_t at,
                              int64_t size, bool drop)
{
    int64_t dims[SN_MAX_RANK], part[SN_MAX_RANK];
    ptrdiff_t src[SN_MAX_RANK], dst[SN_MAX_RANK];
    size_t elem = sn_dtype_bytes(x->dtype);
    int rank = 0;
    memcpy(part, x->dims, sizeof part);
    part[axis] = size;
    for (int i = 0; i < x->rank; i++)
        if (i != axis || !drop)
            dims[rank++] = part[i];
    sn_slot made = {0};
    SN_TRY(sn_slot_new_tensor(&made, x->dtype, dims, rank, f->alloc, f->err));
    sn_dense_strides(x->dims, x->rank, src);
    sn_dense_strides(part, x->rank, dst);
    sn_copy c;
    sn_copy_plan(&c, elem, x->rank, part, dst, src);
    sn_copy_run(&c, made.t.data, (const char *)x->data + (size_t)(at * src[axis]) * elem, f->pool);
    sonde_status st = sn_list_push(l, &made, f->err); /* strings are copied there */
    sn_slot_clear(&made);
    return st;
}

static sonde_status split_parts(const sn_step *s, sn_frame *f, sn_list *l, int axis)
{
    const split_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *sizes = sn_has(s, 1) ? sn_in(s, f, 1) : NULL;
    int64_t whole = x->dims[axis], at = 0, step = 1;
    bool listed = sizes && sizes->rank > 0;
    if (sizes && !listed)
        step = sn_tensor_int(sizes, 0);
    if (step < 1)
        return sn_run_fail(s, f, "parts of %lld entries are invalid", (long long)step);
    int64_t n = listed ? sn_tensor_count(sizes) : whole / step + (whole % step != 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t left = whole - at, size = listed        ? sn_tensor_int(sizes, i)
                                          : step < left ? step
                                                        : left;
        if (size < 0 || size > left)
            return sn_run_fail(s, f, "part %lld of %lld entries does not fit", (long long)i,
                               (long long)size);
        SN_TRY(push_part(f, l, x, axis, at, size, !sizes && !r->keepdims));
        at += size;
    }
    return at == whole ? SONDE_OK
                       : sn_run_fail(s, f, "the parts add up to %lld, but the axis has %lld",
                                     (long long)at, (long long)whole);
}

static sonde_status run_split(const sn_step *s, sn_frame *f)
{
    const sn_slot *x = sn_in_slot(s, f, 0);
    int axis;
    if (x->kind != SN_KIND_TENSOR ||
        !sn_axis_index(((const split_params *)s->params)->axis, x->t.rank, &axis))
        return sn_run_fail(s, f, "the axis is outside the input");
    sn_list *l = sn_list_new(f->alloc, 0);
    if (!l)
        return sn_fail_memory(f->err, sizeof *l);
    l->elem_kind = SN_KIND_TENSOR;
    l->elem_dtype = x->t.dtype;
    sonde_status st = split_parts(s, f, l, axis);
    if (st != SONDE_OK) {
        sn_list_unref(l);
        return st;
    }
    set_list(s, f, l);
    return SONDE_OK;
}

const sn_op sn_op_split_to_sequence[] = SEQUENCE_OP(
    "SplitToSequence", 11, 1, 2, sizeof(split_params), prepare_split, infer_split, run_split);

/* ------------------------------------------------------------------ ConcatFromSequence */
static sonde_status prepare_concat(sn_prep *p)
{
    split_params *r = p->params;
    if (!sn_node_attr(p->node, "axis"))
        return sn_prep_fail(p, "attribute 'axis' is missing");
    SN_TRY(sn_prep_int(p, "axis", 0, &r->axis));
    return sn_prep_int(p, "new_axis", 0, &r->keepdims);
}

static sonde_status infer_concat(sn_infer *c)
{
    const split_params *r = c->params;
    sn_type elem;
    sn_dim dims[SN_MAX_RANK];
    int axis;
    SN_TRY(elem_type(c, 0, &elem));
    if (elem.kind != SN_KIND_TENSOR || elem.rank < 0)
        return sn_infer_rank(c, 0, elem.dtype, -1);
    int rank = elem.rank + (r->keepdims != 0);
    if (rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    SN_TRY(sn_infer_axis(c, r->axis, rank, false, &axis));
    for (int i = 0, k = 0; i < rank; i++)
        dims[i] = i == axis ? (k += !r->keepdims, SN_DIM_UNKNOWN) : elem.dims[k++];
    return sn_infer_bounded(c, 0, elem.dtype, dims, rank);
}

static sonde_status run_concat(const sn_step *s, sn_frame *f)
{
    const split_params *r = s->params;
    const sn_list *l = NULL;
    SN_TRY(input_list(s, f, &l));
    if (l->n == 0)
        return sn_run_fail(s, f, "cannot concatenate an empty sequence");
    const sn_tensor *first = &l->items[0].t;
    int64_t dims[SN_MAX_RANK + 1], total = 0, outer = 1, inner = 1;
    bool fresh = r->keepdims != 0;
    int axis, rank = first->rank + fresh;
    if (rank > SN_MAX_RANK || !sn_axis_index(r->axis, rank, &axis))
        return sn_run_fail(s, f, "the axis is outside elements of rank %d", first->rank);
    for (size_t e = 0; e < l->n; e++) {
        const sn_tensor *x = &l->items[e].t;
        bool same = l->items[e].kind == SN_KIND_TENSOR && x->rank == first->rank &&
                    x->dtype == first->dtype;
        for (int i = 0; same && i < x->rank; i++)
            same = x->dims[i] == first->dims[i] || (!fresh && i == axis);
        if (!same || !sn_i64_add(total, fresh ? 1 : x->dims[axis], &total))
            return sn_run_fail(s, f,
                               "the shape of element %zu does not match the elements before it", e);
    }
    for (int i = 0, k = 0; i < rank; i++) {
        dims[i] = i == axis ? (k += !fresh, total) : first->dims[k++];
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : dims[i];
    }
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, first->dtype, dims, rank, &y));
    size_t elem = sn_dtype_bytes(first->dtype);
    char *to = y ? y->data : NULL;
    for (size_t e = 0; to && e < l->n; e++) {
        const sn_tensor *x = &l->items[e].t;
        int64_t run = inner * (fresh ? 1 : x->dims[axis]);
        sn_copy c;
        sn_copy_plan(&c, elem, 2, (int64_t[2]){outer, run},
                     (ptrdiff_t[2]){(ptrdiff_t)(inner * total), 1},
                     (ptrdiff_t[2]){(ptrdiff_t)run, 1});
        sn_copy_run(&c, to, x->data, f->pool);
        to += (size_t)run * elem;
    }
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_concat_from_sequence[] = SEQUENCE_OP(
    "ConcatFromSequence", 11, 1, 1, sizeof(split_params), prepare_concat, infer_concat, run_concat);
