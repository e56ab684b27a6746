/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of operators that compute in f32; see wide.h. */
#include "ops/shared/as_f32.h"

#include "compute/cast.h"

/* ------------------------------------------------------------------ infer */
sonde_status sn_wide_dtype(sn_infer *c, uint32_t i, const sn_dtype *allowed, int n)
{
    if (!sn_infer_has(c, i) || c->in[i]->type.dtype == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    for (int k = 0; k < n; k++)
        if (c->in[i]->type.dtype == allowed[k])
            return SONDE_OK;
    return sn_infer_fail(c, "input %u is of type %s, which this operator does not take", i,
                         sn_dtype_name(c->in[i]->type.dtype));
}

sonde_status sn_wide_float(sn_infer *c, uint32_t i)
{
    static const sn_dtype floats[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64, SONDE_DTYPE_F16,
                                      SONDE_DTYPE_BF16};
    return sn_wide_dtype(c, i, floats, 4);
}

sonde_status sn_wide_same_dtype(sn_infer *c, uint32_t i, uint32_t j)
{
    if (!sn_infer_has(c, i) || !sn_infer_has(c, j))
        return SONDE_OK;
    sn_dtype a = c->in[i]->type.dtype, b = c->in[j]->type.dtype;
    if (a == b || a == SONDE_DTYPE_UNDEFINED || b == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    return sn_infer_fail(c, "input %u is of type %s and input %u of type %s: they must agree", i,
                         sn_dtype_name(a), j, sn_dtype_name(b));
}

sonde_status sn_wide_dims(sn_infer *c, uint32_t i, sn_dim *dims, int rank)
{
    if (!sn_infer_has(c, i) || c->in[i]->type.rank < 0)
        return SONDE_OK;
    const sn_type *t = &c->in[i]->type;
    if (t->rank != rank)
        return sn_infer_fail(c, "input %u has rank %d, expected %d", i, t->rank, rank);
    for (int k = 0; k < rank; k++) {
        if (sn_dim_known(dims[k]) && sn_dim_known(t->dims[k]) && dims[k] != t->dims[k])
            return sn_infer_fail(c, "dimension %d of input %u is %lld, expected %lld", k, i,
                                 (long long)t->dims[k], (long long)dims[k]);
        if (!sn_dim_known(dims[k]) && (sn_dim_known(t->dims[k]) || dims[k] == SN_DIM_UNKNOWN))
            dims[k] = t->dims[k];
    }
    return SONDE_OK;
}

sonde_status sn_wide_out(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims, int rank)
{
    bool known = rank >= 0 && rank <= SN_MAX_RANK;
    size_t bytes;
    for (int i = 0; known && i < rank; i++)
        known = sn_dim_known(dims[i]) && dims[i] >= 0;
    if (known && dtype != SONDE_DTYPE_UNDEFINED &&
        (!sn_tensor_bytes(dtype, dims, rank, 0, &bytes) || bytes > PTRDIFF_MAX))
        return sn_infer_fail(c, "output %u would be too large", o);
    return sn_infer_tensor(c, o, dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind */
size_t sn_room_take(sn_room *r, int64_t n, size_t elem_bytes)
{
    size_t bytes, at = r->bytes;
    if (n < 0 || !sn_size_mul((size_t)n, elem_bytes, &bytes) || bytes > PTRDIFF_MAX / 2 ||
        r->bytes > PTRDIFF_MAX / 2) {
        r->overflow = true;
        return 0;
    }
    r->bytes += sn_round_up(bytes, SN_ALIGN);
    return at;
}

sonde_status sn_room_done(sn_bind *b, const sn_room *r)
{
    if (r->overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the tensors are too large");
    b->workspace_bytes = r->bytes;
    return SONDE_OK;
}

int64_t sn_wide_count(const sn_fact *f)
{
    int64_t n = 0;
    return f && sn_type_count(&f->type, &n) ? n : 0;
}

size_t sn_room_wide(sn_room *r, const sn_fact *f)
{
    if (!f || f->type.dtype == SONDE_DTYPE_F32 || f->pack)
        return 0;
    return sn_room_take(r, sn_wide_count(f), sizeof(float));
}

/* ------------------------------------------------------------------ run */
const float *sn_wide_in(const sn_step *s, const sn_frame *f, uint32_t i, size_t at)
{
    if (!sn_has(s, i))
        return NULL;
    const sn_tensor *t = sn_in(s, f, i);
    if (t->dtype == SONDE_DTYPE_F32)
        return t->data;
    sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F32, sn_space_f32(f, at), t->dtype, t->data,
                (size_t)sn_tensor_count(t), (sn_rounding){0}, f->pool);
    return sn_space_f32(f, at);
}

float *sn_wide_out_room(const sn_step *s, const sn_frame *f, uint32_t o, size_t at)
{
    if (!sn_wants(s, o))
        return NULL;
    sn_tensor *t = sn_out(s, f, o);
    return t->dtype == SONDE_DTYPE_F32 ? t->data : sn_space_f32(f, at);
}

void sn_wide_put(const sn_step *s, const sn_frame *f, uint32_t o, size_t at)
{
    if (!sn_wants(s, o) || sn_out(s, f, o)->dtype == SONDE_DTYPE_F32)
        return;
    sn_tensor *t = sn_out(s, f, o);
    sn_cast_run(f->ctx->cpu.flags, t->dtype, t->data, SONDE_DTYPE_F32, sn_space_f32(f, at),
                (size_t)sn_tensor_count(t), (sn_rounding){0}, f->pool);
}

sonde_status sn_run_cancelled(const sn_step *s, sn_frame *f)
{
    (void)s;
    return sn_fail(f->err, SONDE_CANCELLED, "cancelled");
}
