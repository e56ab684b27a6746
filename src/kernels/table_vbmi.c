/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes through a table with AVX-512 VBMI, which looks up in 128 bytes at once: the top bit of an
 * index chooses between the two halves. */
#include <immintrin.h>

#include "kernels/kernels.h"

enum { LANES = 64 };

static inline __m512i look_up(const __m512i t[4], __m512i x)
{
    const __m512i low = _mm512_permutex2var_epi8(t[0], x, t[1]);
    const __m512i high = _mm512_permutex2var_epi8(t[2], x, t[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

void sn_u8_table_vbmi(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table)
{
    __m512i t[SN_BYTE_VALUES / LANES];
    for (size_t k = 0; k < SN_BYTE_VALUES / LANES; k++)
        t[k] = _mm512_loadu_si512(table + k * LANES);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm512_storeu_si512(y + i, look_up(t, _mm512_loadu_si512(x + i)));
    const __mmask64 rest = ((__mmask64)1 << (n - i)) - 1;
    _mm512_mask_storeu_epi8(y + i, rest, look_up(t, _mm512_maskz_loadu_epi8(rest, x + i)));
}
