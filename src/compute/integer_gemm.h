/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of float8, and of bytes whose result is float8 (others: q8.h): the inner
 * dimension is cut into pieces whose f32 products are exact (see bytes.h), and their sums meet in
 * int32, or in f64 if there are very many. Float8 operands take the same way, with sums in f32. The
 * result is the sums, or bytes or float8 again. */
#ifndef SN_COMPUTE_INTEGER_GEMM_H
#define SN_COMPUTE_INTEGER_GEMM_H

#include "compute/bytes.h"
#include "compute/gemm.h"

typedef struct sn_integer_gemm_plan {
    sonde_dtype a_type, b_type;
    bool quantized;                             /* sums are not the result */
    bool exact;                                 /* bytes: sums in int32, else in f32 … */
    bool wide;                                  /* … or f64, where int32 may not hold them */
    int64_t m, n, k, a_count, b_count, batches; /* matrices in a, in b, in the result */
    int64_t piece, pieces;                      /* of the inner dimension */
    sn_gemm_plan plan, last;                    /* of a piece, of the last one */
    uint32_t cpu_flags;
    /* Workspace a run needs, in elements; -1: more than can be counted. */
    int64_t a_floats, b_floats, y_floats, acc_ints;
    uint64_t flops;
    const char *name;
} sn_integer_gemm_plan;

/* Numbers of any type that go with an operand: one for all, one per row (column), or one per row of
 * every matrix. */
typedef struct sn_gemm_numbers {
    const float *data; /* NULL: 0 */
    int64_t n;
} sn_gemm_numbers;

typedef struct sn_integer_gemm_args {
    const void *a, *b;
    sn_gemm_numbers a_zero, b_zero;
    void *y; /* int32 sums when the plan is not quantized */
    /* What turns sums into the result: y = saturate(round(sum · a_scale · b_scale / y_scale) +
     * y_zero). */
    sonde_dtype y_type;
    sn_gemm_numbers a_scale, b_scale;
    float y_scale, y_zero;
    /* workspace, as the plan says; acc is for quantized results, core has plan.workspace */
    float *a_f32, *b_f32, *y_f32;
    void *acc, *core;
} sn_integer_gemm_args;

/* `d` says the batch arrays and b_count; m, n and k are of one matrix. Check the sizes in the plan
 * before it runs. */
sonde_status sn_integer_gemm_plan_make(sn_integer_gemm_plan *p, const sn_gemm_desc *d,
                                       int64_t a_count, sonde_dtype a, sonde_dtype b,
                                       bool quantized, uint32_t cpu_flags, size_t l2_bytes,
                                       int threads, sonde_error *err);
/* The result has elements. */
void sn_integer_gemm_run(const sn_integer_gemm_plan *p, const sn_integer_gemm_args *a,
                         sn_pool *pool);

#endif
