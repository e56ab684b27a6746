/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of f32 that become the right side of products in bf16 while a program runs; see tiles.h.
 */
#include "compute/tiles.h"

#include "compute/split.h"

enum {
    STEP_FLOATS = SN_ROWS_STEP / sizeof(float),
    SOME_STEPS = 4 /* that are rounded at a time, on the stack */
};

void sn_tiles_pack_turned(const sn_kernels *k, float *dst, const float *x, ptrdiff_t x_row,
                          int64_t columns, int64_t n)
{
    const int64_t steps = sn_ceil_div(n, SN_STEP_HALVES);
    uint16_t some[SN_ROWS_TILE][SOME_STEPS * SN_STEP_HALVES];
    for (int64_t t = 0; t < columns; t += SN_ROWS_TILE) {
        const int64_t lanes = sn_min(SN_ROWS_TILE, columns - t);
        for (int64_t s = 0; s < steps; s += SOME_STEPS) {
            const int64_t m = sn_min(SOME_STEPS, steps - s), from = s * SN_STEP_HALVES;
            const sn_bf16_round rows = {.x = x + t * x_row + from,
                                        .y = some[0],
                                        .rows = (size_t)lanes,
                                        .n = (size_t)sn_min(m * SN_STEP_HALVES, n - from),
                                        .x_row = x_row,
                                        .y_row = SOME_STEPS * SN_STEP_HALVES};
            k->bf16_round(&rows);
            /* Pairs of numbers are as wide as floats: rows become lanes. */
            k->f32_block(dst, (const float *)(const void *)some[0], (size_t)(m * STEP_FLOATS),
                         (unsigned)lanes, SN_ROWS_TILE, SOME_STEPS * STEP_FLOATS);
            dst += m * SN_TILE_FLOATS;
        }
    }
}

void sn_tiles_pack_plain(const sn_kernels *k, float *dst, const float *x, ptrdiff_t x_row,
                         int64_t columns, int64_t n)
{
    const int64_t panel = sn_ceil_div(n, SN_STEP_HALVES) * SN_TILE_FLOATS;
    if (n % SN_STEP_HALVES != 0 || columns % SN_ROWS_TILE != 0)
        memset(dst, 0, (size_t)(sn_ceil_div(columns, SN_ROWS_TILE) * panel) * sizeof *dst);
    for (int64_t j = 0; j < n; j += 2)
        for (int64_t c = 0; c < columns; c += SN_ROWS_TILE) {
            const float *a = x + j * x_row + c;
            float *to = dst + c / SN_ROWS_TILE * panel + j / 2 * SN_ROWS_TILE;
            k->bf16_zip((uint16_t *)(void *)to, a, j + 1 < n ? a + x_row : NULL,
                        (size_t)sn_min(SN_ROWS_TILE, columns - c));
        }
}

void sn_tiles_round_turned(const sn_kernels *k, uint8_t *to, ptrdiff_t to_row, const float *x,
                           ptrdiff_t x_row, int64_t rows, int64_t n)
{
    float tile[SN_TILE_FLOATS], turned[SN_TILE_FLOATS];
    for (int64_t r = 0; r < rows; r += SN_ROWS_TILE, to += SN_ROWS_TILE * to_row) {
        const int64_t some = sn_min(SN_ROWS_TILE, rows - r);
        for (int64_t i = 0; i < n; i += SN_STEP_HALVES) {
            sn_tiles_pack_plain(k, tile, x + i * x_row + r, x_row, some,
                                sn_min(SN_STEP_HALVES, n - i));
            /* [pair of numbers][row] becomes [row][pair]. */
            k->f32_block(turned, tile, SN_ROWS_TILE, STEP_FLOATS, SN_ROWS_TILE, SN_ROWS_TILE);
            for (int64_t l = 0; l < some; l++)
                memcpy(to + l * to_row + i * (int64_t)sizeof(uint16_t), turned + l * STEP_FLOATS,
                       SN_ROWS_STEP);
        }
    }
}

void sn_halves_pixels(const sn_kernels *k, uint8_t *to, int64_t low, const float *a, const float *b,
                      int64_t n, float scale)
{
    enum { FEW = 32, ROW = FEW * SN_ROWS_TILE };
    for (int64_t at = 0, m; at < n; at += m, to += m * SN_ROWS_STEP) {
        uint16_t part[2][2][ROW]; /* high and low, of a and b */
        m = sn_min(FEW, n - at);
        const size_t numbers = (size_t)(m * SN_ROWS_TILE);
        k->f16_halves(part[0][0], part[1][0], a + at * SN_ROWS_TILE, numbers, scale);
        if (b)
            k->f16_halves(part[0][1], part[1][1], b + at * SN_ROWS_TILE, numbers, scale);
        for (int h = 0; h < 2; h++) {
            const sn_bf16_pairs t = {.a16 = part[h][0],
                                     .b16 = b ? part[h][1] : NULL,
                                     .y = (uint16_t *)(void *)(to + h * low),
                                     .n = (size_t)m,
                                     .step = SN_ROWS_TILE};
            k->bf16_pairs(&t);
        }
    }
}

void sn_halves_tile(const sn_kernels *k, void *to, const float *numbers, float scale)
{
    enum { KR = 2, N = SN_STEP_HALVES * SN_ROWS_TILE };
    uint16_t part[2][N];
    k->f16_halves(part[0], part[1], numbers, N, scale);
    for (int h = 0; h < 2; h++) { /* rows become neighbours, two by two */
        uint32_t *y = (uint32_t *)(void *)((uint8_t *)to + h * SN_ROWS_WEIGHTS);
        for (int i = 0; i < SN_STEP_HALVES; i += KR, y += SN_ROWS_TILE) {
            const uint16_t *a = part[h] + i * SN_ROWS_TILE, *b = a + SN_ROWS_TILE;
            for (int l = 0; l < SN_ROWS_TILE; l++)
                y[l] = a[l] | (uint32_t)b[l] << 16;
        }
    }
}
