/* SPDX-License-Identifier: Apache-2.0 */
/* What the integer products share. 8-bit operands are computed exactly in f32: a product of two
 * differences of bytes is at most 255 · 255, so that sums of up to 256 of them are integers below
 * 2^24, which f32 holds exactly in any order. Longer sums are cut and joined in int32. */
#ifndef SN_OPS_SHARED_INTEGER_H
#define SN_OPS_SHARED_INTEGER_H

#include "compute/eltwise.h"
#include "ops/shared/as_f32.h"

enum { SN_EXACT_TERMS = 256 };

static inline bool sn_is_byte(sn_dtype t)
{
    return t == SONDE_DTYPE_U8 || t == SONDE_DTYPE_I8;
}

/* dst = src - zero, n bytes. */
static inline void sn_bytes_to_f32(uint32_t cpu_flags, sn_dtype t, float *dst, const void *src,
                                   int64_t n, int32_t zero)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    (t == SONDE_DTYPE_U8 ? k->u8_load : k->i8_load)(dst, src, (size_t)n, zero);
}

static inline int32_t sn_byte_at(sn_dtype t, const void *data, int64_t i)
{
    return t == SONDE_DTYPE_U8 ? ((const uint8_t *)data)[i] : ((const int8_t *)data)[i];
}

/* acc = y, or acc += y; wraps as 32 bits do. */
static inline void sn_exact_join(int32_t *acc, const float *y, int64_t n, bool first)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] = first ? (int32_t)y[i] : (int32_t)((uint32_t)acc[i] + (uint32_t)(int32_t)y[i]);
}

/* y = saturate(round(acc · scale) + zero) into bytes. */
void sn_requantize(uint32_t cpu_flags, sn_dtype t, void *y, const int32_t *acc, int64_t n,
                   float scale, int32_t zero);
/* The same of exact sums in f32, each with a bias of up to 2^24. */
void sn_requantize_f32(uint32_t cpu_flags, sn_dtype t, void *y, const float *sums, int64_t n,
                       int32_t bias, float scale, int32_t zero);

#endif
