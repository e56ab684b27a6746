/* SPDX-License-Identifier: Apache-2.0 */
/* What operators share that compute in f32 whatever float type their tensors have: a workspace laid
 * out piece by piece while binding, f32 views of inputs and outputs, and the usual checks of types
 * and shapes. */
#ifndef SN_OPS_SHARED_AS_F32_H
#define SN_OPS_SHARED_AS_F32_H

#include "ops/framework/op.h"

#define SN_WIDE_TYPES "bf16 f16 f32 f64"

/* ---- infer ---- */
static inline bool sn_wide_takes(sn_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || t == SONDE_DTYPE_F16 ||
           t == SONDE_DTYPE_BF16;
}
/* Input i, when present and typed, is one of those floats; has the type of input j. */
sonde_status sn_wide_float(sn_infer *c, uint32_t i);
sonde_status sn_wide_same_dtype(sn_infer *c, uint32_t i, uint32_t j);
sonde_status sn_wide_dtype(sn_infer *c, uint32_t i, const sn_dtype *allowed, int n);
/* Input i, when present and of known rank, has these dims as far as both sides are known. Entries
 * still unknown are learnt from the input. */
sonde_status sn_wide_dims(sn_infer *c, uint32_t i, sn_dim *dims, int rank);
/* sn_infer_tensor, refusing shapes whose bytes overflow. */
sonde_status sn_wide_out(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims, int rank);

/* ---- bind ---- */
typedef struct sn_room {
    size_t bytes;
    bool overflow;
} sn_room;
size_t sn_room_take(sn_room *r, int64_t n, size_t elem_bytes); /* offset, SN_ALIGN-aligned */
sonde_status sn_room_done(sn_bind *b, const sn_room *r);       /* sets workspace_bytes */
/* Room for a fact's elements in f32; none when it is f32, packed or absent. */
size_t sn_room_wide(sn_room *r, const sn_fact *f);
/* Elements of a concrete fact; 0 on overflow or when it is absent. */
int64_t sn_wide_count(const sn_fact *f);

/* ---- run ---- */
static inline float *sn_space_f32(const sn_frame *f, size_t at)
{
    return (float *)(void *)(f->workspace + at);
}
/* Input i in f32: where it lies, or converted into the workspace; NULL when absent. */
const float *sn_wide_in(const sn_step *s, const sn_frame *f, uint32_t i, size_t at);
/* Where f32 results of output o go, NULL when it is not wanted; afterwards sn_wide_put. */
float *sn_wide_out_room(const sn_step *s, const sn_frame *f, uint32_t o, size_t at);
void sn_wide_put(const sn_step *s, const sn_frame *f, uint32_t o, size_t at);
sonde_status sn_run_cancelled(const sn_step *s, sn_frame *f); /* status CANCELLED */

#endif
