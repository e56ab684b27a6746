/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that finds the peak of products with vectors: independent chains of sums, which all
 * multiply the same two registers. The file before says what a register is (peak_v, peak_sums), how
 * many chains hide the latency of a product (PEAK_CHAINS), and makes peak_zero, peak_load,
 * peak_product, peak_add and peak_store; PEAK_LANES sums fill a register. Empty statements that
 * claim to change an operand keep the compiler from finding out that all products are the same. */
#include "kernels/kernels.h"

#if defined(__x86_64__)
#define PEAK_OWN(v) __asm__("" : "+v"(v))
#else
#define PEAK_OWN(v) __asm__("" : "+w"(v))
#endif

enum { PEAK_SUMS = 16, PEAK_WORD = 4 }; /* bytes that make one sum */

SN_INLINE void peak_of_register(void *y, const void *x, const void *w, size_t rounds)
{
    peak_v a = peak_load(x);
    const peak_v b = peak_load(w);
    peak_sums sums[PEAK_CHAINS];
    size_t r = 0;
    SN_UNROLL for (int k = 0; k < PEAK_CHAINS; k++) sums[k] = peak_zero();
    for (; r + PEAK_CHAINS <= rounds; r += PEAK_CHAINS) {
        SN_UNROLL for (int k = 0; k < PEAK_CHAINS; k++)
        {
            PEAK_OWN(a);
            sums[k] = peak_product(sums[k], a, b);
        }
    }
    for (; r < rounds; r++) {
        PEAK_OWN(a);
        sums[0] = peak_product(sums[0], a, b);
    }
    SN_UNROLL for (int k = 1; k < PEAK_CHAINS; k++) sums[0] = peak_add(sums[0], sums[k]);
    peak_store(y, sums[0]);
}

SN_INLINE void peak_of_products(void *y, const void *x, const void *w, size_t rounds)
{
    for (size_t i = 0; i < PEAK_SUMS; i += PEAK_LANES)
        peak_of_register((uint8_t *)y + i * PEAK_WORD, (const uint8_t *)x + i * PEAK_WORD,
                         (const uint8_t *)w + i * PEAK_WORD, rounds);
}
