/* SPDX-License-Identifier: Apache-2.0 */
/* Between plain and blocked layout of f32 tensors [n, c, …]; any of the two blocks may be 0
 * (plain). A plain tensor may have 16-bit floats instead, a blocked one not. Or it is [n, …, c]:
 * then blocks are pieces of its rows. */
#ifndef SN_COMPUTE_REORDER_H
#define SN_COMPUTE_REORDER_H

#include "base/cpu.h"
#include "base/dtype.h"
#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct sn_reorder {
    int64_t n, c, pixels; /* product of the dims after c */
    unsigned from, to;    /* blocks */
    sonde_dtype plain;    /* F16 or BF16: of the plain side, where only one is; else 0 */
    bool last;            /* the plain side, of f32, has its channels last; the other has blocks */
} sn_reorder;

/* Different blocks on both sides go through plain C; the usual ones through kernels. */
void sn_reorder_run(const sn_reorder *r, uint32_t cpu_flags, const void *x, void *y, sn_pool *pool);
const char *sn_reorder_name(const sn_reorder *r, uint32_t cpu_flags);

#endif
