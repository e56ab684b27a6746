/* SPDX-License-Identifier: Apache-2.0 */
/* What the peaks of products compute. Only tests need these: the peak of plain C is not measured.
 */
#include <string.h>

#include "base/codec.h"
#include "kernels/kernels.h"

enum { SUMS = SN_ROWS_TILE, WORD = 4, HALVES = 2 }; /* bytes and halves that make one sum */

/* y[i] += the products of n words, each a line of `line` of them behind the one before in w. */
static void add_bytes(uint32_t *y, const int8_t *x, const int8_t *w, size_t n, size_t line)
{
    for (size_t c = 0; c < n * WORD; c++)
        *y += (uint32_t)(x[c] * w[c / WORD * line * WORD + c % WORD]);
}

static void add_halves(float *y, const uint16_t *x, const uint16_t *w, size_t n, size_t line)
{
    for (size_t c = 0; c < n * HALVES; c++)
        *y += sn_bf16_to_f32(x[c]) * sn_bf16_to_f32(w[c / HALVES * line * HALVES + c % HALVES]);
}

void sn_i8_peak_ref(void *y, const void *x, const void *w, size_t rounds)
{
    memset(y, 0, SUMS * WORD);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS; i++)
            add_bytes((uint32_t *)y + i, (const int8_t *)x + i * WORD, (const int8_t *)w + i * WORD,
                      1, 0);
}

void sn_bf16_peak_ref(void *y, const void *x, const void *w, size_t rounds)
{
    memset(y, 0, SUMS * WORD);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS; i++)
            add_halves((float *)y + i, (const uint16_t *)x + i * HALVES,
                       (const uint16_t *)w + i * HALVES, 1, 0);
}

void sn_i8_tile_peak_ref(void *y, const void *x, const void *w, size_t rounds)
{
    memset(y, 0, SUMS * SUMS * WORD);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS * SUMS; i++)
            add_bytes((uint32_t *)y + i, (const int8_t *)x + i / SUMS * SUMS * WORD,
                      (const int8_t *)w + i % SUMS * WORD, SUMS, SUMS);
}

void sn_bf16_tile_peak_ref(void *y, const void *x, const void *w, size_t rounds)
{
    memset(y, 0, SUMS * SUMS * WORD);
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < SUMS * SUMS; i++)
            add_halves((float *)y + i, (const uint16_t *)x + i / SUMS * SUMS * HALVES,
                       (const uint16_t *)w + i % SUMS * HALVES, SUMS, SUMS);
}
