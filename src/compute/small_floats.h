/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of floats smaller than f32, to and from f32: drivers compute in f32 and convert chunk by
 * chunk. Single numbers, and what their bits mean, are in base/codec.h. */
#ifndef SN_COMPUTE_SMALL_FLOATS_H
#define SN_COMPUTE_SMALL_FLOATS_H

#include "base/dtype.h"

/* Is it a float this room computes in f32 (f16, bf16)? */
static inline bool sn_is_half(sonde_dtype t)
{
    return t == SONDE_DTYPE_F16 || t == SONDE_DTYPE_BF16;
}

/* n elements of any float type below f64 (f32, f16, bf16, f8*, f4, f8e8m0) to f32; exact. The CPU
 * flags pick the loop and never the result: 0 will do for single elements. */
void sn_load_f32(uint32_t cpu_flags, sonde_dtype t, float *dst, const void *src, size_t n);

/* How f32 becomes a smaller float: `saturate` (float8: out of range becomes the largest number
 * instead of infinity or NaN) and the rounding of float8e8m0. Zero means ONNX's defaults off. */
typedef struct sn_rounding {
    bool saturate;
    uint8_t e8m0; /* sn_e8m0_round of base/codec.h */
} sn_rounding;
/* f32 to any float type below f64, to nearest even. */
void sn_store_f32(uint32_t cpu_flags, sonde_dtype t, void *dst, const float *src, size_t n,
                  sn_rounding how);

#endif
