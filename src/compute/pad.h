/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors padded or cropped at both ends of every axis. Elements are opaque bytes. */
#ifndef SN_COMPUTE_PAD_H
#define SN_COMPUTE_PAD_H

#include "base/pool.h"

#define SN_PAD_RANK 16

/* What stands where the input ends: one value, the input mirrored at its edge (which is not
 * repeated), its edge, or the input again. */
typedef enum sn_pad_mode {
    SN_PAD_CONSTANT,
    SN_PAD_REFLECT,
    SN_PAD_EDGE,
    SN_PAD_WRAP,
    SN_PAD_MODES
} sn_pad_mode;

typedef struct sn_pad {
    sn_pad_mode mode;
    size_t elem_bytes;
    int rank;
    int64_t in[SN_PAD_RANK], out[SN_PAD_RANK];
    int64_t before[SN_PAD_RANK]; /* elements in front of the input; negative ones are cut off */
} sn_pad;

/* x and y are dense; no dim of y is 0, and one of x is only for CONSTANT. `value`: an element, for
 * CONSTANT. `table`: room for one number per position of every axis of y, for the other modes. */
void sn_pad_run(const sn_pad *p, void *y, const void *x, const void *value, int64_t *table,
                sn_pool *pool);

#endif
