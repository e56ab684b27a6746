/* SPDX-License-Identifier: Apache-2.0 */
/* TensorScatter: writes new positions into a cache along one axis, per batch entry at its own
 * place. Planned over the past when nobody else reads it, only the new positions are written. */
#include <string.h>

#include "compute/scatter.h"
#include "ops/shared/data_movement.h"

typedef struct scatter_params {
    int64_t axis;
    bool circular;
} scatter_params;

static sonde_status prepare_tensor_scatter(sn_prep *p)
{
    scatter_params *c = p->params;
    const char *mode;
    SN_TRY(sn_prep_int(p, "axis", -2, &c->axis));
    SN_TRY(sn_prep_string(p, "mode", "linear", &mode));
    c->circular = strcmp(mode, "circular") == 0;
    if (!c->circular && strcmp(mode, "linear") != 0)
        return sn_prep_fail(p, "attribute 'mode' is '%s', expected 'linear' or 'circular'", mode);
    return SONDE_OK;
}

static sonde_status infer_tensor_scatter(sn_infer *c)
{
    const scatter_params *p = c->params;
    const sn_type *past = &c->in[0]->type, *update = &c->in[1]->type;
    if (past->rank >= 0) {
        int axis;
        SN_TRY(sn_infer_axis(c, p->axis, past->rank, false, &axis));
        if (axis == 0)
            return sn_infer_fail(c, "the axis must not be the batch dimension");
        if (update->rank >= 0 && update->rank != past->rank)
            return sn_infer_fail(c, "the update and the cache have different ranks");
        for (int i = 0; update->rank >= 0 && i < past->rank; i++) {
            const sn_dim a = past->dims[i], b = update->dims[i];
            if (sn_dim_known(a) && sn_dim_known(b) && (i == axis ? b > a : a != b))
                return sn_infer_fail(c, "the update does not fit the cache in dimension %d", i);
        }
    }
    if (sn_infer_has(c, 2)) {
        const sn_type *at = &c->in[2]->type;
        if (at->rank >= 0 && at->rank != 1)
            return sn_infer_fail(c, "write_indices must have rank 1");
    }
    return sn_infer_same(c, 0, 0);
}

static sonde_status bind_tensor_scatter(sn_bind *b)
{
    const sn_type *past = &b->in[0]->type;
    if (b->in[1]->type.dtype != past->dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the update and the cache have different dtypes");
    if (b->n_in > 2 && b->in[2] &&
        (b->in[2]->type.dtype != SONDE_DTYPE_I64 || b->in[2]->type.dims[0] != past->dims[0]))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "write_indices must be one number of type i64 per batch entry");
    b->kernel = "copy_cache";
    return SONDE_OK;
}

static sonde_status run_tensor_scatter(const sn_step *s, sn_frame *f)
{
    const scatter_params *p = s->params;
    const sn_tensor *past = sn_in(s, f, 0), *update = sn_in(s, f, 1);
    sn_tensor *y = sn_out(s, f, 0);
    const int64_t *at = sn_has(s, 2) ? sn_in(s, f, 2)->data : NULL;
    int axis;
    if (!sn_axis_index(p->axis, past->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside of the cache");
    int64_t middle = 1, inner = 1;
    for (int i = 1; i < past->rank; i++) {
        middle *= i < axis ? past->dims[i] : 1;
        inner *= i > axis ? past->dims[i] : 1;
    }
    const int64_t max = past->dims[axis], len = update->dims[axis];
    for (int64_t b = 0; at && b < past->dims[0]; b++)
        if (at[b] < 0 || (!p->circular && at[b] > max - len))
            return sn_run_fail(s, f, "write index %lld is outside of a cache of %lld positions",
                               (long long)at[b], (long long)max);
    if (y->data != past->data)
        sn_copy_bytes(y->data, past->data, past->bytes, f->pool);
    const sn_scatter_positions rows = {.batches = past->dims[0],
                                       .rows_per_batch = middle,
                                       .max = max,
                                       .len = len,
                                       .position_bytes =
                                           sn_dtype_bytes(past->dtype) * (size_t)inner};
    sn_scatter_positions_run(&rows, y->data, update->data, at);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_tensor_scatter[] = {
    {SN_OP_HEAD("TensorScatter", 24, 0, 2, 3, 1, 1), .flags = SN_OP_INPLACE0,
     .params_size = sizeof(scatter_params), .prepare = prepare_tensor_scatter,
     .infer = infer_tensor_scatter, .bind = bind_tensor_scatter, .run = run_tensor_scatter,
     .types = SN_ALL_TYPES},
    {.name = NULL}};
