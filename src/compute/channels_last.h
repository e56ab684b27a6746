/* SPDX-License-Identifier: Apache-2.0 */
/* Images between channels first, [n][c][pixels], and channels last, [n][pixels][pitch], where a
 * pixel's channels are side by side, followed by pitch - c zeros. */
#ifndef SN_COMPUTE_CHANNELS_LAST_H
#define SN_COMPUTE_CHANNELS_LAST_H

#include <stdint.h>

#include "base/pool.h"

typedef struct sn_channels_last {
    int64_t n, c, pixels, pitch;
    size_t elem; /* bytes of an element: 1 or 4 */
} sn_channels_last;

void sn_channels_to_last(const sn_channels_last *g, uint32_t cpu_flags, const void *x, void *y,
                         sn_pool *pool);
void sn_channels_from_last(const sn_channels_last *g, uint32_t cpu_flags, const void *x, void *y,
                           sn_pool *pool);

#endif
