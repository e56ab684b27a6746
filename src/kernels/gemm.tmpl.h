/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles with strides known only at run time: matrix products, and convolution on plain input (first
 * layers) or with large strides. */
#include "kernels/tile.tmpl.h"

#define TILE_NAME(P, Q) conv_any_##P##x##Q
#define TILE_INSTANCE(P, Q)                                                                        \
    static void TILE_NAME(P, Q)(const sn_f32_tile *t, size_t at, unsigned edges)                   \
    {                                                                                              \
        tile(t, at, edges, P, Q, t->x_pixel, t->x_ic, SN_REACH, true, false);                      \
    }
SN_TILES(TILE_INSTANCE)
void SN_ISA(sn_f32_conv_any)(const sn_f32_tile *t)
{
    static tile_fn *const table[5][TILE_MAX_P + 1] = TILE_TABLE;
    /* Pixels that miss taps go alone. */
    size_t at = t->first_kw > 0 && t->pixels > 0, end = t->pixels;
    if (t->last_kw < t->kw && end > at)
        end--;
    tile_walk(t, 0, at, table);
    tile_walk(t, at, end, table);
    tile_walk(t, end, t->pixels, table);
}
#undef TILE_NAME
#undef TILE_INSTANCE

#define TILE_NAME(P, Q) gemm_##P##x##Q
#define TILE_INSTANCE(P, Q)                                                                        \
    static void TILE_NAME(P, Q)(const sn_f32_tile *t, size_t at, unsigned edges)                   \
    {                                                                                              \
        tile(t, at, edges, P, Q, t->x_pixel, 1, SN_REACH, false, false);                           \
    }
SN_TILES(TILE_INSTANCE)
void SN_ISA(sn_f32_gemm)(const sn_f32_tile *t)
{
    static tile_fn *const table[5][TILE_MAX_P + 1] = TILE_TABLE;
    tile_walk(t, 0, t->pixels, table);
}
