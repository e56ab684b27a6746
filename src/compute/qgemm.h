/* SPDX-License-Identifier: Apache-2.0 */
/* y = A · B + C over bytes with their zero points taken off, a row at a time in int32, then scaled
 * to bytes again or to f32. Zero point and scale of B: one, or one per column. */
#ifndef SN_COMPUTE_QGEMM_H
#define SN_COMPUTE_QGEMM_H

#include <stdatomic.h>

#include "base/pool.h"
#include "compute/bytes.h"

typedef struct sn_qgemm_desc {
    int64_t m, n, k;
    bool turn_a, turn_b; /* stored as [k, m], [n, k] */
    sonde_dtype a_type, b_type;
    sonde_dtype y_type;      /* bytes or F32 */
    int64_t c_row, c_column; /* steps in C; 0 where it is broadcast */
} sn_qgemm_desc;

typedef struct sn_qgemm_args {
    const void *a, *b;
    int32_t a_zero;
    sn_byte_zeros b_zero;
    const int32_t *c; /* or NULL */
    float a_scale;
    const float *b_scale;
    int64_t b_scales;
    float y_scale; /* bytes: of the result */
    int32_t y_zero;
    void *y;
    int32_t *a_row, *sums;     /* scratch: k and n numbers */
    const _Atomic int *cancel; /* not 0: stop; may be NULL */
} sn_qgemm_args;

/* False: it was cancelled. */
bool sn_qgemm_run(const sn_qgemm_desc *d, const sn_qgemm_args *a, uint32_t cpu_flags,
                  sn_pool *pool);

#endif
