/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only look at the same elements in another shape: Reshape, Flatten, Squeeze,
 * Unsqueeze, Identity. The plan lets them share memory; what runs here is the copy for when it
 * could not. */
#include <string.h>

#include "ops/shared/data_movement.h"

static sonde_status run_view(const sn_step *s, sn_frame *f)
{
    return sn_run_copy(s, f, 0, sn_in(s, f, 0));
}

/* ------------------------------------------------------------------ Reshape */
typedef struct reshape_params {
    bool from_attr;
    int64_t allowzero;
    const int64_t *shape; /* opset 1 */
    size_t n;
} reshape_params;

static sonde_status prepare_reshape_1(sn_prep *p)
{
    reshape_params *r = p->params;
    r->from_attr = true;
    return sn_prep_ints(p, "shape", &r->shape, &r->n);
}

static sonde_status prepare_reshape(sn_prep *p)
{
    return sn_prep_int(p, "allowzero", 0, &((reshape_params *)p->params)->allowzero);
}

/* The one dim that is not given follows from the element count: numbers divide, symbols cancel. */
static sonde_status solve_missing(sn_infer *c, const sn_input_type *x, sn_dim *dims, int rank,
                                  int missing)
{
    int64_t in_count = 1, out_count = 1;
    sn_dim left[SN_MAX_RANK];
    int n_left = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!sn_dim_known(x->dims[i]))
            left[n_left++] = x->dims[i];
        else if (!sn_i64_mul(in_count, x->dims[i], &in_count))
            return SONDE_OK;
    }
    for (int i = 0; i < rank; i++) {
        if (i == missing)
            continue;
        if (sn_dim_known(dims[i])) {
            if (!sn_i64_mul(out_count, dims[i], &out_count))
                return SONDE_OK;
            continue;
        }
        int k = 0;
        while (k < n_left && !sn_dim_same(left[k], dims[i]))
            k++;
        if (k == n_left)
            return SONDE_OK;
        left[k] = left[--n_left];
    }
    if (n_left == 0) {
        if (out_count == 0) {
            dims[missing] = 0;
        } else {
            if (in_count % out_count)
                return sn_infer_fail(c, "%lld elements cannot be divided into rows of %lld",
                                     (long long)in_count, (long long)out_count);
            dims[missing] = in_count / out_count;
        }
    } else if (n_left == 1 && in_count == out_count && in_count != 0) {
        dims[missing] = left[0];
    }
    return SONDE_OK;
}

static sonde_status infer_reshape(sn_infer *c)
{
    const reshape_params *r = c->params;
    sn_input_type x;
    const sn_dim *shape = r->shape;
    int64_t n = (int64_t)r->n;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (!r->from_attr) {
        SN_TRY(sn_infer_list(c, 1, &shape, &n));
        if (!shape)
            return n > SN_MAX_RANK
                       ? sn_infer_fail(c, "a shape of %lld dims is too long", (long long)n)
                       : sn_infer_rank(c, 0, x.dtype, (int)n);
    }
    if (n > SN_MAX_RANK)
        return sn_infer_fail(c, "a shape of %lld dims is too long", (long long)n);
    sn_dim dims[SN_MAX_RANK];
    int missing = -1, unknown = 0;
    bool free_dim = false;
    for (int i = 0; i < (int)n; i++) {
        dims[i] = shape[i];
        if (dims[i] == 0 && !r->allowzero) {
            if (x.rank >= 0 && i >= x.rank)
                return sn_infer_fail(c, "the shape copies dim %d, but the input has rank %d", i,
                                     x.rank);
            dims[i] = x.rank >= 0 ? x.dims[i] : SN_DIM_UNKNOWN;
        } else if (dims[i] == -1) {
            if (free_dim)
                return sn_infer_fail(c, "the shape has more than one -1");
            free_dim = true;
            dims[i] = SN_DIM_UNKNOWN;
            missing = i;
        } else if (sn_dim_known(dims[i]) && dims[i] < 0) {
            return sn_infer_fail(c, "the shape contains the invalid dim %lld", (long long)dims[i]);
        }
        if (dims[i] == SN_DIM_UNKNOWN) {
            unknown++;
            if (!free_dim)
                missing = i;
        }
    }
    if (x.rank >= 0 && unknown == 1 && missing >= 0)
        SN_TRY(solve_missing(c, &x, dims, (int)n, missing));
    int64_t a = 1, b = 1;
    if (x.rank >= 0 && sn_dims_known(x.dims, x.rank) && sn_dims_known(dims, n) &&
        sn_dims_count(x.dims, x.rank, &a) && (!sn_dims_count(dims, (int)n, &b) || a != b))
        return sn_infer_fail(c, "cannot reshape %lld elements into %lld", (long long)a,
                             (long long)b);
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, (int)n));
    return sn_infer_pass_ints(c, 0, 0);
}

const sn_op sn_op_reshape[] = {
    {SN_OP_HEAD("Reshape", 1, 4, 1, 1, 1, 1), .flags = SN_OP_VIEW,
     .params_size = sizeof(reshape_params), .prepare = prepare_reshape_1, .infer = infer_reshape,
     .run = run_view, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES},
    {SN_OP_HEAD("Reshape", 5, 0, 2, 2, 1, 1), .flags = SN_OP_VIEW,
     .params_size = sizeof(reshape_params), .prepare = prepare_reshape, .infer = infer_reshape,
     .run = run_view, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES},
    {.name = NULL}};

/* ------------------------------------------------------------------ Flatten */
typedef struct axis_params {
    int64_t axis;
} axis_params;

static sonde_status prepare_flatten(sn_prep *p)
{
    return sn_prep_int(p, "axis", 1, &((axis_params *)p->params)->axis);
}

static sonde_status infer_flatten(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, 2);
    int64_t axis = ((const axis_params *)c->params)->axis;
    if (axis < -x.rank || axis > x.rank)
        return sn_infer_fail(c, "axis %lld is outside a tensor of rank %d", (long long)axis,
                             x.rank);
    if (axis < 0)
        axis += x.rank;
    sn_dim dims[2] = {1, 1};
    for (int i = 0; i < x.rank; i++)
        dims[i >= axis] = sn_dim_mul(dims[i >= axis], x.dims[i]);
    return sn_infer_bounded(c, 0, x.dtype, dims, 2);
}

const sn_op sn_op_flatten[] = {{SN_OP_HEAD("Flatten", 1, 0, 1, 1, 1, 1), .flags = SN_OP_VIEW,
                                .params_size = sizeof(axis_params), .prepare = prepare_flatten,
                                .infer = infer_flatten, .run = run_view, .half = SN_HALF_MOVED,
                                .types = SN_ALL_TYPES},
                               {.name = NULL}};

/* ------------------------------------------------------------------ Squeeze, Unsqueeze */
typedef struct axes_params {
    const int64_t *axes; /* until opset 12 */
    size_t n;
} axes_params;

static sonde_status prepare_axes(sn_prep *p)
{
    axes_params *a = p->params;
    return sn_prep_ints(p, "axes", &a->axes, &a->n);
}

/* The axes, from attribute or input 1: *n < 0 or *axes NULL with *n > 0 when not known. */
static sonde_status get_axes(sn_infer *c, const sn_dim **axes, int64_t *n)
{
    const axes_params *a = c->params;
    if (a) {
        *axes = a->axes;
        *n = (int64_t)a->n;
        return SONDE_OK;
    }
    SN_TRY(sn_infer_list(c, 1, axes, n));
    if (*axes && !sn_dims_known(*axes, *n))
        *axes = NULL;
    return SONDE_OK;
}

static sonde_status infer_squeeze(sn_infer *c)
{
    sn_input_type x;
    const sn_dim *axes;
    int64_t n;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(get_axes(c, &axes, &n));
    bool all = n == 0; /* no axes: every dim of 1 goes */
    if (x.rank < 0 || (!axes && !all) || (all && !sn_dims_known(x.dims, x.rank))) {
        int rank = x.rank >= 0 && n > 0 && n <= x.rank ? x.rank - (int)n : -1;
        return sn_infer_rank(c, 0, x.dtype, rank);
    }
    bool gone[SN_MAX_RANK] = {false};
    if (!all)
        SN_TRY(sn_infer_axes(c, axes, n, x.rank, gone));
    sn_dim dims[SN_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x.rank; i++) {
        if (gone[i] && sn_dim_known(x.dims[i]) && x.dims[i] != 1)
            return sn_infer_fail(c, "dim %d is %lld; only dims of size 1 can be removed", i,
                                 (long long)x.dims[i]);
        if (all ? x.dims[i] != 1 : !gone[i])
            dims[rank++] = x.dims[i];
    }
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, rank));
    return sn_infer_pass_ints(c, 0, 0);
}

static sonde_status infer_unsqueeze(sn_infer *c)
{
    sn_input_type x;
    const sn_dim *axes;
    int64_t n;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(get_axes(c, &axes, &n));
    if (n > SN_MAX_RANK || (x.rank >= 0 && n >= 0 && n + x.rank > SN_MAX_RANK))
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    if (x.rank < 0 || (!axes && n != 0))
        return sn_infer_rank(c, 0, x.dtype, x.rank >= 0 && n >= 0 ? x.rank + (int)n : -1);
    int rank = x.rank + (int)n;
    bool added[SN_MAX_RANK];
    SN_TRY(sn_infer_axes(c, axes, n, rank, added));
    sn_dim dims[SN_MAX_RANK];
    for (int i = 0, k = 0; i < rank; i++)
        dims[i] = added[i] ? 1 : x.dims[k++];
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, rank));
    return sn_infer_pass_ints(c, 0, 0);
}

#define AXES_OP(NAME, INFER, MIN_IN_13)                                                            \
    {                                                                                              \
        {SN_OP_HEAD(NAME, 1, 12, 1, 1, 1, 1),                                                      \
         .flags = SN_OP_VIEW,                                                                      \
         .params_size = sizeof(axes_params),                                                       \
         .prepare = prepare_axes,                                                                  \
         .infer = INFER,                                                                           \
         .run = run_view,                                                                          \
         .half = SN_HALF_MOVED,                                                                    \
         .types = SN_ALL_TYPES},                                                                   \
            {SN_OP_HEAD(NAME, 13, 0, MIN_IN_13, 2, 1, 1),                                          \
             .flags = SN_OP_VIEW,                                                                  \
             .infer = INFER,                                                                       \
             .run = run_view,                                                                      \
             .half = SN_HALF_MOVED,                                                                \
             .types = SN_ALL_TYPES},                                                               \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }

const sn_op sn_op_squeeze[] = AXES_OP("Squeeze", infer_squeeze, 1);
const sn_op sn_op_unsqueeze[] = AXES_OP("Unsqueeze", infer_unsqueeze, 2);

/* ------------------------------------------------------------------ Identity */
static sonde_status infer_identity(sn_infer *c)
{
    SN_TRY(sn_infer_same(c, 0, 0));
    return sn_infer_pass_ints(c, 0, 0);
}

static sonde_status run_identity(const sn_step *s, sn_frame *f)
{
    const sn_slot *x = sn_in_slot(s, f, 0);
    sn_slot *y = sn_out_slot(s, f, 0);
    if (x->kind == SN_KIND_TENSOR && y->kind == SN_KIND_TENSOR && y->t.data)
        return run_view(s, f);
    return sn_slot_share(y, x, true, f->alloc, f->err);
}

const sn_op sn_op_identity[] = {
    {SN_OP_HEAD("Identity", 1, 13, 1, 1, 1, 1), .flags = SN_OP_VIEW, .infer = infer_identity,
     .run = run_view, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES},
    {SN_OP_HEAD("Identity", 14, 0, 1, 1, 1, 1), .flags = SN_OP_VIEW | SN_OP_NONTENSOR,
     .infer = infer_identity, .run = run_identity, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES},
    {.name = NULL}};
