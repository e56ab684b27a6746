/* SPDX-License-Identifier: Apache-2.0 */
/* Channels of images in blocks, copied to other channels, where blocks of the two need not begin
 * together. */
#ifndef SN_COMPUTE_CHANNEL_COPY_H
#define SN_COMPUTE_CHANNEL_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

typedef struct sn_channel_copy {
    int64_t images, pixels, block;
    int64_t x_channels, y_channels; /* that the tensors have */
    int64_t from, to, n;            /* from … from+n-1 of x become to … to+n-1 of y */
    size_t elem_bytes;              /* 2 or 4 */
} sn_channel_copy;

/* With the last channel of y, the lanes behind it become zero. */
void sn_channel_copy_run(const sn_channel_copy *c, void *y, const void *x, sn_pool *pool);

#endif
