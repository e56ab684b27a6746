/* SPDX-License-Identifier: Apache-2.0 */
/* One row of bytes times sparse weights: the sixteen weights of a group are one vector, which meets
 * the same four bytes of x for each of its outputs. Groups go to two sums in turn. The file that
 * includes this has vectors b16 of 16 bytes (or four sums) with b16_load, b16_store, b16_zero,
 * b16_bytes (four bytes in every place), b16_add (of sums) and b16_dot (sums, bytes of x, weights).
 */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

SN_INLINE uint32_t gathered(const uint8_t *x, const uint16_t *at)
{
    return (uint32_t)x[at[0]] | (uint32_t)x[at[1]] << 8 | (uint32_t)x[at[2]] << 16 |
           (uint32_t)x[at[3]] << 24;
}

SN_INLINE void sparse_row(const sn_q8_sparse_row *t)
{
    enum { AHEAD = 64 }; /* groups fetched before they are needed */
    const uint32_t flip = 0x01010101u * t->flip;
    for (size_t o = 0, p = 0; o < t->outputs; o += SN_SPARSE_PANEL, p++) {
        const size_t n = t->outputs - o < SN_SPARSE_PANEL ? t->outputs - o : SN_SPARSE_PANEL;
        const uint32_t end = t->first[p + 1];
        int32_t sums[SN_SPARSE_PANEL] = {0};
        memcpy(sums, t->start + o, n * sizeof *sums);
        b16 a = b16_load(sums), b = b16_zero();
        uint32_t j = t->first[p];
        for (; j + 2 <= end; j += 2) {
            const size_t g = j;
            SN_FETCH_L1(t->w + 16 * (g + AHEAD));
            SN_FETCH_L1(t->index + 4 * (g + AHEAD));
            a = b16_dot(a, b16_bytes(gathered(t->x, t->index + 4 * g) ^ flip),
                        b16_load(t->w + 16 * g));
            b = b16_dot(b, b16_bytes(gathered(t->x, t->index + 4 * g + 4) ^ flip),
                        b16_load(t->w + 16 * g + 16));
        }
        if (j < end)
            a = b16_dot(a, b16_bytes(gathered(t->x, t->index + 4 * (size_t)j) ^ flip),
                        b16_load(t->w + 16 * (size_t)j));
        b16_store(sums, b16_add(a, b));
        memcpy(t->y + o, sums, n * sizeof *sums);
    }
}
