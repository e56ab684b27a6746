/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bytes to columns on x86. */
#include "kernels/simd_avx2.h"

typedef __m128i vb;
SN_INLINE vb vb_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
SN_INLINE void vb_store(uint8_t *p, vb v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}
SN_INLINE vb vb_low(vb a, vb b)
{
    return _mm_unpacklo_epi8(a, b);
}
SN_INLINE vb vb_high(vb a, vb b)
{
    return _mm_unpackhi_epi8(a, b);
}

/* Byte j of vector i of three that are interleaved is byte (16 i + j) / 3 of one of them; JOIN
 * takes it from there, or makes it 0. APART is the same the other way round. */
#define EACH16(X, i, k)                                                                            \
    _mm_setr_epi8(X(i, k, 0), X(i, k, 1), X(i, k, 2), X(i, k, 3), X(i, k, 4), X(i, k, 5),          \
                  X(i, k, 6), X(i, k, 7), X(i, k, 8), X(i, k, 9), X(i, k, 10), X(i, k, 11),        \
                  X(i, k, 12), X(i, k, 13), X(i, k, 14), X(i, k, 15))
#define JOIN(i, k, j)  ((16 * (i) + (j)) % 3 == (k) ? (16 * (i) + (j)) / 3 : -1)
#define APART(i, k, j) ((3 * (j) + (i)) / 16 == (k) ? (3 * (j) + (i)) % 16 : -1)
#define OF3(X, i, a, b, c)                                                                         \
    _mm_or_si128(                                                                                  \
        _mm_or_si128(_mm_shuffle_epi8(a, EACH16(X, i, 0)), _mm_shuffle_epi8(b, EACH16(X, i, 1))),  \
        _mm_shuffle_epi8(c, EACH16(X, i, 2)))
SN_INLINE void vb_store3(uint8_t *p, vb a, vb b, vb c)
{
    vb_store(p, OF3(JOIN, 0, a, b, c));
    vb_store(p + 16, OF3(JOIN, 1, a, b, c));
    vb_store(p + 32, OF3(JOIN, 2, a, b, c));
}
SN_INLINE void vb_load3(vb v[3], const uint8_t *p)
{
    const vb a = vb_load(p), b = vb_load(p + 16), c = vb_load(p + 32);
    v[0] = OF3(APART, 0, a, b, c);
    v[1] = OF3(APART, 1, a, b, c);
    v[2] = OF3(APART, 2, a, b, c);
}
#undef OF3
#undef APART
#undef JOIN
#undef EACH16

#include "kernels/turn.tmpl.h"
