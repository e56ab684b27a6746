/* SPDX-License-Identifier: Apache-2.0 */
/* y = a · wᵀ + bias where w is kept in 2, 4 or 8 bits with a scale and a zero point per block of
 * the inner dim. A few columns at a time are brought to f32 panels, which the matrix kernel
 * multiplies while they are in the cache: w is read once and never exists whole in f32. */
#ifndef SN_COMPUTE_NBITS_H
#define SN_COMPUTE_NBITS_H

#include "base/cpu.h"
#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct sn_nbits_plan {
    int64_t m, n, k;
    int bits;
    int64_t block; /* inner elements that share a scale */
    int64_t blocks;
    int64_t blob;     /* bytes of a block: block * bits / 8 */
    int64_t zero_row; /* bytes of a row of packed zero points */
    const sn_kernels *kernels;
    unsigned lanes;        /* columns of a panel */
    int64_t panels, tasks; /* of a task; of a run */
    int64_t part;          /* of k at a time, in whole blocks */
    int threads;
    size_t workspace_bytes;
    uint64_t flops;
    const char *name;
} sn_nbits_plan;

typedef struct sn_nbits_args {
    const float *a;         /* [m, k] */
    const uint8_t *w;       /* [n, blocks, blob], low bits first */
    const float *scales;    /* [n, blocks] */
    const uint8_t *zeros;   /* packed, [n, zero_row]; NULL: half the range, or zeros_f32 */
    const float *zeros_f32; /* [n, blocks] */
    const int32_t
        *groups;       /* block of each inner element; NULL: by position. Checked by the caller */
    const float *bias; /* [n], or NULL */
    float *y;          /* [m, n] */
} sn_nbits_args;

/* m, n, k, bits and block have been validated. */
sonde_status sn_nbits_plan_make(sn_nbits_plan *p, int64_t m, int64_t n, int64_t k, int bits,
                                int64_t block, uint32_t cpu_flags, int threads, sonde_error *err);
void sn_nbits_run(const sn_nbits_plan *p, const sn_nbits_args *a, void *workspace, sn_pool *pool);

#endif
