/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with AVX-VNNI: the instructions of AVX-512 VNNI on registers of AVX2, for
 * processors without AVX-512. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/simd_common.h"

enum { Q8_BLOCK = 8, Q8_SUMS = 1, Q8_WS = 1 };
typedef __m256i q8_v, q8_a;

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
SN_INLINE q8_v q8_zero(void)
{
    return _mm256_setzero_si256();
}
SN_INLINE q8_a q8_bytes(uint32_t word)
{
    return _mm256_set1_epi32((int)word);
}
SN_INLINE q8_a q8_flip(q8_a a, q8_a flip)
{
    return _mm256_xor_si256(a, flip);
}
SN_INLINE void q8_weights(q8_v *w, const int8_t *from)
{
    *w = load32(from);
}
SN_INLINE void q8_dot(q8_v *sums, q8_a a, const q8_v *w)
{
    *sums = _mm256_dpbusd_avx_epi32(*sums, a, *w);
}
SN_INLINE void q8_store(int32_t *y, const q8_v *sums, const int32_t *start)
{
    store32(y, _mm256_add_epi32(*sums, load32(start)));
}

#if SONDE_FEW_TILES
#define Q8_TILES(X) SN_FEW_TILES_1(X) SN_FEW_TILES_2(X)
#else
#define Q8_TILES(X) SN_DOT_TILES8_1(X) SN_DOT_TILES8_2(X)
#endif
#include "kernels/q8_tile.tmpl.h"

void sn_u8_tile_avxvnni(const sn_q8_tile *t)
{
    q8_walk(t);
}

/* ------------------------------------------------------------------ what depthwise ones share */
/* 32 channels at a time. Interleaving the bytes of four registers leaves channels 4j … 4j+3 of each
 * half in the j-th of four results: the order of quads (SN_QUAD_AT), of which 32 channels are every
 * second 32 bytes. Sums have that order, too. */
enum { LANES = 32, HALF = 16 };

SN_INLINE void interleave(__m256i *out, const __m256i *v)
{
    const __m256i lo = _mm256_unpacklo_epi8(v[0], v[1]), hi = _mm256_unpackhi_epi8(v[0], v[1]);
    const __m256i lo2 = _mm256_unpacklo_epi8(v[2], v[3]), hi2 = _mm256_unpackhi_epi8(v[2], v[3]);
    out[0] = _mm256_unpacklo_epi16(lo, lo2);
    out[1] = _mm256_unpackhi_epi16(lo, lo2);
    out[2] = _mm256_unpacklo_epi16(hi, hi2);
    out[3] = _mm256_unpackhi_epi16(hi, hi2);
}

/* n of 32 bytes, and zeros. */
SN_INLINE __m256i load_some(const uint8_t *x, size_t n)
{
    if (n >= LANES)
        return load32(x);
    if (n == HALF) /* many networks have a multiple of 16 channels */
        return _mm256_zextsi128_si256(load16(x));
    uint8_t part[LANES] = {0};
    memcpy(part, x, n);
    return load32(part);
}

/* 32 sums from the order of quads to that of channels. */
SN_INLINE void put_in_order(__m256i *v)
{
    const __m256i a = v[0], b = v[1], c = v[2], d = v[3];
    v[0] = _mm256_permute2x128_si256(a, b, 0x20);
    v[1] = _mm256_permute2x128_si256(c, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, b, 0x31);
    v[3] = _mm256_permute2x128_si256(c, d, 0x31);
}

/* ------------------------------------------------------------------ depthwise */
/* Rows `row` … row+P-1 of channels `first` … first+n-1: one or two blocks of weights. */
SN_INLINE void depthwise_rows(const sn_q8_tile *t, size_t row, size_t first, size_t n, const int P)
{
    enum { KR = Q8_KR };
    const size_t groups = (t->taps + KR - 1) / KR;
    const __m256i flip = _mm256_set1_epi8((char)t->flip);
    const int8_t *w = t->w + first * groups * KR;
    const int8_t *second = n > HALF ? w + HALF * groups * KR : w;
    __m256i sums[2 * 4];
    SN_UNROLL for (int i = 0; i < 4 * P; i++) sums[i] = q8_zero();
    for (size_t g = 0; g < groups; g++, w += HALF * KR, second += HALF * KR)
        SN_UNROLL for (int p = 0; p < P; p++)
        {
            __m256i v[KR];
            SN_UNROLL for (size_t i = 0; i < KR; i++)
            {
                const size_t tap = g * KR + i < t->taps ? g * KR + i : t->taps - 1;
                const uint8_t *x = t->x[tap * t->rows + row + (size_t)p] + t->x_at + first;
                v[i] = _mm256_xor_si256(load_some(x, n), flip);
            }
            interleave(v, v);
            SN_UNROLL for (int j = 0; j < 4; j++)
            {
                const __m256i wv =
                    _mm256_set_m128i(load16(second + j * HALF), load16(w + j * HALF));
                sums[4 * p + j] = _mm256_dpbusd_avx_epi32(sums[4 * p + j], v[j], wv);
            }
        }
    SN_UNROLL for (int p = 0; p < P; p++)
    {
        int32_t *y = t->y + (ptrdiff_t)(row + (size_t)p) * t->y_row + (ptrdiff_t)first;
        int32_t part[LANES];
        put_in_order(sums + 4 * p);
        for (size_t i = 0; i < 4 && i * Q8_BLOCK < n; i++)
            q8_store((n < LANES ? part : y) + i * Q8_BLOCK, sums + 4 * (size_t)p + i,
                     t->start + first + i * Q8_BLOCK);
        if (n < LANES)
            memcpy(y, part, n * sizeof *y);
    }
}

void sn_u8_depthwise_avxvnni(const sn_q8_tile *t)
{
    for (size_t c = 0; c < t->channels; c += LANES) {
        const size_t n = t->channels - c < LANES ? t->channels - c : LANES;
        size_t row = 0;
        for (; row + 2 <= t->rows; row += 2)
            depthwise_rows(t, row, c, n, 2);
        for (; row < t->rows; row++)
            depthwise_rows(t, row, c, n, 1);
    }
}

/* ------------------------------------------------------------------ depthwise by quads */
enum { J = 2 * LANES }; /* bytes from the j-th part of a quad to the next */

SN_INLINE __m256i quad_pixel(const sn_quads_args *t, size_t i, size_t first, size_t n, __m256i flip)
{
    const size_t pixel = i - t->before;
    const uint8_t *x = pixel < t->there ? t->x + (ptrdiff_t)pixel * t->x_pixel : t->outside;
    return _mm256_xor_si256(load_some(x + first, n), flip);
}

/* Channels first … first+n-1, and zeros for the rest of 32. */
SN_INLINE void quads_of(const sn_quads_args *t, size_t first, size_t n)
{
    uint8_t flips[LANES] = {0};
    memset(flips, t->flip, n);
    const __m256i flip = load32(flips);
    uint8_t *y = t->y + first;
    __m256i v[4];
    v[2] = quad_pixel(t, 0, first, n, flip);
    v[3] = quad_pixel(t, 1, first, n, flip);
    for (size_t p = 0; p < t->pairs; p++, y += SN_QUAD_BYTES) {
        __m256i out[4];
        v[0] = v[2];
        v[1] = v[3];
        v[2] = quad_pixel(t, 2 * p + 2, first, n, flip);
        v[3] = quad_pixel(t, 2 * p + 3, first, n, flip);
        interleave(out, v);
        SN_UNROLL for (int j = 0; j < 4; j++) store32(y + j * J, out[j]);
    }
}

void sn_u8_quads_avxvnni(const sn_quads_args *t)
{
    for (size_t first = 0; first < SN_QUAD_CHANNELS; first += LANES) {
        const size_t left = t->channels > first ? t->channels - first : 0;
        if (left >= LANES)
            quads_of(t, first, LANES);
        else if (left == HALF)
            quads_of(t, first, HALF);
        else
            quads_of(t, first, left);
    }
}

/* How 32 sums become results. */
typedef struct quad_result {
    __m256i start[4], zero, lo, hi;
    __m256 scale[4];
    size_t first, n; /* channels */
    bool is_signed;
} quad_result;

/* 32 numbers in the order of quads. */
SN_INLINE void load_turned(__m256i *to, const void *from)
{
    const int32_t *at = (const int32_t *)from;
    SN_UNROLL for (int j = 0; j < 4; j++) to[j] =
        _mm256_set_m128i(load16(at + HALF + 4 * j), load16(at + 4 * j));
}

SN_INLINE void store_quad_bytes(uint8_t *y, const __m256i *sums, const quad_result *q)
{
    __m256i v[4];
    SN_UNROLL for (int j = 0; j < 4; j++) v[j] =
        _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums[j]), q->scale[j]));
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), q->zero);
    const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), q->zero);
    __m256i bytes = q->is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    bytes = q->is_signed ? _mm256_min_epi8(_mm256_max_epi8(bytes, q->lo), q->hi)
                         : _mm256_min_epu8(_mm256_max_epu8(bytes, q->lo), q->hi);
    if (q->n >= LANES) {
        store32(y, bytes);
        return;
    }
    uint8_t part[LANES];
    store32(part, bytes);
    memcpy(y, part, q->n);
}

SN_INLINE void finish_quad(const sn_q8_depthwise_args *t, size_t r, __m256i *sums,
                           const quad_result *q)
{
    if (!t->sums) {
        store_quad_bytes(t->y + (ptrdiff_t)r * t->y_row + q->first, sums, q);
        return;
    }
    int32_t *y = t->sums + (ptrdiff_t)r * t->sums_row + q->first;
    put_in_order(sums);
    SN_UNROLL for (int j = 0; j < 4; j++) store32(y + j * Q8_BLOCK, sums[j]);
}

/* R results, r, r+step, …, whose first taps are all even pixels, or odd ones. Weights that are
 * loaded are used for all of them. */
SN_INLINE void quad_results(const sn_q8_depthwise_args *t, const quad_result *q, size_t r,
                            size_t step, const int8_t *w, const size_t runs, const size_t quads,
                            const size_t R)
{
    const uint8_t *x[2];
    __m256i sums[2 * 4];
    SN_UNROLL for (size_t i = 0; i < R; i++)
    {
        x[i] = t->x + (r + i * step) * t->stride / 2 * SN_QUAD_BYTES + q->first;
        SN_UNROLL for (size_t j = 0; j < 4; j++) sums[4 * i + j] = q->start[j];
    }
    for (size_t k = 0; k < runs; k++)
        for (size_t at = 0; at < quads; at++, w += SN_QUAD_BYTES) {
            const size_t quad = (size_t)t->at[k] + 2 * at * SN_QUAD_BYTES;
            SN_UNROLL for (size_t j = 0; j < 4; j++)
            {
                const __m256i wv = load32(w + j * J);
                SN_UNROLL for (size_t i = 0; i < R; i++) sums[4 * i + j] =
                    _mm256_dpbusd_avx_epi32(sums[4 * i + j], load32(x[i] + quad + j * J), wv);
            }
        }
    SN_UNROLL for (size_t i = 0; i < R; i++) finish_quad(t, r + i * step, sums + 4 * i, q);
}

/* Windows of three lines and up to three taps (four where all first taps are even) have loops of
 * known lengths. */
SN_INLINE void quad_some(const sn_q8_depthwise_args *t, const quad_result *q, size_t r, size_t step,
                         const int8_t *w, const size_t R)
{
    if (t->runs == 3 && t->quads == 1)
        quad_results(t, q, r, step, w, 3, 1, R);
    else
        quad_results(t, q, r, step, w, t->runs, t->quads, R);
}

/* All results of the channels of q. */
static void quad_walk(const sn_q8_depthwise_args *t, const quad_result *q)
{
    const size_t step = t->stride % 2 ? 2 : 1;
    for (size_t odd = 0; odd < step; odd++) {
        const int8_t *w = t->w + odd * t->runs * t->quads * SN_QUAD_BYTES + q->first;
        size_t r = odd;
        for (; r + step < t->rows; r += 2 * step)
            quad_some(t, q, r, step, w, 2);
        if (r < t->rows)
            quad_some(t, q, r, step, w, 1);
    }
}

void sn_u8_by_quads_avxvnni(const sn_q8_depthwise_args *t)
{
    for (size_t first = 0; first < SN_QUAD_CHANNELS; first += LANES) {
        const size_t left = t->channels > first ? t->channels - first : 0;
        if (!t->sums && left == 0)
            return;
        quad_result q = {.first = first,
                         .n = left < LANES ? left : LANES,
                         .is_signed = t->lo < 0 || t->zero < 0};
        load_turned(q.start, t->start + first);
        if (!t->sums) {
            __m256i scale[4];
            load_turned(scale, t->scale + first);
            SN_UNROLL for (int j = 0; j < 4; j++) q.scale[j] = _mm256_castsi256_ps(scale[j]);
            q.zero = _mm256_set1_epi16((short)t->zero);
            q.lo = _mm256_set1_epi8((char)(int)t->lo);
            q.hi = _mm256_set1_epi8((char)(int)t->hi);
        }
        quad_walk(t, &q);
    }
}
