/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND: elements or rows picked by index. Every index is checked before
 * anything is read with it; a bad one names the node. */
#include "ops/onnx/indexed.h"
#include "ops/shared/data_movement.h"

typedef struct gather_params {
    int64_t axis; /* batch_dims of GatherND */
} gather_params;

static sonde_status prepare_axis(sn_prep *p)
{
    return sn_prep_int(p, "axis", 0, &((gather_params *)p->params)->axis);
}

static sonde_status check_index_type(sn_infer *c, const sn_input_type *t)
{
    if (t->dtype != SONDE_DTYPE_I64 && t->dtype != SONDE_DTYPE_I32 &&
        t->dtype != SONDE_DTYPE_UNDEFINED)
        return sn_infer_fail(c, "indices are %s, expected i32 or i64", sn_dtype_name(t->dtype));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ Gather */
static sonde_status gather_ints(sn_infer *c, int index_rank)
{
    const sn_dim *v, *index;
    int64_t n, n_index;
    SN_TRY(sn_infer_ints(c, 0, &v, &n));
    SN_TRY(sn_infer_ints(c, 1, &index, &n_index));
    if (!v || !index || index_rank > 1 || n_index > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    sn_dim out[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < n_index; i++) {
        if (!sn_dim_known(index[i])) {
            out[i] = SN_DIM_UNKNOWN;
            continue;
        }
        if (index[i] < -n || index[i] >= n)
            return sn_infer_fail(c, "index %lld is outside a dim of %lld", (long long)index[i],
                                 (long long)n);
        out[i] = v[index[i] < 0 ? index[i] + n : index[i]];
    }
    return sn_infer_set_ints(c, 0, out, n_index);
}

static sonde_status infer_gather(sn_infer *c)
{
    sn_input_type x, index;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_input_type(c, 1, &index));
    SN_TRY(check_index_type(c, &index));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, -1);
    SN_TRY(sn_infer_axis(c, ((const gather_params *)c->params)->axis, x.rank, false, &axis));
    if (index.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, -1);
    if (x.rank - 1 + index.rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    sn_dim dims[SN_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < axis; i++)
        dims[rank++] = x.dims[i];
    for (int i = 0; i < index.rank; i++)
        dims[rank++] = index.dims[i];
    for (int i = axis + 1; i < x.rank; i++)
        dims[rank++] = x.dims[i];
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, rank));
    return x.rank == 1 ? gather_ints(c, index.rank) : SONDE_OK;
}

static sonde_status run_gather(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *index = sn_in(s, f, 1);
    sn_bad_index bad;
    int axis;
    if (!sn_axis_index(((const gather_params *)s->params)->axis, x->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    sn_gather_rows g = {.outer = 1,
                        .dim = x->dims[axis],
                        .n_index = sn_tensor_count(index),
                        .row_bytes = (int64_t)sn_dtype_bytes(x->dtype)};
    for (int i = 0; i < axis; i++)
        g.outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        g.row_bytes *= x->dims[i];
    if (!sn_indices_inside(sn_tensor_elems(index), g.n_index, g.dim, &bad))
        return sn_run_bad_index(s, f, bad);
    sn_gather_rows_run(&g, sn_out(s, f, 0)->data, x->data, sn_tensor_elems(index), f->pool);
    return sn_run_own_strings(s, f, 0);
}

/* Only the rows that are picked are read. */
static sonde_status bind_gather(sn_bind *b)
{
    size_t bytes;
    const sn_type *y = &b->out[0].type;
    b->kernel = "copy_gather";
    if (sn_tensor_bytes(y->dtype, y->dims, y->rank, &bytes))
        b->bytes = 2 * (uint64_t)bytes;
    return SONDE_OK;
}

const sn_op sn_op_gather[] = {{SN_OP_HEAD("Gather", 1, 0, 2, 2, 1, 1),
                               .params_size = sizeof(gather_params), .prepare = prepare_axis,
                               .infer = infer_gather, .bind = bind_gather, .run = run_gather,
                               .half = SN_HALF_MOVED, .types = SN_ALL_TYPES, .flags = SN_OP_BYTES0},
                              {.name = NULL}};

/* ------------------------------------------------------------------ GatherElements */
static sonde_status infer_gather_elements(sn_infer *c)
{
    sn_input_type x, index;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_input_type(c, 1, &index));
    SN_TRY(check_index_type(c, &index));
    if (x.rank >= 0 && index.rank >= 0) {
        if (x.rank != index.rank)
            return sn_infer_fail(c, "indices have rank %d, the input has %d", index.rank, x.rank);
        SN_TRY(sn_infer_axis(c, ((const gather_params *)c->params)->axis, x.rank, false, &axis));
        for (int i = 0; i < x.rank; i++)
            if (i != axis && sn_dim_known(x.dims[i]) && sn_dim_known(index.dims[i]) &&
                index.dims[i] > x.dims[i])
                return sn_infer_fail(c, "dim %d of the indices is larger than the input's", i);
    }
    return sn_infer_bounded(c, 0, x.dtype, index.dims, index.rank);
}

static sonde_status run_gather_elements(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *index = sn_in(s, f, 1);
    sn_bad_index bad;
    int axis;
    if (!sn_axis_index(((const gather_params *)s->params)->axis, x->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    const sn_indexed_axis g = sn_indexed_axis_of(x, index, axis);
    if (!sn_gather_elements_run(&g, sn_out(s, f, 0)->data, x->data, sn_tensor_elems(index), &bad))
        return sn_run_bad_index(s, f, bad);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_gather_elements[] = {{SN_OP_HEAD("GatherElements", 11, 0, 2, 2, 1, 1),
                                        .params_size = sizeof(gather_params),
                                        .prepare = prepare_axis, .infer = infer_gather_elements,
                                        .run = run_gather_elements, .types = SN_ALL_TYPES},
                                       {.name = NULL}};

/* ------------------------------------------------------------------ GatherND */
static sonde_status prepare_gather_nd(sn_prep *p)
{
    gather_params *r = p->params;
    SN_TRY(sn_prep_int(p, "batch_dims", 0, &r->axis));
    return r->axis < 0 || r->axis > SN_MAX_RANK
               ? sn_prep_fail(p, "attribute 'batch_dims' is %lld", (long long)r->axis)
               : SONDE_OK;
}

static sonde_status infer_gather_nd(sn_infer *c)
{
    sn_input_type x, index;
    int batch = (int)((const gather_params *)c->params)->axis;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_input_type(c, 1, &index));
    SN_TRY(check_index_type(c, &index));
    if (x.rank < 0 || index.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, -1);
    if (index.rank < 1 || x.rank < 1 || batch >= index.rank || batch >= x.rank)
        return sn_infer_fail(c, "%d batch dims with an input of rank %d and indices of rank %d",
                             batch, x.rank, index.rank);
    sn_dim depth = index.dims[index.rank - 1];
    if (!sn_dim_known(depth))
        return sn_infer_rank(c, 0, x.dtype, -1);
    if (depth < 1 || depth > x.rank - batch)
        return sn_infer_fail(c, "index tuples of %lld do not fit an input of rank %d",
                             (long long)depth, x.rank);
    sn_dim dims[2 * SN_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < index.rank - 1; i++)
        dims[rank++] = index.dims[i];
    for (int i = batch + (int)depth; i < x.rank; i++)
        dims[rank++] = x.dims[i];
    for (int i = 0; i < batch; i++)
        if (sn_dim_known(x.dims[i]) && sn_dim_known(index.dims[i]) && x.dims[i] != index.dims[i])
            return sn_infer_fail(c, "batch dim %d differs between input and indices", i);
    return sn_infer_bounded(c, 0, x.dtype, dims, rank);
}

static sonde_status run_gather_nd(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *index = sn_in(s, f, 1);
    const sn_indexed_rows g =
        sn_indexed_rows_of(x, index, (int)((const gather_params *)s->params)->axis);
    sn_bad_index bad;
    if (!sn_gather_nd_run(&g, sn_out(s, f, 0)->data, x->data, sn_tensor_elems(index), &bad))
        return sn_run_bad_index(s, f, bad);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_gather_nd[] = {{SN_OP_HEAD("GatherND", 11, 0, 2, 2, 1, 1),
                                  .params_size = sizeof(gather_params),
                                  .prepare = prepare_gather_nd, .infer = infer_gather_nd,
                                  .run = run_gather_nd, .types = SN_ALL_TYPES},
                                 {.name = NULL}};
