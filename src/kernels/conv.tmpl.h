/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution on blocked input: tile.tmpl.h with channels side by side. With one block of output
 * every load counts, and with short blocks there are many: there the usual distances of pixels are
 * constants, so that addresses cost nothing. */
#include "kernels/tile.tmpl.h"

#define TILE_NAME(P, Q) conv_##P##x##Q
#define TILE_INSTANCE(P, Q)                                                                        \
    static void TILE_NAME(P, Q)(const sn_f32_tile *t, size_t at, unsigned edges)                   \
    {                                                                                              \
        if ((Q == 1 || TILE_SHORT) && t->x_pixel == SN_BLOCK)                                      \
            tile(t, at, edges, P, Q, SN_BLOCK, 1, TILE_MAX_P, true, true);                         \
        else if (Q == 1 && t->x_pixel == 2 * SN_BLOCK)                                             \
            tile(t, at, edges, P, Q, 2 * SN_BLOCK, 1, TILE_MAX_P, true, true);                     \
        else                                                                                       \
            tile(t, at, edges, P, Q, t->x_pixel, 1, SN_REACH, true, true);                         \
    }
SN_TILES(TILE_INSTANCE)
void SN_ISA(sn_f32_conv)(const sn_f32_tile *t)
{
    static tile_fn *const table[5][TILE_MAX_P + 1] = TILE_TABLE;
    tile_walk(t, 0, t->pixels, table);
}
