/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit integers on their way to f32 and back, for the drivers and operators that compute with
 * them: a type is SONDE_DTYPE_U8 or SONDE_DTYPE_I8.
 *
 * Products of bytes have a driver of their own (q8.h). Where their results are float8 they go
 * through f32 (integer_gemm.h), exactly: a product of two differences of bytes is at most 255 ·
 * 255, so that sums of up to 256 of them are integers below 2^24, which f32 holds exactly in any
 * order. Longer sums are cut and joined in int32. */
#ifndef SN_COMPUTE_BYTES_H
#define SN_COMPUTE_BYTES_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sonde/types.h"

enum { SN_EXACT_TERMS = 256 };

static inline bool sn_is_byte(sonde_dtype t)
{
    return t == SONDE_DTYPE_U8 || t == SONDE_DTYPE_I8;
}

static inline int32_t sn_byte_at(sonde_dtype t, const void *data, int64_t i)
{
    return t == SONDE_DTYPE_U8 ? ((const uint8_t *)data)[i] : ((const int8_t *)data)[i];
}

/* Zero points or scales of a tensor: one for all, or one each; none stand for 0. */
typedef struct sn_byte_zeros {
    sonde_dtype type;
    const void *data; /* NULL: 0 */
    int64_t n;        /* 1, or as many as there are rows or columns */
} sn_byte_zeros;
static inline int32_t sn_byte_zero(const sn_byte_zeros *z, int64_t i)
{
    return z->data ? sn_byte_at(z->type, z->data, z->n == 1 ? 0 : i) : 0;
}

/* dst = src - zero, n bytes. */
void sn_bytes_to_f32(uint32_t cpu_flags, sonde_dtype t, float *dst, const void *src, int64_t n,
                     int32_t zero);

/* acc = y, or acc += y, of exact sums; wraps as 32 bits do. */
void sn_exact_join(int32_t *acc, const float *y, int64_t n, bool first);

/* A product or quotient of scales for sums of integers. Where it is too large for f32 it is f32's
 * largest number: sums of zero stay zero, as they are, and all others leave the range anyway. */
static inline float sn_held_scale(float s)
{
    return isinf(s) ? copysignf(FLT_MAX, s) : s;
}

/* y = saturate(round(acc · scale) + zero) into bytes. */
void sn_requantize(uint32_t cpu_flags, sonde_dtype t, void *y, const int32_t *acc, int64_t n,
                   float scale, int32_t zero);
/* The same of exact sums in f32, each with a bias of up to 2^24. */
void sn_requantize_f32(uint32_t cpu_flags, sonde_dtype t, void *y, const float *sums, int64_t n,
                       int32_t bias, float scale, int32_t zero);

#endif
