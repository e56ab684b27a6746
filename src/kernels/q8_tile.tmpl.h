/* SPDX-License-Identifier: Apache-2.0 */
/* The tile of bytes (sn_q8_tile): P rows × Q blocks of sums stay in registers while taps and
 * channels stream by, four channels at a time. Each four are broadcast once and meet the weights of
 * Q blocks. The file that includes this has the vocabulary of its instruction set:
 *
 *   Q8_BLOCK, Q8_TILES(X)   lanes of a block; the tiles that exist
 *   q8_v, Q8_SUMS, Q8_WS    a register; registers of sums and of weights for a block
 *   q8_a                    four bytes, in every place
 *   q8_bytes, q8_flip       they are read; xor
 *   q8_weights, q8_dot      a block's weights of four channels; sums += products
 *   q8_store                sums + start of a block to memory */
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { Q8_KR = 4, Q8_MAX_P = 12 };

/* Four channels of a row: it meets the weights of Q blocks. */
SN_INLINE void q8_row(q8_v *sums, q8_a a, const q8_v *w, const int Q)
{
    SN_UNROLL for (int q = 0; q < Q; q++) q8_dot(sums + q * Q8_SUMS, a, w + q * Q8_WS);
}

SN_INLINE void q8_tile_rows(const sn_q8_tile *t, size_t row, const int P, const int Q,
                            const bool flips)
{
    const q8_a flip = q8_bytes(0x01010101u * t->flip);
    const size_t whole = t->channels / Q8_KR, rest = t->channels % Q8_KR;
    const ptrdiff_t w_q = t->w_q;
    const int8_t *w = t->w;
    q8_v sums[Q8_MAX_P * 4 * Q8_SUMS], wv[4 * Q8_WS];
    SN_UNROLL for (int i = 0; i < P * Q * Q8_SUMS; i++) sums[i] = q8_zero();
    for (size_t k = 0; k < t->taps; k++) {
        const uint8_t *x[Q8_MAX_P];
        SN_UNROLL for (int p = 0; p < P; p++) x[p] = t->x[k * t->rows + row + (size_t)p] + t->x_at;
        SN_NO_UNROLL for (size_t c = 0; c < whole; c++)
        {
            SN_UNROLL for (int q = 0; q < Q; q++) q8_weights(wv + q * Q8_WS, w + q * w_q);
            SN_UNROLL for (int p = 0; p < P; p++)
            {
                uint32_t word;
                memcpy(&word, x[p] + c * Q8_KR, sizeof word);
                const q8_a a = q8_bytes(word);
                q8_row(sums + p * Q * Q8_SUMS, flips ? q8_flip(a, flip) : a, wv, Q);
            }
            w += Q8_BLOCK * Q8_KR;
        }
        if (rest) {
            SN_UNROLL for (int q = 0; q < Q; q++) q8_weights(wv + q * Q8_WS, w + q * w_q);
            SN_UNROLL for (int p = 0; p < P; p++)
            {
                uint32_t word = 0;
                for (size_t i = 0; i < rest; i++)
                    word |= (uint32_t)(x[p][whole * Q8_KR + i] ^ t->flip) << (8 * i);
                q8_row(sums + p * Q * Q8_SUMS, q8_bytes(word), wv, Q);
            }
            w += Q8_BLOCK * Q8_KR;
        }
    }
    SN_UNROLL for (int p = 0; p < P; p++) SN_UNROLL for (int q = 0; q < Q; q++)
        q8_store(t->y + (ptrdiff_t)(row + (size_t)p) * t->y_row + q * Q8_BLOCK,
                 sums + (p * Q + q) * Q8_SUMS, t->start + q * Q8_BLOCK);
}

#define Q8_INSTANCE(P, Q)                                                                          \
    static void q8_tile_##P##_##Q(const sn_q8_tile *t, size_t row)                                 \
    {                                                                                              \
        if (t->flip)                                                                               \
            q8_tile_rows(t, row, P, Q, true);                                                      \
        else                                                                                       \
            q8_tile_rows(t, row, P, Q, false);                                                     \
    }
Q8_TILES(Q8_INSTANCE)

#define Q8_ENTRY(P, Q) [Q][P] = q8_tile_##P##_##Q,
typedef void q8_tile_rows_fn(const sn_q8_tile *t, size_t row);

/* Rows in as few tiles as there can be, each of the largest size that is left. */
static void q8_walk(const sn_q8_tile *t)
{
    static q8_tile_rows_fn *const table[5][Q8_MAX_P + 1] = {Q8_TILES(Q8_ENTRY)};
    for (size_t row = 0; row < t->rows;) {
        size_t n = t->rows - row < Q8_MAX_P ? t->rows - row : Q8_MAX_P;
        while (!table[t->blocks][n])
            n--;
        table[t->blocks][n](t, row);
        row += n;
    }
}
