/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with AVX2. Its own instruction for bytes saturates, so they become 16 bits wide
 * first: the sums are exact, like those of all other CPUs. */
#include <immintrin.h>
#include <stdint.h>

#include "kernels/simd_common.h"

/* A register holds two sums, of even and of odd pairs of channels, for each of four lanes. */
enum { Q8_BLOCK = 8, Q8_SUMS = 2, Q8_WS = 2 };
typedef __m256i q8_v;
typedef __m128i q8_a;

SN_INLINE q8_v q8_zero(void)
{
    return _mm256_setzero_si256();
}
SN_INLINE q8_a q8_bytes(uint32_t word)
{
    return _mm_set1_epi32((int)word);
}
SN_INLINE q8_a q8_flip(q8_a a, q8_a flip)
{
    return _mm_xor_si128(a, flip);
}
SN_INLINE __m128i load16(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}
SN_INLINE __m256i load32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
SN_INLINE void store32(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}
SN_INLINE void q8_weights(q8_v *w, const int8_t *from)
{
    w[0] = _mm256_cvtepi8_epi16(load16(from));
    w[1] = _mm256_cvtepi8_epi16(load16(from + 16));
}
SN_INLINE void q8_dot(q8_v *sums, q8_a a, const q8_v *w)
{
    const __m256i wide = _mm256_cvtepu8_epi16(a);
    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(wide, w[0]));
    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(wide, w[1]));
}
/* The two sums of each lane become one: lanes 0 … 3 from `a`, 4 … 7 from `b`. */
SN_INLINE __m256i join_pairs(__m256i a, __m256i b)
{
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xD8);
}
SN_INLINE void q8_store(int32_t *y, const q8_v *sums, const int32_t *start)
{
    store32(y, _mm256_add_epi32(join_pairs(sums[0], sums[1]), load32(start)));
}

#if SONDE_FEW_TILES
#define Q8_TILES(X) SN_FEW_TILES_1(X)
#else
#define Q8_TILES(X) SN_BYTE_TILES8_1(X)
#endif
#include "kernels/q8_tile.tmpl.h"

void sn_u8_tile_avx2(const sn_q8_tile *t)
{
    q8_walk(t);
}

/* ------------------------------------------------------------------ depthwise */
enum { LANES = 16 };

/* One row of channels `first` … first+n-1. */
static void depthwise_row(const sn_q8_tile *t, size_t row, size_t first, size_t n)
{
    enum { KR = Q8_KR };
    const size_t groups = (t->taps + KR - 1) / KR;
    const __m128i flip = _mm_set1_epi8((char)t->flip);
    const int8_t *w = t->w + first * groups * KR;
    __m256i sums[4] = {q8_zero(), q8_zero(), q8_zero(), q8_zero()}; /* of four channels each */
    for (size_t g = 0; g < groups; g++, w += LANES * KR) {
        __m128i v[KR];
        SN_UNROLL for (size_t i = 0; i < KR; i++)
        {
            const size_t tap = g * KR + i < t->taps ? g * KR + i : t->taps - 1;
            const uint8_t *x = t->x[tap * t->rows + row] + t->x_at + first;
            uint8_t part[LANES] = {0};
            if (n < LANES)
                memcpy(part, x, n);
            v[i] = _mm_xor_si128(load16(n < LANES ? part : x), flip);
        }
        const __m128i lo = _mm_unpacklo_epi8(v[0], v[1]), hi = _mm_unpackhi_epi8(v[0], v[1]),
                      lo2 = _mm_unpacklo_epi8(v[2], v[3]), hi2 = _mm_unpackhi_epi8(v[2], v[3]);
        const __m128i four[4] = {_mm_unpacklo_epi16(lo, lo2), _mm_unpackhi_epi16(lo, lo2),
                                 _mm_unpacklo_epi16(hi, hi2), _mm_unpackhi_epi16(hi, hi2)};
        SN_UNROLL for (int j = 0; j < 4; j++) sums[j] =
            _mm256_add_epi32(sums[j], _mm256_madd_epi16(_mm256_cvtepu8_epi16(four[j]),
                                                        _mm256_cvtepi8_epi16(load16(w + 16 * j))));
    }
    const int32_t *start = t->start + first;
    int32_t *y = t->y + (ptrdiff_t)row * t->y_row + (ptrdiff_t)first, part[LANES];
    int32_t *to = n < LANES ? part : y;
    store32(to, _mm256_add_epi32(join_pairs(sums[0], sums[1]), load32(start)));
    store32(to + 8, _mm256_add_epi32(join_pairs(sums[2], sums[3]), load32(start + 8)));
    if (n < LANES)
        memcpy(y, part, n * sizeof *y);
}

void sn_u8_depthwise_avx2(const sn_q8_tile *t)
{
    for (size_t c = 0; c < t->channels; c += LANES)
        for (size_t row = 0; row < t->rows; row++)
            depthwise_row(t, row, c, t->channels - c < LANES ? t->channels - c : LANES);
}
