/* SPDX-License-Identifier: Apache-2.0 */
/* The peaks of products with the tiles of AMX. Four tiles of sums, as the kernels for models have
 * them, hide the latency of a product. */
#include <immintrin.h>

#include "kernels/kernels.h"

enum { CHAINS = 4, LINE = 64, SUMS = SN_ROWS_TILE * SN_ROWS_TILE };

/* Numbers of tiles must be literals, so this is a macro. */
#define DEFINE_PEAK(name, sum_type, product)                                                       \
    void name(void *y, const void *x, const void *w, size_t rounds)                                \
    {                                                                                              \
        sum_type sums[CHAINS][SUMS], *to = (sum_type *)y;                                          \
        size_t r = 0;                                                                              \
        _tile_zero(0);                                                                             \
        _tile_zero(1);                                                                             \
        _tile_zero(2);                                                                             \
        _tile_zero(3);                                                                             \
        _tile_loadd(4, x, LINE);                                                                   \
        _tile_loadd(5, x, LINE);                                                                   \
        _tile_loadd(6, w, LINE);                                                                   \
        _tile_loadd(7, w, LINE);                                                                   \
        for (; r + CHAINS <= rounds; r += CHAINS) {                                                \
            product(0, 4, 6);                                                                      \
            product(1, 4, 7);                                                                      \
            product(2, 5, 6);                                                                      \
            product(3, 5, 7);                                                                      \
        }                                                                                          \
        for (; r < rounds; r++)                                                                    \
            product(0, 4, 6);                                                                      \
        _tile_stored(0, sums[0], LINE);                                                            \
        _tile_stored(1, sums[1], LINE);                                                            \
        _tile_stored(2, sums[2], LINE);                                                            \
        _tile_stored(3, sums[3], LINE);                                                            \
        for (size_t i = 0; i < SUMS; i++)                                                          \
            to[i] = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);                         \
    }
DEFINE_PEAK(sn_i8_tile_peak_amx, uint32_t, _tile_dpbssd)
DEFINE_PEAK(sn_bf16_tile_peak_amx, float, _tile_dpbf16ps)
