/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bytes become columns, 16 × 16 at a time, by interleaving rows i and i + 8 four times. The
 * file that includes this has vb_load, vb_store, vb_low and vb_high (interleaved halves) of vectors
 * vb of 16 bytes. */
#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { TURN = 16 };

SN_INLINE void turn_square(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row)
{
    vb a[TURN], b[TURN];
    SN_UNROLL for (int i = 0; i < TURN; i++) a[i] = vb_load(x + i * x_row);
    SN_UNROLL for (int round = 0; round < 2; round++)
    {
        SN_UNROLL for (int i = 0; i < TURN / 2; i++)
        {
            b[2 * i] = vb_low(a[i], a[i + TURN / 2]);
            b[2 * i + 1] = vb_high(a[i], a[i + TURN / 2]);
        }
        SN_UNROLL for (int i = 0; i < TURN / 2; i++)
        {
            a[2 * i] = vb_low(b[i], b[i + TURN / 2]);
            a[2 * i + 1] = vb_high(b[i], b[i + TURN / 2]);
        }
    }
    SN_UNROLL for (int i = 0; i < TURN; i++) vb_store(y + i * y_row, a[i]);
}

void SN_ISA(sn_u8_turn)(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row, size_t rows,
                        size_t columns)
{
    const size_t r16 = rows / TURN * TURN, c16 = columns / TURN * TURN;
    for (size_t c = 0; c < c16; c += TURN)
        for (size_t r = 0; r < r16; r += TURN)
            turn_square(y + (ptrdiff_t)c * y_row + (ptrdiff_t)r, y_row,
                        x + (ptrdiff_t)r * x_row + (ptrdiff_t)c, x_row);
    sn_u8_turn_ref(y + (ptrdiff_t)c16 * y_row, y_row, x + c16, x_row, r16, columns - c16);
    sn_u8_turn_ref(y + r16, y_row, x + (ptrdiff_t)r16 * x_row, x_row, rows - r16, columns);
}
