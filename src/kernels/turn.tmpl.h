/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bytes become columns, 16 × 16 at a time, by interleaving rows i and i + 8 four times. The
 * file that includes this has vb_load, vb_store, vb_low and vb_high (interleaved halves) of vectors
 * vb of 16 bytes, and vb_store3 and vb_load3, which interleave three of them and take them apart.
 *
 * Images of three or four channels have ways of their own. Other narrow ones are turned as squares
 * of which a part is not used: what is read or written too much are bytes of the pixels that
 * follow. */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { TURN = 16 };

SN_INLINE void turn_vectors(vb a[TURN])
{
    vb b[TURN];
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
}

SN_INLINE void turn_square(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row)
{
    vb a[TURN];
    SN_UNROLL for (int i = 0; i < TURN; i++) a[i] = vb_load(x + i * x_row);
    turn_vectors(a);
    SN_UNROLL for (int i = 0; i < TURN; i++) vb_store(y + i * y_row, a[i]);
}

/* Squares from end to end; the last one of a side may overlap the one before it. */
SN_INLINE void turn_squares(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row,
                            size_t rows, size_t columns)
{
    for (size_t c = 0; c < columns; c += TURN) {
        const size_t at_c = c + TURN <= columns ? c : columns - TURN;
        for (size_t r = 0; r < rows; r += TURN) {
            const size_t at_r = r + TURN <= rows ? r : rows - TURN;
            turn_square(y + (ptrdiff_t)at_c * y_row + (ptrdiff_t)at_r, y_row,
                        x + (ptrdiff_t)at_r * x_row + (ptrdiff_t)at_c, x_row);
        }
    }
}

/* Four vectors as one of 64 bytes: byte i goes to 2 i, or 2 i - 63 in the upper half. Twice puts
 * four rows into columns, four times takes columns of four apart. */
SN_INLINE void interleave4(vb a[4], const int times)
{
    SN_UNROLL for (int i = 0; i < times; i++)
    {
        const vb b[4] = {vb_low(a[0], a[2]), vb_high(a[0], a[2]), vb_low(a[1], a[3]),
                         vb_high(a[1], a[3])};
        SN_UNROLL for (int k = 0; k < 4; k++) a[k] = b[k];
    }
}

/* Few rows to columns side by side: y_row is `rows`. Returns how many columns are done. */
SN_INLINE size_t join_rows(uint8_t *y, const uint8_t *x, ptrdiff_t x_row, size_t rows,
                           size_t columns)
{
    vb a[TURN];
    size_t c = 0;
    if (rows == 3) {
        for (; c + TURN <= columns; c += TURN)
            vb_store3(y + 3 * c, vb_load(x + c), vb_load(x + x_row + c),
                      vb_load(x + 2 * x_row + c));
        return c;
    }
    if (rows == 4) {
        for (; c + TURN <= columns; c += TURN) {
            SN_UNROLL for (int i = 0; i < 4; i++) a[i] = vb_load(x + i * x_row + c);
            interleave4(a, 2);
            SN_UNROLL for (int i = 0; i < 4; i++) vb_store(y + 4 * c + TURN * i, a[i]);
        }
        return c;
    }
    for (; (c + TURN) * rows + TURN <= columns * rows; c += TURN) {
        for (size_t i = 0; i < TURN; i++) /* the rows that are missing are any */
            a[i] = vb_load(x + (ptrdiff_t)(i < rows ? i : 0) * x_row + c);
        turn_vectors(a);
        SN_UNROLL for (size_t i = 0; i < TURN; i++) vb_store(y + (c + i) * rows, a[i]);
    }
    return c;
}

/* Rows of few columns, side by side, apart: x_row is `columns`. Returns how many rows are done. */
SN_INLINE size_t split_rows(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, size_t rows,
                            size_t columns)
{
    vb a[TURN];
    size_t r = 0;
    if (columns == 3) {
        for (; r + TURN <= rows; r += TURN) {
            vb_load3(a, x + 3 * r);
            SN_UNROLL for (int i = 0; i < 3; i++) vb_store(y + i * y_row + r, a[i]);
        }
        return r;
    }
    if (columns == 4) {
        for (; r + TURN <= rows; r += TURN) {
            SN_UNROLL for (int i = 0; i < 4; i++) a[i] = vb_load(x + 4 * r + TURN * i);
            interleave4(a, 4);
            SN_UNROLL for (int i = 0; i < 4; i++) vb_store(y + i * y_row + r, a[i]);
        }
        return r;
    }
    for (; (r + TURN) * columns + TURN <= rows * columns; r += TURN) {
        SN_UNROLL for (size_t i = 0; i < TURN; i++) a[i] = vb_load(x + (r + i) * columns);
        turn_vectors(a);
        for (size_t i = 0; i < columns; i++)
            vb_store(y + (ptrdiff_t)i * y_row + r, a[i]);
    }
    return r;
}

void SN_ISA(sn_u8_turn)(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row, size_t rows,
                        size_t columns)
{
    if (rows >= TURN && columns >= TURN) {
        turn_squares(y, y_row, x, x_row, rows, columns);
        return;
    }
    if ((rows == 1 && y_row == 1) || (columns == 1 && x_row == 1)) {
        memcpy(y, x, rows * columns);
        return;
    }
    size_t r = 0, c = 0;
    if (columns >= TURN && y_row == (ptrdiff_t)rows)
        c = join_rows(y, x, x_row, rows, columns);
    else if (rows >= TURN && x_row == (ptrdiff_t)columns)
        r = split_rows(y, y_row, x, rows, columns);
    sn_u8_turn_ref(y + (ptrdiff_t)c * y_row + r, y_row, x + (ptrdiff_t)r * x_row + c, x_row,
                   rows - r, columns - c);
}
