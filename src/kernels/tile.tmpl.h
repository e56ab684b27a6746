/* SPDX-License-Identifier: Apache-2.0 */
/* The tile kernel (sn_f32_tile) in the vocabulary of simd_<isa>.h: P pixels × Q channel blocks stay
 * in registers while all taps and input channels stream by; each input element is broadcast once
 * and meets Q weight vectors. Written once, included by conv_<isa>.c after the vocabulary.
 *
 * Sizes: P*Q*SN_BV accumulators + Q*SN_BV weights + 1 broadcast must fit SN_REGS. Small tiles would
 * wait for the latency of their few accumulators, so they keep two sets (even and odd channels). */
#include <stdbool.h>

#include "kernels/kernels.h"

#if SONDE_FEW_TILES
#define SN_TILES_1 SN_FEW_TILES_1
#define SN_TILES_2 SN_FEW_TILES_2
#define SN_TILES_3 SN_FEW_TILES_3
#define SN_TILES_4 SN_FEW_TILES_4
#elif SN_BLOCK == 16
#define SN_TILES_1 SN_TILES16_1
#define SN_TILES_2 SN_TILES16_2
#define SN_TILES_3 SN_TILES16_3
#define SN_TILES_4 SN_TILES16_4
#else
#define SN_TILES_1 SN_TILES8_1
#define SN_TILES_2 SN_TILES8_2
#define SN_TILES_3 SN_TILES8_3
#define SN_TILES_4 SN_TILES8_4
#endif
#define SN_TILES(X) SN_TILES_1(X) SN_TILES_2(X) SN_TILES_3(X) SN_TILES_4(X)

enum {
    TILE_FIRST = 1, /* the tile holds pixel 0 of the run */
    TILE_LAST = 2,  /* the tile holds the last pixel */
    TILE_MAX_P = 28,
    TILE_MAX_ACC = 28,
    TILE_W_AHEAD = 8,  /* channels: how far weights are fetched into the first-level cache */
    SN_LINE = 16,      /* floats of a cache line */
    TILE_FEW = 8,      /* input channels */
    TILE_MIN_ACC = 10, /* accumulators that hide the latency of an FMA at two a cycle */
    /* Few channels of one short vector each: a loop over them would cost as much as they do, so a
     * whole block is straight code. */
    TILE_SHORT = SN_BLOCK < SN_LINE && SN_BV == 1,
};

/* Sets of accumulators: two for a small tile, if there are registers for them. */
#define TILE_SETS(P, QV) ((P) * (QV) < TILE_MIN_ACC && 2 * (P) * (QV) + (QV) + 1 <= SN_REGS ? 2 : 1)

/* What comes next: each input channel fetches a line of pixels and at least a block of weights.
 * Without this every new tile waits for its pixels, and every new panel for its weights. */
typedef struct tile_next {
    const float *w, *x;
} tile_next;

SN_INLINE void tile_fetch(tile_next *next, const bool blocked)
{
    SN_FETCH_L2(next->w);
    next->w += SN_LINE;
    if (blocked) {
        SN_FETCH_L1(next->x);
        next->x += SN_LINE;
    }
}

/* Where pixels are read. A register for every distance of a pixel would be more than there are,
 * distances in memory cost a load each, and several pointers an addition each in every channel. But
 * an index is scaled by 1, 2, 4 or 8 for nothing: so the odd multiples of a pixel's size are kept,
 * and `reach` pixels share a pointer. Where distances are constants, or addresses have no scale,
 * all pixels have one. */
enum { TILE_ODD = (SN_REACH < 16 ? SN_REACH : 16) / 2 };
typedef struct tile_steps {
    ptrdiff_t odd[TILE_ODD];
} tile_steps;
typedef struct tile_pixels {
    const float *at[(TILE_MAX_P + SN_REACH - 1) / SN_REACH];
} tile_pixels;

SN_INLINE tile_steps tile_steps_of(ptrdiff_t x_pixel)
{
    tile_steps s;
    SN_UNROLL for (int i = 0; i < TILE_ODD; i++) s.odd[i] =
        (2 * i + 1) * x_pixel * (ptrdiff_t)sizeof(float);
    return s;
}

SN_INLINE tile_pixels tile_pixels_at(const float *x, ptrdiff_t x_pixel, const int P,
                                     const int reach)
{
    tile_pixels t = {{NULL}};
    SN_UNROLL for (int i = 0; i * reach < P; i++)
    {
        t.at[i] = x + i * reach * x_pixel;
        if (i > 0)
            __asm__("" : "+r"(t.at[i]));
    }
    return t;
}

SN_INLINE void tile_pixels_go(tile_pixels *t, ptrdiff_t by, const int P, const int reach)
{
    SN_UNROLL for (int i = 0; i * reach < P; i++) t->at[i] += by;
}

SN_INLINE sn_v tile_pixel(const tile_pixels *x, const tile_steps *s, ptrdiff_t at,
                          ptrdiff_t x_pixel, const int p, const int reach)
{
    const float *from = x->at[p / reach] + at;
    const int i = p % reach, shift = i ? __builtin_ctz((unsigned)i) : 0;
    if (reach >= TILE_MAX_P || i == 0)
        return v_bcast(from + i * x_pixel);
    return v_bcast_at(from, s->odd[i >> shift >> 1], shift);
}

/* One channel: acc[p] += x[p] * w for pixels from … to-1. `fetch`: its weights begin a line. */
SN_INLINE void tile_channel(sn_v *acc, const tile_pixels *x, const tile_steps *s, ptrdiff_t at,
                            const float *w, ptrdiff_t x_pixel, ptrdiff_t w_q, ptrdiff_t w_ic,
                            const int Q, const int from, const int to, const int reach,
                            const bool fetch)
{
    const int QV = Q * SN_BV;
    sn_v wv[4 * SN_BV];
    SN_UNROLL for (int i = 0; i < QV; i++) wv[i] = v_load(w + i / SN_BV * w_q + i % SN_BV * SN_VL);
    if (fetch)
        SN_UNROLL for (int i = 0; i < Q; i++) SN_FETCH_L1(w + i * w_q + TILE_W_AHEAD * w_ic);
    SN_UNROLL for (int p = from; p < to; p++)
    {
        sn_v b = tile_pixel(x, s, at, x_pixel, p, reach);
        SN_UNROLL for (int i = 0; i < QV; i++)
        {
            sn_v *a = &acc[p * QV + i];
            *a = v_fma(b, wv[i], *a);
        }
    }
}

/* acc[p] += x[p] * w over `channels`, for pixels from … to-1 of the tile. */
SN_INLINE void tile_channels(sn_v *acc, const float *x, const tile_steps *s, const float *w,
                             tile_next *next, size_t channels, ptrdiff_t x_pixel, ptrdiff_t x_ic,
                             ptrdiff_t w_q, ptrdiff_t w_ic, const int P, const int Q,
                             const int sets, const int from, const int to, const int reach,
                             const bool blocked)
{
    const bool pairs = sets > 1 || (TILE_SHORT && blocked);
    tile_pixels at = tile_pixels_at(x, x_pixel, P, reach);
    if (pairs) {
        for (; channels > 1; channels -= 2) {
            SN_UNROLL for (int i = 0; i < 2; i++) tile_channel(
                acc + i % sets * P * Q * SN_BV, &at, s, i * x_ic, w + i * w_ic, x_pixel, w_q, w_ic,
                Q, from, to, reach, i == 0 || !(TILE_SHORT && blocked));
            tile_fetch(next, blocked); /* once for two channels: they need few lines */
            tile_pixels_go(&at, 2 * x_ic, P, reach);
            w += 2 * w_ic;
        }
    }
    /* What comes next is as far from these weights in all channels: no more pointers to move. */
    const bool beside = blocked && SN_BLOCK == SN_LINE;
    const ptrdiff_t next_w = (const char *)next->w - (const char *)w;
    const ptrdiff_t next_x = (const char *)next->x - (const char *)w;
    SN_NO_UNROLL for (; channels > 0; channels--, w += w_ic) /* down to 0: one instruction less */
    {
        tile_channel(acc, &at, s, 0, w, x_pixel, w_q, w_ic, Q, from, to, reach, true);
        if (beside) {
            SN_FETCH_L2((const char *)w + next_w);
            SN_FETCH_L1((const char *)w + next_x);
        } else {
            tile_fetch(next, blocked);
        }
        tile_pixels_go(&at, x_ic, P, reach);
    }
    if (beside) {
        next->w = (const float *)(const void *)((const char *)w + next_w);
        next->x = (const float *)(const void *)((const char *)w + next_x);
    }
}

/* The same for a whole short block: straight code, and no line fetched twice. */
SN_INLINE void tile_block(sn_v *acc, const float *x, const tile_steps *s, const float *w,
                          tile_next *next, ptrdiff_t x_pixel, ptrdiff_t w_q, const int P,
                          const int Q, const int sets, const int reach)
{
    enum { LINE_CHANNELS = SN_LINE / SN_BLOCK };
    const tile_pixels at = tile_pixels_at(x, x_pixel, P, reach);
    SN_UNROLL for (int c = 0; c < SN_BLOCK; c++)
    {
        const bool line = c % LINE_CHANNELS == 0;
        tile_channel(acc + c % sets * P * Q * SN_BV, &at, s, c, w + c * SN_BLOCK, x_pixel, w_q,
                     SN_BLOCK, Q, 0, P, reach, line);
        if (line)
            SN_FETCH_L2(next->w + c * SN_BLOCK);
        if (c * SN_LINE < P * SN_BLOCK)
            SN_FETCH_L1(next->x + c * SN_LINE);
    }
    next->w += SN_BLOCK * SN_BLOCK;
    next->x += (P * SN_BLOCK + SN_LINE - 1) / SN_LINE * SN_LINE;
}

/* One tap for all pixels: short blocks follow each other with nothing but two additions between
 * them. Pixels are fetched two blocks ahead, those of the next tile by the last two blocks. */
SN_INLINE void tile_point(const sn_f32_tile *t, sn_v *acc, const float *x, const tile_steps *s,
                          const float *next_tile, tile_next *next, ptrdiff_t x_pixel, const int P,
                          const int Q, const int sets, const int reach)
{
    const ptrdiff_t x_block = t->x_block, w_block = t->w_block, w_q = t->w_q;
    const float *w = t->w;
    for (size_t left = t->ic_blocks; left > 0; left--) {
        next->x = left > 2 ? x + 2 * x_block : next_tile + (left < 2 ? x_block : 0);
        if (left > 1 || t->ic_last == SN_BLOCK)
            tile_block(acc, x, s, w, next, x_pixel, w_q, P, Q, sets, reach);
        else
            tile_channels(acc, x, s, w, next, t->ic_last, x_pixel, 1, w_q, SN_BLOCK, P, Q, sets, 0,
                          P, reach, true);
        x += x_block;
        w += w_block;
    }
}

/* The rare end: a partial last block. `from` holds P × Q blocks of sums without bias. */
static __attribute__((noinline)) void tile_finish_slow(const sn_f32_tile *t, size_t at,
                                                       const float *from, size_t P)
{
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    const size_t Q = t->blocks;
    for (size_t p = 0; p < P; p++) {
        const ptrdiff_t pixel = (ptrdiff_t)(at + p);
        for (size_t q = 0; q < Q; q++) {
            const size_t lanes = q + 1 == Q && t->lanes ? t->lanes : SN_BLOCK;
            for (size_t l = 0; l < lanes; l += SN_VL) {
                const size_t n = lanes - l < SN_VL ? lanes - l : SN_VL;
                float *y = t->y + pixel * t->y_pixel + (ptrdiff_t)q * t->y_q + l;
                const float *add[2] = {t->bias ? t->bias + q * SN_BLOCK + l : NULL,
                                       t->z ? t->z + pixel * t->z_pixel + (ptrdiff_t)q * t->z_q + l
                                            : NULL};
                sn_v v = v_load(from + (p * Q + q) * SN_BLOCK + l);
                for (int i = 0; i < 2; i++)
                    if (add[i])
                        v = v_add(v, n == SN_VL ? v_load(add[i]) : v_load_n(add[i], n));
                v = v_at_most(v_at_least(v, lo), hi);
                if (n == SN_VL)
                    v_store(y, v);
                else
                    v_store_n(y, v, n);
            }
        }
    }
}

/* Adds z, clips and stores. */
SN_INLINE void tile_finish(const sn_f32_tile *t, size_t at, sn_v *acc, const int P, const int Q)
{
    const int QV = Q * SN_BV;
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    float *y = t->y + (ptrdiff_t)at * t->y_pixel;
    const ptrdiff_t y_pixel = t->y_pixel, y_q = t->y_q;
    if (t->z) {
        const float *z = t->z + (ptrdiff_t)at * t->z_pixel;
        const ptrdiff_t z_pixel = t->z_pixel, z_q = t->z_q;
        SN_UNROLL for (int p = 0; p < P; p++) SN_UNROLL for (int i = 0; i < QV;
                                                             i++) acc[p * QV + i] =
            v_add(acc[p * QV + i], v_load(z + p * z_pixel + i / SN_BV * z_q + i % SN_BV * SN_VL));
    }
    SN_UNROLL for (int p = 0; p < P; p++) SN_UNROLL for (int i = 0; i < QV; i++)
        v_store(y + p * y_pixel + i / SN_BV * y_q + i % SN_BV * SN_VL,
                v_at_most(v_at_least(acc[p * QV + i], lo), hi));
}

/* Floats of the next weights that one tile fetches: a block for each input channel of all taps. */
SN_INLINE size_t tile_fetches(const sn_f32_tile *t, const bool taps)
{
    return SN_BLOCK *
           (taps ? ((t->ic_blocks - 1) * t->ic + t->ic_last) * t->kh * t->kw : t->ic_last);
}

/* All taps of a convolution; see tile for the parameters. */
SN_INLINE void tile_taps(const sn_f32_tile *t, sn_v *acc, const float *x, const tile_steps *s,
                         const float *next_tile, tile_next *next, unsigned edges, const int P,
                         const int Q, const int sets, const ptrdiff_t x_pixel, const ptrdiff_t x_ic,
                         const int reach, const bool borders)
{
    const size_t j0 = edges & TILE_FIRST ? t->first_kw : 0, kw = t->kw, kh = t->kh;
    const size_t j1 = edges & TILE_LAST ? t->last_kw : kw;
    const ptrdiff_t x_kw = t->x_kw, w_kw = t->w_kw, x_kh = t->x_kh, w_kh = t->w_kh, w_q = t->w_q;
    const ptrdiff_t x_wrap = t->x_block - (ptrdiff_t)(kh - 1) * x_kh;
    const ptrdiff_t w_wrap = t->w_block - (ptrdiff_t)(kh - 1) * w_kh;
    /* Pixels are fetched a row of taps ahead, with one tap two: soon enough for the
     * second-level cache, and not so early that they are gone from the first again. */
    const size_t lead = kh == 1 ? 2 : 1;
    const ptrdiff_t further = kh == 1 ? x_wrap : 0;
    const float *w = t->w;
    for (size_t left = t->ic_blocks * kh, i = 0; left > 0; left--) {
        const size_t channels = left <= kh ? t->ic_last : t->ic;
        const bool whole = TILE_SHORT && borders && channels == SN_BLOCK;
        const float *xj = x, *wj = w;
        const bool wrap = ++i == kh;
        size_t j = 0;
        i = wrap ? 0 : i;
        x += wrap ? x_wrap : x_kh;
        w += wrap ? w_wrap : w_kh;
        next->x = left > lead ? x + further : next_tile + (left < lead ? further : 0);
#define TILE_TAP(from, to)                                                                         \
    tile_channels(acc, xj, s, wj, next, channels, x_pixel, x_ic, w_q, SN_BLOCK, P, Q, sets, from,  \
                  to, reach, borders);                                                             \
    xj += x_kw;                                                                                    \
    wj += w_kw
        if (borders && P > 1) {
            for (; j < j0; j++) {
                TILE_TAP(1, P);
            }
        } else {
            j = j0;
            xj += (ptrdiff_t)j0 * x_kw;
            wj += (ptrdiff_t)j0 * w_kw;
        }
        for (; whole && j < j1; j++) {
            tile_block(acc, xj, s, wj, next, x_pixel, w_q, P, Q, sets, reach);
            xj += x_kw;
            wj += w_kw;
        }
        for (; j < j1; j++) {
            TILE_TAP(0, P);
        }
        for (; borders && P > 1 && j < kw; j++) {
            TILE_TAP(0, P - 1);
        }
#undef TILE_TAP
    }
}

/* The same of few input channels, which would be too short a loop: channels, taps of a row and rows
 * are all alike, and the longest of the three is the inner loop. */
SN_INLINE void tile_few(const sn_f32_tile *t, sn_v *acc, const float *x, const tile_steps *s,
                        tile_next *next, unsigned edges, const int P, const int Q, const int sets,
                        const ptrdiff_t x_pixel, const ptrdiff_t x_ic, const int reach)
{
    const size_t from = edges & TILE_FIRST ? t->first_kw : 0;
    const size_t to = edges & TILE_LAST ? t->last_kw : t->kw;
    const size_t n[3] = {t->ic_last, to > from ? to - from : 0, t->kh};
    const ptrdiff_t x_by[3] = {x_ic, t->x_kw, t->x_kh}, w_by[3] = {SN_BLOCK, t->w_kw, t->w_kh};
    const int in = n[1] > n[0] ? (n[2] > n[1] ? 2 : 1) : n[2] > n[0] ? 2 : 0;
    const int a = in == 0, b = in == 2 ? 1 : 2;
    const float *w = t->w + (ptrdiff_t)from * t->w_kw;
    x += (ptrdiff_t)from * t->x_kw;
    for (size_t i = 0; i < n[b]; i++, x += x_by[b], w += w_by[b])
        for (size_t j = 0; j < n[a]; j++)
            tile_channels(acc, x + (ptrdiff_t)j * x_by[a], s, w + (ptrdiff_t)j * w_by[a], next,
                          n[in], x_pixel, x_by[in], t->w_q, w_by[in], P, Q, sets, 0, P, reach,
                          false);
}

/* Sums meet what they are added to, and the lines they replace, in the first-level cache: both come
 * while the tile is computed. */
SN_INLINE void tile_fetch_results(const sn_f32_tile *t, size_t at, const int P, const int Q)
{
    if (t->z) {
        const float *z = t->z + (ptrdiff_t)at * t->z_pixel;
        const ptrdiff_t z_pixel = t->z_pixel, z_q = t->z_q;
        SN_UNROLL for (int q = 0; q < Q; q++) SN_UNROLL for (int p = 0; p < P; p++)
            SN_FETCH_L1(z + q * z_q + p * z_pixel);
    } else {
        const float *y = t->y + (ptrdiff_t)at * t->y_pixel;
        const ptrdiff_t y_pixel = t->y_pixel, y_q = t->y_q;
        SN_UNROLL for (int q = 0; q < Q; q++) SN_UNROLL for (int p = 0; p < P; p++)
            SN_FETCH_WRITE(y + q * y_q + p * y_pixel);
    }
}

/* The whole tile. `taps` false: a matrix product, one tap and one ic block. `borders` true: the
 * tile's first and last pixel may miss taps; otherwise only a tile of one pixel may. */
SN_INLINE void tile(const sn_f32_tile *t, size_t at, unsigned edges, const int P, const int Q,
                    const ptrdiff_t x_pixel, const ptrdiff_t x_ic, const int reach, const bool taps,
                    const bool borders)
{
    const int QV = Q * SN_BV, sets = TILE_SETS(P, QV);
    const bool slow = t->lanes != 0;
    sn_v acc[2 * TILE_MAX_ACC];
    if (t->bias && !slow) {
        SN_UNROLL for (int i = 0; i < QV; i++)
        {
            sn_v b = v_load(t->bias + i * SN_VL);
            SN_UNROLL for (int p = 0; p < P; p++) acc[p * QV + i] = b;
        }
    } else {
        SN_UNROLL for (int i = 0; i < P * QV; i++) acc[i] = v_zero();
    }
    if (sets > 1)
        SN_UNROLL for (int i = P * QV; i < 2 * P * QV; i++) acc[i] = v_zero();

    tile_fetch_results(t, at, P, Q);
    const float *x = t->x + (ptrdiff_t)at * x_pixel;
    const tile_steps s = tile_steps_of(x_pixel);
    const float *next_tile =
        x + (edges & TILE_LAST ? t->x_next - (ptrdiff_t)at * x_pixel : P * x_pixel);
    /* Tile k of the run goes on where tile k-1 stopped, supposing that all are of this size.
     * Without anything to fetch the weights just used are asked for, which costs next to nothing.
     */
    tile_next next = {t->w_next ? t->w_next + at / (unsigned)P * tile_fetches(t, taps) : t->w, x};
    if (!taps)
        tile_channels(acc, x, &s, t->w, &next, t->ic_last, x_pixel, x_ic, t->w_q, t->w_ic, P, Q,
                      sets, 0, P, reach, false);
    else if (!borders && t->ic_blocks == 1 && t->ic_last < TILE_FEW)
        tile_few(t, acc, x, &s, &next, edges, P, Q, sets, x_pixel, x_ic, reach);
    else if (TILE_SHORT && borders && t->kh * t->kw == 1 && t->first_kw == 0 && t->last_kw == 1 &&
             t->ic == SN_BLOCK)
        tile_point(t, acc, x, &s, next_tile, &next, x_pixel, P, Q, sets, reach);
    else
        tile_taps(t, acc, x, &s, next_tile, &next, edges, P, Q, sets, x_pixel, x_ic, reach,
                  borders);
    if (sets > 1)
        SN_UNROLL for (int i = 0; i < P * QV; i++) acc[i] = v_add(acc[i], acc[P * QV + i]);
    if (slow) {
        float sums[TILE_MAX_ACC * SN_VL];
        SN_UNROLL for (int i = 0; i < P * QV; i++) v_store(sums + i * SN_VL, acc[i]);
        tile_finish_slow(t, at, sums, (size_t)P);
        return;
    }
    tile_finish(t, at, acc, P, Q);
}

typedef void tile_fn(const sn_f32_tile *t, size_t at, unsigned edges);

/* How many of `left` pixels the next tile takes: as few tiles as possible, of even size. Never more
 * than are left, whatever sizes exist (1 always does). */
static inline unsigned tile_pick(size_t left, uint32_t mask)
{
    const unsigned max = 31u - (unsigned)__builtin_clz(mask);
    const size_t tiles = (left + max - 1) / max;
    const unsigned even = (unsigned)((left + tiles - 1) / tiles);
    const unsigned n = even + (unsigned)__builtin_ctz(mask >> even);
    return n <= left ? n : 31u - (unsigned)__builtin_clz(mask & ((1u << left) - 1u));
}

/* Walks pixels at … end-1 of the run. */
static inline void tile_walk(const sn_f32_tile *t, size_t at, size_t end,
                             tile_fn *const table[5][TILE_MAX_P + 1])
{
    static const uint32_t masks[5] = {1, 0 SN_TILES_1(SN_TILE_BIT), 0 SN_TILES_2(SN_TILE_BIT),
                                      0 SN_TILES_3(SN_TILE_BIT), 0 SN_TILES_4(SN_TILE_BIT)};
    while (at < end) {
        unsigned n = tile_pick(end - at, masks[t->blocks]);
        table[t->blocks][n](t, at,
                            (at == 0 ? TILE_FIRST : 0u) | (at + n == t->pixels ? TILE_LAST : 0u));
        at += n;
    }
}

/* One slot: an instance per tile size, named by TILE_NAME(P, Q). */
#define TILE_ENTRY(P, Q) [Q][P] = TILE_NAME(P, Q),
#define TILE_TABLE                                                                                 \
    {                                                                                              \
        SN_TILES(TILE_ENTRY)                                                                       \
    }
