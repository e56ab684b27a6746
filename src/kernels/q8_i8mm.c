/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with the matrix instructions of ARMv8.6: two rows of eight bytes times two
 * columns of eight are four sums. Rows come in pairs; the last of an odd number is paired with
 * itself, and its second results are left out. */
#include <arm_neon.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { BLOCK = 8, KR = 8, MAX_PAIRS = 5, WS = 4 /* registers of two columns each, of a block */ };

/* Eight channels of two rows. */
SN_INLINE uint8x16_t both(const uint8_t *a, const uint8_t *b)
{
    return vcombine_u8(vld1_u8(a), vld1_u8(b));
}

/* Sums of two rows and a block, columns two by two, += eight channels of each. */
SN_INLINE void multiply(int32x4_t *sums, uint8x16_t x, const int8x16_t *w, const bool is_signed)
{
    SN_UNROLL for (int j = 0; j < WS; j++) sums[j] =
        is_signed ? vmmlaq_s32(sums[j], vreinterpretq_s8_u8(x), w[j])
                  : vusmmlaq_s32(sums[j], x, w[j]);
}

SN_INLINE void load_weights(int8x16_t *w, const int8_t *from)
{
    SN_UNROLL for (int j = 0; j < WS; j++) w[j] = vld1q_s8(from + j * 2 * KR);
}

/* One row of a pair: sums + start. */
SN_INLINE void store_row(int32_t *y, const int32x2_t *sums, const int32_t *start)
{
    vst1q_s32(y, vaddq_s32(vcombine_s32(sums[0], sums[1]), vld1q_s32(start)));
    vst1q_s32(y + 4, vaddq_s32(vcombine_s32(sums[2], sums[3]), vld1q_s32(start + 4)));
}

/* Rows `row` … row+n-1, in R pairs. */
SN_INLINE void tile(const sn_q8_tile *t, size_t row, size_t n, const int R, const bool is_signed,
                    const bool flips)
{
    const size_t whole = t->channels / KR, rest = t->channels % KR;
    const uint8x16_t flip = vdupq_n_u8(t->flip);
    const int8_t *w = t->w;
    int32x4_t sums[MAX_PAIRS * WS];
    int8x16_t wv[WS];
    SN_UNROLL for (int i = 0; i < R * WS; i++) sums[i] = vdupq_n_s32(0);
    for (size_t k = 0; k < t->taps; k++) {
        const uint8_t *x[2 * MAX_PAIRS];
        SN_UNROLL for (size_t p = 0; p < 2 * (size_t)R; p++) x[p] =
            t->x[k * t->rows + row + (p < n ? p : n - 1)] + t->x_at;
        SN_NO_UNROLL for (size_t c = 0; c < whole; c++, w += BLOCK * KR)
        {
            load_weights(wv, w);
            SN_UNROLL for (int r = 0; r < R; r++)
            {
                uint8x16_t a = both(x[2 * r] + c * KR, x[2 * r + 1] + c * KR);
                if (flips)
                    a = veorq_u8(a, flip);
                multiply(sums + r * WS, a, wv, is_signed);
            }
        }
        if (rest) {
            load_weights(wv, w);
            w += BLOCK * KR;
            SN_UNROLL for (int r = 0; r < R; r++)
            {
                uint8_t part[2][KR] = {{0}};
                for (size_t i = 0; i < 2 * rest; i++)
                    part[i / rest][i % rest] =
                        x[2 * (size_t)r + i / rest][whole * KR + i % rest] ^ t->flip;
                multiply(sums + r * WS, both(part[0], part[1]), wv, is_signed);
            }
        }
    }
    SN_UNROLL for (size_t r = 0; r < (size_t)R; r++)
    {
        int32_t *y = t->y + (ptrdiff_t)(row + 2 * r) * t->y_row;
        int32x2_t low[WS], high[WS];
        SN_UNROLL for (size_t j = 0; j < WS; j++)
        {
            low[j] = vget_low_s32(sums[r * WS + j]);
            high[j] = vget_high_s32(sums[r * WS + j]);
        }
        store_row(y, low, t->start);
        if (2 * r + 1 < n)
            store_row(y + t->y_row, high, t->start);
    }
}

/* clang-format off */
#if SONDE_FEW_TILES
#define PAIRS(X) X(1) X(2)
#else
#define PAIRS(X) X(1) X(2) X(3) X(4) X(5)
#endif
/* clang-format on */

#define INSTANCE(R)                                                                                \
    static void u8_pairs_##R(const sn_q8_tile *t, size_t row, size_t n)                            \
    {                                                                                              \
        if (t->flip)                                                                               \
            tile(t, row, n, R, false, true);                                                       \
        else                                                                                       \
            tile(t, row, n, R, false, false);                                                      \
    }                                                                                              \
    static void i8_pairs_##R(const sn_q8_tile *t, size_t row, size_t n)                            \
    {                                                                                              \
        if (t->flip)                                                                               \
            tile(t, row, n, R, true, true);                                                        \
        else                                                                                       \
            tile(t, row, n, R, true, false);                                                       \
    }
PAIRS(INSTANCE)

typedef void pairs_fn(const sn_q8_tile *t, size_t row, size_t n);

/* Rows in as few tiles as there can be, each of the largest size that is left. */
static void walk(const sn_q8_tile *t, pairs_fn *const *table)
{
    for (size_t row = 0; row < t->rows;) {
        const size_t left = t->rows - row;
        size_t pairs = left < 2 * MAX_PAIRS ? (left + 1) / 2 : MAX_PAIRS;
        while (!table[pairs])
            pairs--;
        const size_t n = left < 2 * pairs ? left : 2 * pairs;
        table[pairs](t, row, n);
        row += n;
    }
}

#define U8_ENTRY(R) [R] = u8_pairs_##R,
#define I8_ENTRY(R) [R] = i8_pairs_##R,

void sn_u8_tile_i8mm(const sn_q8_tile *t)
{
    static pairs_fn *const table[MAX_PAIRS + 1] = {PAIRS(U8_ENTRY)};
    walk(t, table);
}

void sn_i8_tile_i8mm(const sn_q8_tile *t)
{
    static pairs_fn *const table[MAX_PAIRS + 1] = {PAIRS(I8_ENTRY)};
    walk(t, table);
}
