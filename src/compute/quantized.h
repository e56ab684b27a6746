/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on tensors of bytes with one scale and one zero point each: to f32 and back, sums and
 * products with broadcasting, and functions of one operand as tables of 256 results. */
#ifndef SN_COMPUTE_QUANTIZED_H
#define SN_COMPUTE_QUANTIZED_H

#include "compute/bytes.h"
#include "compute/eltwise.h"

typedef struct sn_qparam {
    float scale;
    int32_t zero;
} sn_qparam;

/* saturate(round(v / scale) + zero) as the byte it is stored as. */
uint8_t sn_quantize_byte(float v, sn_qparam q, sonde_dtype t);

/* ---- arrays ---- */
/* n bytes to f32, and back. */
void sn_q8_load(uint32_t cpu_flags, sonde_dtype t, sn_qparam q, float *dst, const void *src,
                int64_t n);
void sn_q8_store(uint32_t cpu_flags, sonde_dtype t, sn_qparam q, void *dst, const float *src,
                 int64_t n);

/* ---- two operands ---- */
/* Results are rounded as ONNX Runtime does, which defines these operators (see sn_q8_binary_args in
 * kernels/signatures.h). With the scales r = a.scale / y.scale and s = b.scale / y.scale a sum is
 * a·r + (b·s + (y.zero - (r·a.zero + s·b.zero))), and a product, with r = a.scale·b.scale /
 * y.scale, (a - a.zero)·(b - b.zero)·r + y.zero. b is the operand that has fewer elements, if one
 * has. */
typedef struct sn_q8_binary {
    const sn_bcast *bcast;
    sonde_dtype dtype; /* of all three */
    sn_qparam a, b, y;
    bool add; /* else multiply */
} sn_q8_binary;
void sn_q8_binary_run(uint32_t cpu_flags, const sn_q8_binary *p, void *y, const void *a,
                      const void *b, sn_pool *pool);

/* The same sum of bytes v that are being made, the first or the second operand, and z. */
sn_requantize_sum sn_q8_sum_with(sonde_dtype dtype, sn_qparam v, sn_qparam z, sn_qparam y,
                                 bool second);

/* ---- one operand ---- */
typedef enum sn_q8_function { SN_Q8_COPY, SN_Q8_SIGMOID, SN_Q8_LEAKY_RELU } sn_q8_function;
/* The result of every byte; alpha is LEAKY_RELU's. */
void sn_q8_table(uint8_t table[256], sn_q8_function fn, float alpha, sonde_dtype t, sn_qparam x,
                 sn_qparam y);
/* y[i] = table[x[i]], i < n; y may be x. */
void sn_q8_table_run(uint32_t cpu_flags, const uint8_t table[256], uint8_t *y, const uint8_t *x,
                     int64_t n, sn_pool *pool);
/* x [rows][n] into rows of y that are `y_row` apart. */
void sn_q8_table_rows_run(uint32_t cpu_flags, const uint8_t table[256], uint8_t *y, int64_t y_row,
                          const uint8_t *x, int64_t rows, int64_t n, sn_pool *pool);

#endif
