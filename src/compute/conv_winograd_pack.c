/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights for Winograd's convolution: G·g·Gᵀ of every 3×3 filter, computed in double, as
 * [group][out block][position][in channels][block]. Input channels fill whole blocks; `arg` is the
 * number of groups, which are never merged. */
#include <string.h>

#include "compute/conv.h"
#include "compute/packs.h"

enum { MAX_N = 6 };

static const double g4[MAX_N][3] = {{0.25, 0, 0},
                                    {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                    {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                    {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                    {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                    {0, 0, 1}};
static const double g2[MAX_N][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

static bool wino_blocks(const int64_t *dims, int rank, int64_t groups, unsigned block,
                        sn_conv_blocks *b)
{
    return sn_conv_winograd_id(dims, rank, groups, block, 2) != SN_PACK_NONE &&
           sn_conv_blocks_of(dims, groups, block, false, b);
}

static bool wino_bytes(const int64_t *dims, int rank, int64_t groups, unsigned block, int m,
                       size_t *bytes)
{
    sn_conv_blocks b;
    size_t n;
    if (!wino_blocks(dims, rank, groups, block, &b) ||
        !sn_size_mul((size_t)(b.groups * b.out_blocks), (size_t)b.in_blocks, &n) ||
        !sn_size_mul(n, (size_t)((m + 2) * (m + 2)) * block * block * sizeof(float), bytes))
        return false;
    return *bytes <= PTRDIFF_MAX;
}

static size_t wino_units(const int64_t *dims, int rank, int64_t groups, unsigned block)
{
    sn_conv_blocks b;
    return wino_blocks(dims, rank, groups, block, &b) ? (size_t)(b.groups * b.out_blocks) : 0;
}

/* One filter, element `at` of src and the eight behind it: u = G·w·Gᵀ, position k at u[k * step].
 */
static void transform(float *u, size_t step, const void *src, int64_t at, const double (*g)[3],
                      int n)
{
    double half[MAX_N][3];
    float w[9];
    for (int k = 0; k < 9; k++)
        w[k] = sn_pack_f32(src, at + k);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 3; j++)
            half[i][j] =
                g[i][0] * (double)w[j] + g[i][1] * (double)w[3 + j] + g[i][2] * (double)w[6 + j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            u[(size_t)(i * n + j) * step] =
                (float)(half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2]);
}

/* One output block of one group. */
static void wino_pack(float *dst, const void *src, const int64_t *dims, int64_t groups,
                      unsigned block, int m, size_t unit)
{
    sn_conv_blocks b;
    if (!wino_blocks(dims, 4, groups, block, &b))
        return;
    const int n = m + 2, positions = n * n;
    const int64_t group = (int64_t)unit / b.out_blocks, ob = (int64_t)unit % b.out_blocks;
    const int64_t channels = b.in_blocks * block, o0 = group * b.out + ob * block;
    const int64_t lanes = b.out - ob * block < block ? b.out - ob * block : block;
    float line[MAX_N * MAX_N * 16];
    dst += (int64_t)unit * positions * channels * block;
    memset(line, 0, sizeof line);
    for (int64_t c = 0; c < channels; c++) {
        if (c == b.in)
            memset(line, 0, sizeof line);
        for (int64_t l = 0; c < b.in && l < lanes; l++)
            transform(line + l, block, src, ((o0 + l) * b.in + c) * 9, m == 4 ? g4 : g2, n);
        for (int k = 0; k < positions; k++)
            memcpy(dst + (k * channels + c) * block, line + (size_t)k * block,
                   block * sizeof(float));
    }
}

/* Output channels lie one after the other. */
static bool wino_source(const int64_t *dims, int rank, int64_t groups, unsigned block, size_t unit,
                        int64_t *first, int64_t *count)
{
    sn_conv_blocks b;
    if (!wino_blocks(dims, rank, groups, block, &b))
        return false;
    const int64_t group = (int64_t)unit / b.out_blocks, from = (int64_t)unit % b.out_blocks * block;
    *first = (group * b.out + from) * b.in * 9;
    *count = (b.out - from < block ? b.out - from : block) * b.in * 9;
    return true;
}

#define WINO_FORMAT(m, block)                                                                      \
    static bool wino##m##_##block##_bytes(const int64_t *dims, int rank, int64_t arg,              \
                                          size_t *bytes)                                           \
    {                                                                                              \
        return wino_bytes(dims, rank, arg, block, m, bytes);                                       \
    }                                                                                              \
    static size_t wino##m##_##block##_units(const int64_t *dims, int rank, int64_t arg)            \
    {                                                                                              \
        return wino_units(dims, rank, arg, block);                                                 \
    }                                                                                              \
    static void wino##m##_##block##_pack(void *dst, const void *src, const int64_t *dims,          \
                                         int rank, int64_t arg, size_t unit)                       \
    {                                                                                              \
        (void)rank;                                                                                \
        wino_pack(dst, src, dims, arg, block, m, unit);                                            \
    }                                                                                              \
    static bool wino##m##_##block##_source(const int64_t *dims, int rank, int64_t arg,             \
                                           size_t unit, int64_t *first, int64_t *count)            \
    {                                                                                              \
        return wino_source(dims, rank, arg, block, unit, first, count);                            \
    }                                                                                              \
    const sn_pack_format sn_pack_f32_wino##m##_##block = {                                         \
        "f32_winograd" #m "_" #block, wino##m##_##block##_bytes, wino##m##_##block##_units,        \
        wino##m##_##block##_pack, wino##m##_##block##_source};

WINO_FORMAT(4, 8)
WINO_FORMAT(4, 16)
WINO_FORMAT(2, 8)
WINO_FORMAT(2, 16)
