/* SPDX-License-Identifier: Apache-2.0 */
/* Index geometry from the dims of tensors. */
#include "ops/onnx/indexed.h"

#include <string.h>

#include "ops/shared/data_movement.h"

_Static_assert(SN_INDEXED_RANK >= SN_MAX_RANK, "every tensor fits the driver");

sn_indexed_axis sn_indexed_axis_of(const sn_tensor *x, const sn_tensor *index, int axis)
{
    sn_indexed_axis g = {.elem_bytes = sn_dtype_bytes(x->dtype),
                         .rank = index->rank,
                         .dim = x->dims[axis],
                         .count = sn_tensor_count(index)};
    memcpy(g.dims, index->dims, (size_t)index->rank * sizeof *g.dims);
    sn_dense_strides(x->dims, x->rank, g.strides);
    g.step = g.strides[axis];
    g.strides[axis] = 0; /* the index takes this coordinate's place */
    return g;
}

sn_indexed_rows sn_indexed_rows_of(const sn_tensor *x, const sn_tensor *index, int batch)
{
    const int depth = (int)index->dims[index->rank - 1];
    sn_indexed_rows g = {.elem_bytes = sn_dtype_bytes(x->dtype), .depth = depth, .row = 1};
    ptrdiff_t strides[SN_MAX_RANK];
    int64_t batches = 1, indexed = 1;
    sn_dense_strides(x->dims, x->rank, strides);
    for (int i = 0; i < x->rank; i++)
        *(i < batch ? &batches : i < batch + depth ? &indexed : &g.row) *= x->dims[i];
    memcpy(g.dims, x->dims + batch, (size_t)depth * sizeof *g.dims);
    memcpy(g.strides, strides + batch, (size_t)depth * sizeof *g.strides);
    g.batch_elems = indexed * g.row;
    g.tuples = sn_tensor_count(index) / depth;
    g.per_batch = batches ? g.tuples / batches : 0;
    return g;
}

sonde_status sn_run_bad_index(const sn_step *s, sn_frame *f, sn_bad_index bad)
{
    return sn_run_fail(s, f, "index %lld is outside a dim of %lld", (long long)bad.index,
                       (long long)bad.dim);
}
