/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution on blocked input, strides 1 and 2: tile.tmpl.h with the distance of pixels as a
 * constant. */
#include "kernels/tile.tmpl.h"

#define TILE_NAME(P, Q) conv_##P##x##Q
#define TILE_INSTANCE(P, Q)                                                                        \
    static void TILE_NAME(P, Q)(const sn_f32_tile *t, size_t at, unsigned edges)                   \
    {                                                                                              \
        tile(t, at, edges, P, Q, SN_BLOCK, 1, true, true);                                         \
    }
SN_TILES(TILE_INSTANCE)
void SN_ISA(sn_f32_conv)(const sn_f32_tile *t)
{
    static tile_fn *const table[5][TILE_MAX_P + 1] = TILE_TABLE;
    tile_walk(t, 0, t->pixels, table);
}
#undef TILE_NAME
#undef TILE_INSTANCE

#define TILE_NAME(P, Q) conv_s2_##P##x##Q
#define TILE_INSTANCE(P, Q)                                                                        \
    static void TILE_NAME(P, Q)(const sn_f32_tile *t, size_t at, unsigned edges)                   \
    {                                                                                              \
        tile(t, at, edges, P, Q, 2 * SN_BLOCK, 1, true, true);                                     \
    }
SN_TILES(TILE_INSTANCE)
void SN_ISA(sn_f32_conv_s2)(const sn_f32_tile *t)
{
    static tile_fn *const table[5][TILE_MAX_P + 1] = TILE_TABLE;
    tile_walk(t, 0, t->pixels, table);
}
