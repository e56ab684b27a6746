/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of tiles of rows (sn_tile_rows) share: lines of memory that will be read later are
 * fetched on the way, a few at every step. */
#ifndef SN_KERNELS_TILE_ROWS_H
#define SN_KERNELS_TILE_ROWS_H

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

typedef struct sn_fetch {
    const uint8_t *at;
    size_t left, per_step; /* bytes */
} sn_fetch;

enum { SN_FETCH_LINE = 64 };

/* What t->ahead says, evenly over so many steps. */
SN_INLINE sn_fetch sn_fetch_begin(const sn_tile_rows *t, size_t steps)
{
    const size_t lines = t->ahead_bytes / SN_FETCH_LINE;
    return (sn_fetch){(const uint8_t *)t->ahead, lines * SN_FETCH_LINE,
                      (lines + steps - 1) / (steps ? steps : 1) * SN_FETCH_LINE};
}

SN_INLINE void sn_fetch_some(sn_fetch *f)
{
    if (f->left == 0) /* there may be nothing to fetch, and no address */
        return;
    const size_t n = f->left < f->per_step ? f->left : f->per_step;
    for (size_t i = 0; i < n; i += SN_FETCH_LINE)
        SN_FETCH_L2(f->at + i);
    f->at += n;
    f->left -= n;
}

#endif
