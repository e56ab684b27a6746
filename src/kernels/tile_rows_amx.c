/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes and of bf16 with the tiles of AMX: 16 rows × 16 columns × 64 bytes at a time.
 */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/tile_rows.h"

enum { TILE_ROWS = 16, TILE_LINE = 64, TILE_BYTES = TILE_ROWS * TILE_LINE };

/* Sums of one or two tiles of rows × one or two blocks. The products of a step are independent, and
 * a tile that is loaded is used for both. Sums begin as `start`, the same in every row: a tile
 * whose lines are all read from one place. Numbers of tiles must be literals, so this is a macro.
 */
#define DEFINE_ROWS(name, product)                                                                 \
    SN_INLINE void name##_some(const sn_tile_rows *t, size_t r, size_t q, sn_fetch *f,             \
                               const bool tall, const bool wide)                                   \
    {                                                                                              \
        const size_t x_row = (size_t)t->x_row, y_row = (size_t)t->y_row * sizeof(int32_t);         \
        const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)r * t->x_row;                        \
        const uint8_t *below = x + TILE_ROWS * t->x_row;                                           \
        const uint8_t *w = (const uint8_t *)t->w + (ptrdiff_t)q * t->w_q;                          \
        const int32_t *start = (const int32_t *)t->start + q * TILE_ROWS;                          \
        int32_t *y = (int32_t *)t->y + (ptrdiff_t)r * t->y_row + (ptrdiff_t)q * t->y_q;            \
        _tile_loadd(0, start, 0);                                                                  \
        if (wide)                                                                                  \
            _tile_loadd(1, start + TILE_ROWS, 0);                                                  \
        if (tall)                                                                                  \
            _tile_loadd(2, start, 0);                                                              \
        if (tall && wide)                                                                          \
            _tile_loadd(3, start + TILE_ROWS, 0);                                                  \
        for (size_t s = 0; s < t->steps; s++, w += TILE_BYTES) {                                   \
            _tile_loadd(4, x + t->at[s], x_row);                                                   \
            _tile_loadd(6, w, TILE_LINE);                                                          \
            product(0, 4, 6);                                                                      \
            if (wide) {                                                                            \
                _tile_loadd(7, w + t->w_q, TILE_LINE);                                             \
                product(1, 4, 7);                                                                  \
            }                                                                                      \
            if (tall) {                                                                            \
                _tile_loadd(5, below + t->at[s], x_row);                                           \
                product(2, 5, 6);                                                                  \
            }                                                                                      \
            if (tall && wide)                                                                      \
                product(3, 5, 7);                                                                  \
            sn_fetch_some(f);                                                                      \
        }                                                                                          \
        _tile_stored(0, y, y_row);                                                                 \
        if (wide)                                                                                  \
            _tile_stored(1, y + t->y_q, y_row);                                                    \
        if (tall)                                                                                  \
            _tile_stored(2, y + TILE_ROWS * t->y_row, y_row);                                      \
        if (tall && wide)                                                                          \
            _tile_stored(3, y + TILE_ROWS * t->y_row + t->y_q, y_row);                             \
    }                                                                                              \
    void name(const sn_tile_rows *t)                                                               \
    {                                                                                              \
        const size_t calls =                                                                       \
            (t->rows + 2 * TILE_ROWS - 1) / (2 * TILE_ROWS) * ((t->blocks + 1) / 2);               \
        sn_fetch f = sn_fetch_begin(t, calls * t->steps);                                          \
        for (size_t r = 0; r < t->rows; r += 2 * TILE_ROWS)                                        \
            for (size_t q = 0; q < t->blocks; q += 2) {                                            \
                const bool tall = t->rows - r > TILE_ROWS, wide = t->blocks - q > 1;               \
                if (tall && wide)                                                                  \
                    name##_some(t, r, q, &f, true, true);                                          \
                else if (tall)                                                                     \
                    name##_some(t, r, q, &f, true, false);                                         \
                else if (wide)                                                                     \
                    name##_some(t, r, q, &f, false, true);                                         \
                else                                                                               \
                    name##_some(t, r, q, &f, false, false);                                        \
            }                                                                                      \
    }
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
