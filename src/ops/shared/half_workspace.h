/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose drivers know f32 and f64 only: 16-bit floats are copied to f32 in the workspace
 * before, and back after. Offsets are the operator's own; sn_via_bytes says how much room one
 * takes. */
#ifndef SN_OPS_SHARED_HALF_WORKSPACE_H
#define SN_OPS_SHARED_HALF_WORKSPACE_H

#include "compute/cast.h"
#include "ops/framework/op.h"

/* The type the driver computes in. */
static inline sn_dtype sn_via_dtype(sn_dtype t)
{
    return sn_is_half(t) ? SONDE_DTYPE_F32 : t;
}

/* Workspace for the f32 copy of a tensor of n elements; 0 when none is needed. */
static inline size_t sn_via_bytes(sn_dtype t, int64_t n)
{
    return sn_is_half(t) ? sn_round_up((size_t)n * sizeof(float), SN_ALIGN) : 0;
}

/* Where the driver reads the tensor: its own data, or an f32 copy made at workspace offset `at`. */
static inline const void *sn_via_in(const sn_frame *f, const sn_tensor *t, size_t at)
{
    if (!sn_is_half(t->dtype))
        return t->data;
    sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F32, f->workspace + at, t->dtype, t->data,
                (size_t)sn_tensor_count(t), (sn_rounding){0}, f->pool);
    return f->workspace + at;
}

/* Where the driver writes, and the copy back. */
static inline void *sn_via_out(const sn_frame *f, const sn_tensor *t, size_t at)
{
    return sn_is_half(t->dtype) ? f->workspace + at : t->data;
}
static inline void sn_via_done(const sn_frame *f, sn_tensor *t, size_t at)
{
    if (sn_is_half(t->dtype))
        sn_cast_run(f->ctx->cpu.flags, t->dtype, t->data, SONDE_DTYPE_F32, f->workspace + at,
                    (size_t)sn_tensor_count(t), (sn_rounding){0}, f->pool);
}

#endif
