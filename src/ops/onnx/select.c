/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose output size only the data tells: Compress, NonZero, Unique. They count first,
 * allocate exactly, then write. */
#include <string.h>

#include "compute/select.h"
#include "ops/shared/data_movement.h"

typedef struct select_params {
    bool has_axis;
    int64_t axis, sorted;
} select_params;

static sonde_status prepare_select(sn_prep *p)
{
    select_params *r = p->params;
    r->has_axis = sn_node_attr(p->node, "axis") != NULL;
    SN_TRY(sn_prep_int(p, "sorted", 1, &r->sorted));
    return sn_prep_int(p, "axis", 0, &r->axis);
}

/* The input seen as [outer, n, inner] around the axis, or as n single elements without one. */
static bool entries_of(const select_params *p, const int64_t *dims, int rank, sn_entries *l)
{
    int axis;
    *l = (sn_entries){1, 1, 1};
    if (p->has_axis && !sn_axis_index(p->axis, rank, &axis))
        return false;
    for (int i = 0; i < rank; i++)
        *(!p->has_axis || i == axis ? &l->n : i < axis ? &l->outer : &l->inner) *= dims[i];
    return true;
}

/* Output dims with `count` on the axis (or alone). */
static int picked_dims(const select_params *p, const sn_tensor *x, int64_t count, int64_t *dims)
{
    int axis = 0;
    if (!p->has_axis || !sn_axis_index(p->axis, x->rank, &axis)) {
        dims[0] = count;
        return 1;
    }
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[axis] = count;
    return x->rank;
}

/* Infers an output that is the input with an unknown number of entries on the axis. */
static sonde_status infer_picked(sn_infer *c, uint32_t o)
{
    const select_params *p = c->params;
    sn_input_type x;
    sn_dim dims[SN_MAX_RANK] = {SN_DIM_UNKNOWN};
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (!p->has_axis)
        return sn_infer_bounded(c, o, x.dtype, dims, 1);
    if (x.rank < 0)
        return sn_infer_rank(c, o, x.dtype, -1);
    SN_TRY(sn_infer_axis(c, p->axis, x.rank, false, &axis));
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    dims[axis] = SN_DIM_UNKNOWN;
    return sn_infer_bounded(c, o, x.dtype, dims, x.rank);
}

/* ------------------------------------------------------------------ Compress */
static sonde_status infer_compress(sn_infer *c)
{
    return infer_picked(c, 0);
}

static sonde_status run_compress(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *condition = sn_in(s, f, 1);
    const uint8_t *keep = condition->data;
    sn_entries l;
    int64_t dims[SN_MAX_RANK], n = sn_tensor_count(condition);
    if (condition->dtype != SONDE_DTYPE_BOOL)
        return sn_run_fail(s, f, "the condition is %s, expected bool",
                           sn_dtype_name(condition->dtype));
    if (!entries_of(s->params, x->dims, x->rank, &l))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    if (n > l.n)
        n = l.n;
    const int64_t count = sn_flags_count(keep, n);
    const int rank = picked_dims(s->params, x, count, dims);
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, x->dtype, dims, rank, &y));
    if (!y || sn_tensor_count(y) == 0)
        return SONDE_OK;
    sn_compress_run(&l, sn_dtype_bytes(x->dtype), y->data, x->data, keep, n, count);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_compress[] = {
    {SN_OP_HEAD("Compress", 9, 0, 2, 2, 1, 1), .flags = SN_OP_DATA_DEPENDENT,
     .params_size = sizeof(select_params), .prepare = prepare_select, .infer = infer_compress,
     .run = run_compress, .types = SN_ALL_TYPES},
    {.name = NULL}};

/* ------------------------------------------------------------------ NonZero */
static sonde_status infer_nonzero(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    sn_dim dims[2] = {x.rank < 0 ? SN_DIM_UNKNOWN : x.rank, SN_DIM_UNKNOWN};
    return sn_infer_bounded(c, 0, SONDE_DTYPE_I64, dims, 2);
}

static sonde_status run_nonzero(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    const int64_t count = sn_nonzero_count(sn_tensor_elems(x), sn_tensor_count(x));
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, SONDE_DTYPE_I64, (int64_t[2]){x->rank, count}, 2, &y));
    if (!y || sn_tensor_count(y) == 0)
        return SONDE_OK;
    sn_nonzero_run(sn_tensor_elems(x), x->dims, x->rank, y->data, count);
    return SONDE_OK;
}

const sn_op sn_op_non_zero[] = {{SN_OP_HEAD("NonZero", 9, 0, 1, 1, 1, 1),
                                 .flags = SN_OP_DATA_DEPENDENT, .infer = infer_nonzero,
                                 .run = run_nonzero, .types = SN_ALL_TYPES},
                                {.name = NULL}};

/* ------------------------------------------------------------------ Unique */
static sonde_status infer_unique(sn_infer *c)
{
    const select_params *p = c->params;
    sn_input_type x;
    sn_dim n = SN_DIM_UNKNOWN, whole = 1;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(infer_picked(c, 0));
    if (x.rank < 0) {
        whole = SN_DIM_UNKNOWN;
    } else if (p->has_axis) {
        SN_TRY(sn_infer_axis(c, p->axis, x.rank, false, &axis));
        whole = x.dims[axis];
    } else {
        for (int i = 0; i < x.rank; i++)
            whole = sn_dim_mul(whole, x.dims[i]);
    }
    SN_TRY(sn_infer_bounded(c, 1, SONDE_DTYPE_I64, &n, 1));
    SN_TRY(sn_infer_bounded(c, 2, SONDE_DTYPE_I64, &whole, 1));
    return sn_infer_bounded(c, 3, SONDE_DTYPE_I64, &n, 1);
}

typedef struct unique_bound {
    sn_unique plan;
    sn_piece core;
} unique_bound;

static sonde_status bind_unique(sn_bind *b)
{
    const select_params *p = b->params;
    const sn_type *x = &b->in[0]->type;
    sn_entries l;
    if (!entries_of(p, x->dims, x->rank, &l))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the axis is outside an input of rank %d",
                            x->rank);
    unique_bound *k = SN_NEW(b->arena, unique_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    k->plan = sn_unique_plan(l, p->sorted != 0);
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    return SONDE_OK;
}

static int64_t *ints_of(const sn_tensor *t)
{
    return t ? t->data : NULL;
}

static sonde_status run_unique(const sn_step *s, sn_frame *f)
{
    const select_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const unique_bound *k = s->bound;
    const int64_t n = k->plan.entries.n;
    int64_t dims[SN_MAX_RANK];
    void *core = sn_piece_ptr(f, k->core);
    const int64_t groups = sn_unique_find(&k->plan, sn_tensor_elems(x), core);
    const int rank = picked_dims(p, x, groups, dims);
    sn_tensor *y, *first, *inverse, *counts;
    SN_TRY(sn_run_output(s, f, 0, x->dtype, dims, rank, &y));
    SN_TRY(sn_run_output(s, f, 1, SONDE_DTYPE_I64, &groups, 1, &first));
    SN_TRY(sn_run_output(s, f, 2, SONDE_DTYPE_I64, &n, 1, &inverse));
    SN_TRY(sn_run_output(s, f, 3, SONDE_DTYPE_I64, &groups, 1, &counts));
    sn_unique_write(&k->plan, sn_tensor_elems(x), core, groups, y ? y->data : NULL, ints_of(first),
                    ints_of(inverse), ints_of(counts));
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_unique[] = {{SN_OP_HEAD("Unique", 11, 0, 1, 1, 1, 4),
                               .flags = SN_OP_DATA_DEPENDENT, .params_size = sizeof(select_params),
                               .prepare = prepare_select, .infer = infer_unique,
                               .bind = bind_unique, .run = run_unique, .types = SN_ALL_TYPES},
                              {.name = NULL}};
