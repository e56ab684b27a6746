/* SPDX-License-Identifier: Apache-2.0 */
/* Rows at equal distances times tiles of weights, one number at a time. */
#include <stdbool.h>
#include <string.h>

#include "base/codec.h"
#include "kernels/tile_rows.h"

static inline void rows(const sn_tile_rows *t, bool is_signed)
{
    for (size_t r = 0; r < t->rows; sn_rows_done(t, ++r))
        for (size_t q = 0; q < t->blocks; q++)
            for (size_t l = 0; l < SN_ROWS_TILE; l++) {
                const int8_t *w = (const int8_t *)t->w + (ptrdiff_t)q * t->w_q;
                uint32_t sum = (uint32_t)((const int32_t *)t->start)[q * SN_ROWS_TILE + l];
                for (size_t s = 0; s < t->steps; s++, w += SN_ROWS_WEIGHTS) {
                    const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)r * t->x_row + t->at[s];
                    for (size_t c = 0; c < SN_ROWS_STEP; c++)
                        sum += (uint32_t)((is_signed ? (int8_t)x[c] : x[c]) *
                                          w[(c / 4 * SN_ROWS_TILE + l) * 4 + c % 4]);
                }
                int32_t *y = (int32_t *)t->y + sn_rows_y(t, r) + (ptrdiff_t)q * t->y_q;
                y[l] = (int32_t)sum;
            }
}

void sn_u8_rows_ref(const sn_tile_rows *t)
{
    rows(t, false);
}

void sn_i8_rows_ref(const sn_tile_rows *t)
{
    rows(t, true);
}

static inline void half_rows(const sn_tile_rows *t, float (*wide)(uint16_t))
{
    enum { KR = 2, NUMBERS = SN_ROWS_STEP / 2 };
    for (size_t r = 0; r < t->rows; sn_rows_done(t, ++r))
        for (size_t q = 0; q < t->blocks; q++)
            for (size_t l = 0; l < SN_ROWS_TILE; l++) {
                const uint8_t *all = (const uint8_t *)t->w + (ptrdiff_t)q * t->w_q;
                float sum = ((const float *)t->start)[q * SN_ROWS_TILE + l];
                for (size_t s = 0; s < t->steps; s++) {
                    const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)r * t->x_row + t->at[s];
                    const uint8_t *w =
                        all + (t->w_at ? t->w_at[s] : (ptrdiff_t)s * SN_ROWS_WEIGHTS);
                    for (size_t c = 0; c < NUMBERS; c++) {
                        uint16_t a, b;
                        memcpy(&a, x + c * sizeof a, sizeof a);
                        memcpy(&b, w + ((c / KR * SN_ROWS_TILE + l) * KR + c % KR) * sizeof b,
                               sizeof b);
                        sum += wide(a) * wide(b);
                    }
                }
                float *y = (float *)t->y + sn_rows_y(t, r) + (ptrdiff_t)q * t->y_q;
                y[l] = sum;
            }
}

void sn_bf16_rows_ref(const sn_tile_rows *t)
{
    half_rows(t, sn_bf16_to_f32);
}

void sn_f16_rows_ref(const sn_tile_rows *t)
{
    half_rows(t, sn_f16_to_f32);
}

void sn_tiles_enter_ref(void) {}

void sn_tiles_leave_ref(void) {}
