/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of tiles of rows (sn_tile_rows) share: where sums go, and lines of memory that will
 * be read later and are fetched on the way, a few at every step. */
#ifndef SN_KERNELS_TILE_ROWS_H
#define SN_KERNELS_TILE_ROWS_H

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

typedef struct sn_fetch {
    const uint8_t *at;
    size_t left, per_step; /* bytes */
    size_t each, more;     /* of a place; places that follow, `skip` behind the end of the last */
    ptrdiff_t skip;
} sn_fetch;

enum { SN_FETCH_LINE = 64 };

/* What t->ahead says, evenly over so many steps. */
SN_INLINE sn_fetch sn_fetch_begin(const sn_tile_rows *t, size_t steps)
{
    const size_t lines = t->ahead_bytes / SN_FETCH_LINE, all = lines * (1 + t->ahead_more);
    const size_t each = lines * SN_FETCH_LINE;
    return (sn_fetch){.at = (const uint8_t *)t->ahead,
                      .left = each,
                      .per_step = (all + steps - 1) / (steps ? steps : 1) * SN_FETCH_LINE,
                      .each = each,
                      .more = t->ahead_more,
                      .skip = t->ahead_q - (ptrdiff_t)each};
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
    if (f->left == 0 && f->more > 0) {
        f->more--;
        f->at += f->skip;
        f->left = f->each;
    }
}

/* Element 0 of row r of y. */
SN_INLINE ptrdiff_t sn_rows_y(const sn_tile_rows *t, size_t r)
{
    if (t->turn == 0)
        return (ptrdiff_t)r * t->y_row;
    return (ptrdiff_t)(r / SN_ROWS_GROUP % 2) * t->turn + (ptrdiff_t)(r % SN_ROWS_GROUP) * t->y_row;
}

/* All rows before r are there, and those from r on are not begun. Kernels that go from row to row
 * call this where a group ends, or more often. */
SN_INLINE void sn_rows_done(const sn_tile_rows *t, size_t r)
{
    if (t->beside && (r >= t->rows || r % SN_ROWS_GROUP == 0))
        t->beside(t->beside_arg, (r + SN_ROWS_GROUP - 1) / SN_ROWS_GROUP);
}

#endif
