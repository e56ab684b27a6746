/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between element types, and the linear quantisation that is built on it. */
#ifndef SN_COMPUTE_CAST_H
#define SN_COMPUTE_CAST_H

#include "base/pool.h"
#include "compute/small_floats.h"

/* Every numeric type of ONNX but the complex ones; strings are not known here. */
bool sn_cast_supported(sonde_dtype t);

/* n elements; dst and src do not overlap unless the types are equal and so are the pointers.
 * Float to integer truncates; 32- and 64-bit results saturate, narrower ones keep the low bits of
 * the 32-bit result, NaN gives 0. Integers wrap. Anything but zero (NaN too) becomes true. */
void sn_cast_run(uint32_t cpu_flags, sonde_dtype to, void *dst, sonde_dtype from, const void *src,
                 size_t n, sn_rounding how, sn_pool *pool);

/* Bytes that were filled with other bits become elements of a type below 8 bits, in place: the low
 * bits count; signed integers are sign-extended, for others the rest is zero. */
void sn_narrow_bytes(sonde_dtype t, uint8_t *y, int64_t n);

/* Geometry of a scale against the data: element (o, c, i) of [outer][channels][inner]. Its scale is
 * scale[(o * channel_blocks + c / block) * scale_inner + (scale_inner > 1 ? i : 0)], o counting
 * only when scale_outer is set. Per tensor: channels = channel_blocks = 1. */
typedef struct sn_quant_shape {
    int64_t outer, channels, inner;
    int64_t block;          /* channels that share a scale: 1 per axis, block_size when blocked */
    int64_t channel_blocks; /* scales along the axis */
    int64_t scale_inner;    /* 1, or inner when blocked */
    bool scale_outer;       /* blocked: scales differ along the outer dims too */
} sn_quant_shape;

/* y = saturate(round(x / scale) + zero). x, scale: f32; zero: as int32 (0 when absent), NULL for
 * none. `to`: an integer type up to 16 bits (sub-byte: one byte per element) or a small float. */
void sn_quantize_run(uint32_t cpu_flags, const sn_quant_shape *q, sonde_dtype to, void *y,
                     const float *x, const float *scale, const int32_t *zero, bool saturate,
                     sn_pool *pool);
/* The scale and the zero point that map the range of x, zero included, to 0 … 255, and y = x in
 * them. Numbers that are all zero have scale 0. */
void sn_quantize_dynamic_run(uint32_t cpu_flags, uint8_t *y, const float *x, size_t n, float *scale,
                             uint8_t *zero, sn_pool *pool);
/* y = (x - zero) * scale in f32; `from` as `to` above, or int32. */
void sn_dequantize_run(uint32_t cpu_flags, const sn_quant_shape *q, float *y, sonde_dtype from,
                       const void *x, const float *scale, const int32_t *zero, sn_pool *pool);

#endif
