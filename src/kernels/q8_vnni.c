/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with AVX-512 VNNI: four of an unsigned and a signed byte at a time. */
#include <immintrin.h>
#include <stdint.h>

#include "kernels/simd_common.h"

enum { Q8_BLOCK = 16, Q8_SUMS = 1, Q8_WS = 1 };
typedef __m512i q8_v, q8_a;

SN_INLINE q8_v q8_zero(void)
{
    return _mm512_setzero_si512();
}
SN_INLINE q8_a q8_bytes(uint32_t word)
{
    return _mm512_set1_epi32((int)word);
}
SN_INLINE q8_a q8_flip(q8_a a, q8_a flip)
{
    return _mm512_xor_si512(a, flip);
}
SN_INLINE void q8_weights(q8_v *w, const int8_t *from)
{
    *w = _mm512_loadu_si512(from);
}
SN_INLINE void q8_dot(q8_v *sums, q8_a a, const q8_v *w)
{
    *sums = _mm512_dpbusd_epi32(*sums, a, *w);
}
SN_INLINE void q8_store(int32_t *y, const q8_v *sums, const int32_t *start)
{
    _mm512_storeu_si512(y, _mm512_add_epi32(*sums, _mm512_loadu_si512(start)));
}

#if SONDE_FEW_TILES
#define Q8_TILES(X) SN_FEW_TILES_1(X) SN_FEW_TILES_2(X) SN_FEW_TILES_3(X) SN_FEW_TILES_4(X)
#else
#define Q8_TILES(X)                                                                                \
    SN_BYTE_TILES16_1(X) SN_BYTE_TILES16_2(X) SN_BYTE_TILES16_3(X) SN_BYTE_TILES16_4(X)
#endif
#include "kernels/q8_tile.tmpl.h"

void sn_u8_tile_vnni(const sn_q8_tile *t)
{
    q8_walk(t);
}

/* ------------------------------------------------------------------ depthwise */
/* 64 channels at a time: the bytes of four taps are interleaved, which within each quarter of a
 * register leaves channels 4j … 4j+3 in the j-th of four results. Weights are brought into that
 * order, and sums back out of it. */
enum { LANES = 64, QUARTER = 16 };

/* out[i] = quarter i of in[0], in[1], in[2], in[3]; in and out may be the same. */
SN_INLINE void turn_quarters(__m512i *out, const __m512i *in)
{
    const __m512i a = _mm512_shuffle_i32x4(in[0], in[1], 0x44),
                  b = _mm512_shuffle_i32x4(in[0], in[1], 0xEE),
                  c = _mm512_shuffle_i32x4(in[2], in[3], 0x44),
                  d = _mm512_shuffle_i32x4(in[2], in[3], 0xEE);
    out[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    out[1] = _mm512_shuffle_i32x4(a, c, 0xDD);
    out[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    out[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

/* Rows `row` … row+P-1 of channels `first` … first+n-1. */
SN_INLINE void depthwise_rows(const sn_q8_tile *t, size_t row, size_t first, size_t n, const int P)
{
    enum { KR = Q8_KR };
    const size_t groups = (t->taps + KR - 1) / KR, blocks = (n + QUARTER - 1) / QUARTER;
    const __mmask64 there = n >= LANES ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
    const __m512i flip = _mm512_set1_epi8((char)t->flip);
    const int8_t *w = t->w + first * groups * KR;
    __m512i sums[4 * 4];
    SN_UNROLL for (int i = 0; i < 4 * P; i++) sums[i] = _mm512_setzero_si512();
    for (size_t g = 0; g < groups; g++) {
        __m512i wv[4];
        for (size_t b = 0; b < 4; b++)
            wv[b] = b < blocks ? _mm512_loadu_si512(w + (b * groups + g) * QUARTER * KR)
                               : _mm512_setzero_si512();
        turn_quarters(wv, wv);
        SN_UNROLL for (int p = 0; p < P; p++)
        {
            __m512i v[KR];
            SN_UNROLL for (size_t i = 0; i < KR; i++)
            {
                const size_t tap = g * KR + i < t->taps ? g * KR + i : t->taps - 1;
                const uint8_t *x = t->x[tap * t->rows + row + (size_t)p] + t->x_at + first;
                v[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, x), flip);
            }
            const __m512i lo = _mm512_unpacklo_epi8(v[0], v[1]),
                          hi = _mm512_unpackhi_epi8(v[0], v[1]),
                          lo2 = _mm512_unpacklo_epi8(v[2], v[3]),
                          hi2 = _mm512_unpackhi_epi8(v[2], v[3]);
            __m512i *s = sums + 4 * p;
            s[0] = _mm512_dpbusd_epi32(s[0], _mm512_unpacklo_epi16(lo, lo2), wv[0]);
            s[1] = _mm512_dpbusd_epi32(s[1], _mm512_unpackhi_epi16(lo, lo2), wv[1]);
            s[2] = _mm512_dpbusd_epi32(s[2], _mm512_unpacklo_epi16(hi, hi2), wv[2]);
            s[3] = _mm512_dpbusd_epi32(s[3], _mm512_unpackhi_epi16(hi, hi2), wv[3]);
        }
    }
    SN_UNROLL for (int p = 0; p < P; p++)
    {
        int32_t *y = t->y + (ptrdiff_t)(row + (size_t)p) * t->y_row + (ptrdiff_t)first;
        turn_quarters(sums + 4 * p, sums + 4 * p);
        for (size_t b = 0; b < blocks; b++) {
            const size_t left = n - b * QUARTER;
            const __mmask16 mask = (__mmask16)(left >= QUARTER ? 0xFFFFu : (1u << left) - 1);
            _mm512_mask_storeu_epi32(
                y + b * QUARTER, mask,
                _mm512_add_epi32(sums[4 * (size_t)p + b],
                                 _mm512_loadu_si512(t->start + first + b * QUARTER)));
        }
    }
}

void sn_u8_depthwise_vnni(const sn_q8_tile *t)
{
    for (size_t c = 0; c < t->channels; c += LANES) {
        const size_t n = t->channels - c < LANES ? t->channels - c : LANES;
        size_t row = 0;
        for (; row + 4 <= t->rows; row += 4)
            depthwise_rows(t, row, c, n, 4);
        for (; row < t->rows; row++)
            depthwise_rows(t, row, c, n, 1);
    }
}

/* ------------------------------------------------------------------ depthwise by quads */
/* Interleaving the bytes of four registers leaves channels 4j … 4j+3 of each quarter in the j-th of
 * four results (SN_QUAD_AT). Sums have that order, too, until they are packed to bytes, which
 * brings them back. */
SN_INLINE void interleave(__m512i *out, const __m512i *v)
{
    const __m512i lo = _mm512_unpacklo_epi8(v[0], v[1]), hi = _mm512_unpackhi_epi8(v[0], v[1]);
    const __m512i lo2 = _mm512_unpacklo_epi8(v[2], v[3]), hi2 = _mm512_unpackhi_epi8(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi16(lo, lo2);
    out[1] = _mm512_unpackhi_epi16(lo, lo2);
    out[2] = _mm512_unpacklo_epi16(hi, hi2);
    out[3] = _mm512_unpackhi_epi16(hi, hi2);
}

SN_INLINE __m512i quad_pixel(const sn_quads_args *t, size_t i, __mmask64 channels, __m512i flip)
{
    const size_t pixel = i - t->before;
    const uint8_t *x = pixel < t->there ? t->x + (ptrdiff_t)pixel * t->x_pixel : t->outside;
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(channels, x), flip);
}

void sn_u8_quads_vnni(const sn_quads_args *t)
{
    const __mmask64 m = t->channels >= LANES ? ~(__mmask64)0 : ((__mmask64)1 << t->channels) - 1;
    const __m512i flip = _mm512_maskz_set1_epi8(m, (char)t->flip);
    __m512i v[4];
    v[2] = quad_pixel(t, 0, m, flip);
    v[3] = quad_pixel(t, 1, m, flip);
    for (size_t p = 0; p < t->pairs; p++) {
        __m512i out[4];
        v[0] = v[2];
        v[1] = v[3];
        v[2] = quad_pixel(t, 2 * p + 2, m, flip);
        v[3] = quad_pixel(t, 2 * p + 3, m, flip);
        interleave(out, v);
        SN_UNROLL for (int j = 0; j < 4; j++)
            _mm512_storeu_si512(t->y + p * SN_QUAD_BYTES + j * LANES, out[j]);
    }
}

typedef struct quad_result {
    __m512i start[4], zero, lo, hi;
    __m512 scale[4];
    __mmask64 there;
} quad_result;

/* 64 numbers in the order of quads. */
SN_INLINE void load_turned(__m512i *to, const void *from)
{
    SN_UNROLL for (int j = 0; j < 4; j++) to[j] =
        _mm512_loadu_si512((const int32_t *)from + j * QUARTER);
    turn_quarters(to, to);
}

SN_INLINE void store_quad_bytes(uint8_t *y, const __m512i *sums, const quad_result *q,
                                const bool is_signed)
{
    __m512i v[4];
    SN_UNROLL for (int j = 0; j < 4; j++) v[j] =
        _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sums[j]), q->scale[j]));
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), q->zero);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), q->zero);
    __m512i bytes = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    bytes = is_signed ? _mm512_min_epi8(_mm512_max_epi8(bytes, q->lo), q->hi)
                      : _mm512_min_epu8(_mm512_max_epu8(bytes, q->lo), q->hi);
    _mm512_mask_storeu_epi8(y, q->there, bytes);
}

SN_INLINE void finish_quad(const sn_q8_depthwise_args *t, size_t r, __m512i *sums,
                           const quad_result *q, const bool is_signed)
{
    if (!t->sums) {
        store_quad_bytes(t->y + (ptrdiff_t)r * t->y_row, sums, q, is_signed);
        return;
    }
    turn_quarters(sums, sums);
    SN_UNROLL for (int j = 0; j < 4; j++)
        _mm512_storeu_si512(t->sums + (ptrdiff_t)r * t->sums_row + j * QUARTER, sums[j]);
}

/* Four times 16 sums of a quad. */
SN_INLINE void add_quad(__m512i *sums, const uint8_t *x, const __m512i *w)
{
    SN_UNROLL for (int j = 0; j < 4; j++) sums[j] =
        _mm512_dpbusd_epi32(sums[j], _mm512_loadu_si512(x + j * LANES), w[j]);
}

SN_INLINE void load_quad(__m512i *w, const int8_t *from)
{
    SN_UNROLL for (int j = 0; j < 4; j++) w[j] = _mm512_loadu_si512(from + j * LANES);
}

/* Results whose first tap is an even pixel, or an odd one, of any window. */
SN_INLINE void quad_rows(const sn_q8_depthwise_args *t, const quad_result *q, size_t odd,
                         size_t step, const bool is_signed)
{
    const int8_t *first = t->w + odd * t->runs * t->quads * SN_QUAD_BYTES;
    for (size_t r = odd; r < t->rows; r += step) {
        const uint8_t *x = t->x + r * t->stride / 2 * SN_QUAD_BYTES;
        const int8_t *w = first;
        __m512i sums[4], wv[4];
        SN_UNROLL for (int j = 0; j < 4; j++) sums[j] = q->start[j];
        for (size_t k = 0; k < t->runs; k++)
            for (size_t i = 0; i < t->quads; i++, w += SN_QUAD_BYTES) {
                load_quad(wv, w);
                add_quad(sums, x + t->at[k] + 2 * i * SN_QUAD_BYTES, wv);
            }
        finish_quad(t, r, sums, q, is_signed);
    }
}

/* The same for three rows of up to three taps (four where all first taps are even): weights stay in
 * registers. */
SN_INLINE void quad_rows3(const sn_q8_depthwise_args *t, const quad_result *q, size_t odd,
                          size_t step, const bool is_signed)
{
    const int8_t *w = t->w + odd * 3 * SN_QUAD_BYTES;
    const ptrdiff_t at[] = {t->at[0], t->at[1], t->at[2]};
    __m512i wv[3 * 4];
    SN_UNROLL for (int k = 0; k < 3; k++) load_quad(wv + 4 * k, w + k * SN_QUAD_BYTES);
    for (size_t r = odd; r < t->rows; r += step) {
        const uint8_t *x = t->x + r * t->stride / 2 * SN_QUAD_BYTES;
        __m512i sums[4];
        SN_UNROLL for (int j = 0; j < 4; j++) sums[j] = q->start[j];
        SN_UNROLL for (int k = 0; k < 3; k++) add_quad(sums, x + at[k], wv + 4 * k);
        finish_quad(t, r, sums, q, is_signed);
    }
}

SN_INLINE void quad_walk(const sn_q8_depthwise_args *t, const quad_result *q, const bool is_signed)
{
    const size_t step = t->stride % 2 ? 2 : 1;
    for (size_t odd = 0; odd < step; odd++)
        if (t->runs == 3 && t->quads == 1)
            quad_rows3(t, q, odd, step, is_signed);
        else
            quad_rows(t, q, odd, step, is_signed);
}

void sn_u8_by_quads_vnni(const sn_q8_depthwise_args *t)
{
    quad_result q = {.there =
                         t->channels >= LANES ? ~(__mmask64)0 : ((__mmask64)1 << t->channels) - 1};
    load_turned(q.start, t->start);
    if (!t->sums) {
        __m512i scale[4];
        load_turned(scale, t->scale);
        SN_UNROLL for (int j = 0; j < 4; j++) q.scale[j] = _mm512_castsi512_ps(scale[j]);
        q.zero = _mm512_set1_epi16((short)t->zero);
        q.lo = _mm512_set1_epi8((char)(int)t->lo);
        q.hi = _mm512_set1_epi8((char)(int)t->hi);
    }
    if (t->lo < 0 || t->zero < 0)
        quad_walk(t, &q, true);
    else
        quad_walk(t, &q, false);
}
