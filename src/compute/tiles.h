/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers that call kernels with tiles of bf16 or bytes share: the state of their threads
 * (tiles_enter, tiles_leave), for sn_pool_run_hooked, and f32 as steps of bf16. */
#ifndef SN_COMPUTE_TILES_H
#define SN_COMPUTE_TILES_H

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "kernels/kernels.h"

static inline void sn_tiles_hook_enter(void *k)
{
    ((const sn_kernels *)k)->tiles_enter();
}

static inline void sn_tiles_hook_leave(void *k)
{
    ((const sn_kernels *)k)->tiles_leave();
}

static inline sn_thread_hook sn_tiles_hook(const sn_kernels *k)
{
    return (sn_thread_hook){sn_tiles_hook_enter, sn_tiles_hook_leave, (void *)(uintptr_t)k};
}

enum {
    SN_STEP_HALVES = SN_ROWS_STEP / 2,                /* numbers of 16 bits in a step */
    SN_TILE_FLOATS = SN_ROWS_WEIGHTS / sizeof(float), /* of a step of 16 columns, as a size */
    SN_AGAIN_ROWS = 3 * SN_ROWS_GROUP /* with more, weights come from the cache most of the time */
};

/* From row to row of bf16 of n numbers each, with zeros up to a whole step; one at least. Rows that
 * are a power of two apart would share lines of the cache, so that they push each other out. */
static inline int64_t sn_tiles_row_bytes(int64_t n)
{
    enum { FEW = 4 };
    const int64_t steps = n > 0 ? (n - 1) / SN_STEP_HALVES + 1 : 1;
    return (steps % FEW ? steps : steps + 1) * SN_ROWS_STEP;
}

/* n numbers in bf16, and zeros up to a whole step; what rounding took away goes to `rest`, if it is
 * not NULL. */
static inline void sn_tiles_round(const sn_kernels *k, void *to, void *rest, const float *from,
                                  size_t n)
{
    const size_t steps = n / SN_STEP_HALVES, left = n % SN_STEP_HALVES;
    sn_bf16_pairs t = {.a = from,
                       .b = steps ? from + SN_PAIR_BLOCK : NULL,
                       .y = to,
                       .rest = rest,
                       .n = steps,
                       .step = SN_STEP_HALVES};
    if (steps > 0)
        k->bf16_pairs(&t);
    if (left > 0) {
        float last[SN_STEP_HALVES] = {0};
        memcpy(last, from + n - left, left * sizeof *last);
        t.a = last;
        t.b = last + SN_PAIR_BLOCK;
        t.y += n - left;
        t.rest = rest ? t.rest + n - left : NULL;
        t.n = 1;
        k->bf16_pairs(&t);
    }
}

/* The right side of a product, n numbers of each column, in the order of weights:
 *
 *   [panel of 16 columns][step of 32 numbers][32 / 2][16 columns][2]
 *
 * with zeros behind the last column and the last number. Turned: column c is row c of x, x_row
 * floats apart; plain: it is column c. Turning takes kernels whose blocks are 16, as they are where
 * there are tiles. */
void sn_tiles_pack_turned(const sn_kernels *k, float *dst, const float *x, ptrdiff_t x_row,
                          int64_t columns, int64_t n);
void sn_tiles_pack_plain(const sn_kernels *k, float *dst, const float *x, ptrdiff_t x_row,
                         int64_t columns, int64_t n);

/* The left side of a product in rows of bf16, to_row bytes apart, each n numbers and zeros up to a
 * whole step: row r is column r of x. The same kernels. */
void sn_tiles_round_turned(const sn_kernels *k, uint8_t *to, ptrdiff_t to_row, const float *x,
                           ptrdiff_t x_row, int64_t rows, int64_t n);

/* Products in f16: an f16 is the sum of two bf16, h + l, and so is an f32 to 16 bits. A step of
 * weights becomes three, and x reads the step of its own high part twice, then that of its low
 * part:
 *
 *   x_h · w_h + x_h · w_l + x_l · w_h
 *
 * What is left out, x_l · w_l, is below the 16th bit. An infinity is all in the low part: in the
 * high one it would meet a w_l of zero. (Two of them that meet are left out, and give NaN.) */
enum { SN_SPLIT_STEPS = 3 };

static inline void sn_tiles_split_weights(const sn_kernels *k, void *to, const void *from,
                                          int64_t steps)
{
    enum { N = SN_ROWS_WEIGHTS / sizeof(uint16_t) };
    uint16_t *y = (uint16_t *)to;
    const uint16_t *x = (const uint16_t *)from;
    for (int64_t s = 0; s < steps; s++, x += N, y += SN_SPLIT_STEPS * N) {
        k->f16_split(y, y + N, x, N);
        memcpy(y + 2 * N, y, SN_ROWS_WEIGHTS);
    }
}

/* Products in f32 with tiles of f16: an f32 is the sum of two f16, to 22 bits and a sign, if it is
 * not too small for them. So numbers that are multiplied with the same ones, a row of x or a panel
 * of weights, are first multiplied by a power of two that makes the largest one HALVES_TOP bits
 * long; what is then below the last bit of an f16 is 2^-39 of that one. The three products are
 * those of above, each exact: what is left out, and what the low parts are rounded by, is below
 * 2^-22 of the product. Infinities are all in the low part, too. */
static inline float sn_halves_scale(float top, float *back)
{
    enum { HALVES_TOP = 15, MOST = 126 };
    int exponent = 0;
    if (top > 0)
        (void)frexpf(top, &exponent);
    const int by = HALVES_TOP - exponent < MOST ? HALVES_TOP - exponent : MOST;
    *back = ldexpf(1.0f, -by);
    return ldexpf(1.0f, by);
}

/* Which parts kernel step s multiplies: low · high, high · high, high · low, so that every step but
 * the first has one side of the step before. */
static inline bool sn_halves_low_x(int64_t s)
{
    return s % SN_SPLIT_STEPS == 0;
}
static inline bool sn_halves_low_w(int64_t s)
{
    return s % SN_SPLIT_STEPS == 2;
}

/* n pixels of two blocks of channels, or of one (b NULL: zeros), in halves: steps of high parts,
 * and those of low ones `low` bytes behind. */
void sn_halves_pixels(const sn_kernels *k, uint8_t *to, int64_t low, const float *a, const float *b,
                      int64_t n, float scale);

/* A step of weights in halves from its numbers, [32][16 columns]. */
void sn_halves_tile(const sn_kernels *k, void *to, const float *numbers, float scale);

/* How many of a group's rows are finished at a time, so that a kernel that calls so often has them
 * all done; not too few, as every call costs something. */
static inline int64_t sn_beside_rows(int64_t rows, size_t calls)
{
    enum { FEW = 8 };
    const int64_t n = rows / (calls > 1 ? (int64_t)calls - 1 : 1) + 1;
    return n > FEW ? n : FEW;
}

#endif
