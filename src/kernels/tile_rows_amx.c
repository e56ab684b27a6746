/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes and of bf16 with the tiles of AMX: 16 rows × 16 columns × 64 bytes at a time.
 */
#include "kernels/tile_rows.tmpl.h"

DEFINE_ROWS(sn_u8_rows_amx, _tile_dpbusd)
DEFINE_ROWS(sn_i8_rows_amx, _tile_dpbssd)
DEFINE_ROWS(sn_bf16_rows_amx, _tile_dpbf16ps)

/* ------------------------------------------------------------------ state of a thread */
void sn_tiles_enter_amx(void)
{
    static const struct {
        uint8_t palette, first, reserved[14];
        uint16_t line[16];
        uint8_t rows[16];
    } all = {.palette = 1,
             .line = {TILE_LINE, TILE_LINE, TILE_LINE, TILE_LINE, TILE_LINE, TILE_LINE, TILE_LINE,
                      TILE_LINE},
             .rows = {TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS,
                      TILE_ROWS}};
    _tile_loadconfig(&all);
}

void sn_tiles_leave_amx(void)
{
    _tile_release();
}
