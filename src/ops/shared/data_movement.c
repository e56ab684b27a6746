/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the data-movement operators; the header says what each promises. */
#include "ops/shared/data_movement.h"

#include <string.h>

#include "compute/channel_copy.h"

/* ------------------------------------------------------------------ infer */
sonde_status sn_infer_input_type(sn_infer *c, uint32_t i, sn_input_type *t)
{
    *t = (sn_input_type){SONDE_DTYPE_UNDEFINED, -1, NULL};
    if (!sn_infer_has(c, i))
        return sn_infer_fail(c, "input %u is missing", i);
    const sn_type *type = &c->in[i]->type;
    if (type->kind == SN_KIND_NONE)
        return SONDE_OK;
    if (type->kind != SN_KIND_TENSOR)
        return sn_infer_fail(c, "input %u is not a tensor", i);
    t->dtype = type->dtype;
    t->rank = type->rank;
    t->dims = type->dims;
    return SONDE_OK;
}

sonde_status sn_infer_rank(sn_infer *c, uint32_t o, sn_dtype dtype, int rank)
{
    sn_dim dims[SN_MAX_RANK];
    if (rank > SN_MAX_RANK)
        return sn_infer_fail(c, "output %u has rank %d, more than %d", o, rank, SN_MAX_RANK);
    for (int i = 0; i < rank; i++)
        dims[i] = SN_DIM_UNKNOWN;
    return sn_infer_tensor(c, o, dtype, rank < 0 ? NULL : dims, rank);
}

sonde_status sn_infer_list(sn_infer *c, uint32_t i, const sn_dim **v, int64_t *n)
{
    *v = NULL;
    *n = 0;
    if (!sn_infer_has(c, i))
        return SONDE_OK;
    SN_TRY(sn_infer_ints(c, i, v, n));
    if (*v)
        return SONDE_OK;
    const sn_type *t = &c->in[i]->type;
    *n = -1;
    if (t->kind != SN_KIND_TENSOR)
        return SONDE_OK;
    if (t->rank == 0)
        *n = 1;
    else if (t->rank == 1 && sn_dim_known(t->dims[0]))
        *n = t->dims[0];
    static const sn_dim nothing[1] = {0};
    if (*n == 0)
        *v = nothing; /* an empty list has no values that could be unknown */
    return SONDE_OK;
}

bool sn_dims_known(const sn_dim *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!sn_dim_known(v[i]))
            return false;
    return true;
}

sn_dim sn_dim_merge(sn_dim a, sn_dim b)
{
    if (sn_dim_known(a))
        return a;
    return sn_dim_known(b) || a == SN_DIM_UNKNOWN ? b : a;
}

sonde_status sn_infer_pass_ints(sn_infer *c, uint32_t o, uint32_t i)
{
    const sn_dim *v;
    int64_t n;
    SN_TRY(sn_infer_ints(c, i, &v, &n));
    return v ? sn_infer_set_ints(c, o, v, n) : SONDE_OK;
}

sonde_status sn_infer_axes(sn_infer *c, const int64_t *axes, int64_t n, int rank, bool *is_axis)
{
    memset(is_axis, 0, SN_MAX_RANK * sizeof *is_axis);
    for (int64_t i = 0; i < n; i++) {
        int a;
        SN_TRY(sn_infer_axis(c, axes[i], rank, false, &a));
        if (is_axis[a])
            return sn_infer_fail(c, "axis %d is given twice", a);
        is_axis[a] = true;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
int64_t sn_tensor_int(const sn_tensor *t, int64_t i)
{
    return sn_elem_i64(t->dtype, t->data, i);
}

int64_t sn_tensor_ints(const sn_tensor *t, int64_t *out, int64_t max)
{
    int64_t n = sn_tensor_count(t);
    if (n > max)
        n = max;
    for (int64_t i = 0; i < n; i++)
        out[i] = sn_tensor_int(t, i);
    return n;
}

bool sn_axis_index(int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool sn_same_dims(const int64_t *a, int rank_a, const int64_t *b, int rank_b)
{
    return rank_a == rank_b && (rank_a == 0 || memcmp(a, b, (size_t)rank_a * sizeof *a) == 0);
}

sonde_status sn_run_own_strings(const sn_step *s, sn_frame *f, uint32_t o)
{
    /* Memory of an arena (no owner): the plan keeps what the elements point at until the run ends.
     */
    if (!sn_wants(s, o) || sn_out(s, f, o)->dtype != SONDE_DTYPE_STRING || !sn_out(s, f, o)->owner)
        return SONDE_OK;
    sn_slot fresh = {0};
    const sn_tensor *t = sn_out(s, f, o);
    SN_TRY(sn_slot_new_strings(&fresh, t->dims, t->rank, t->data, f->alloc, f->err));
    sn_slot_clear(sn_out_slot(s, f, o));
    *sn_out_slot(s, f, o) = fresh;
    return SONDE_OK;
}

sonde_status sn_run_copy(const sn_step *s, sn_frame *f, uint32_t o, const sn_tensor *src)
{
    if (!sn_wants(s, o))
        return SONDE_OK;
    sn_tensor *y = sn_out(s, f, o);
    int64_t n = sn_tensor_count(y);
    if (n != sn_tensor_count(src))
        return sn_run_fail(s, f, "output %u has %lld elements, but its source has %lld", o,
                           (long long)n, (long long)sn_tensor_count(src));
    if (y->data == src->data || n == 0)
        return SONDE_OK;
    sn_copy_bytes(y->data, src->data, (size_t)n * sn_dtype_bytes(y->dtype), f->pool);
    return sn_run_own_strings(s, f, o);
}

void sn_copy_channels(sn_tensor *y, int64_t to, const sn_tensor *x, int64_t from, int64_t n,
                      sn_pool *pool)
{
    sn_channel_copy c = {.images = y->dims[0],
                         .pixels = 1,
                         .block = sn_layout_block(y->layout),
                         .x_channels = x->dims[1],
                         .y_channels = y->dims[1],
                         .from = from,
                         .to = to,
                         .n = n,
                         .elem_bytes = sn_dtype_bytes(y->dtype)};
    for (int i = 2; i < y->rank; i++)
        c.pixels *= y->dims[i];
    sn_channel_copy_run(&c, y->data, x->data, pool);
}
