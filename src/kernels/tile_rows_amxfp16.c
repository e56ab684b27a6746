/* SPDX-License-Identifier: Apache-2.0 */
/* Products of f16 with the tiles of AMX-FP16. Compilers that are in use do not know the instruction
 * yet, so it is spelled out: TDPFP16PS is VEX.128.F2.0F38.W0 5C, with the tile of sums and that of
 * rows in ModRM, and that of weights in VEX.vvvv. */
#include "kernels/tile_rows.tmpl.h"

#define TILE_DPFP16PS(sums, rows, weights)                                                         \
    __asm__ volatile(".byte 0xc4, 0xe2, %c0, 0x5c, %c1"                                            \
                     :                                                                             \
                     : "i"((~(weights)&15) << 3 | 3), "i"(0xc0 | (sums) << 3 | (rows)))

DEFINE_ROWS(sn_f16_rows_amxfp16, TILE_DPFP16PS)
