/* SPDX-License-Identifier: Apache-2.0 */
/* Packed right-hand matrices: panels of `block` columns, [matrix][panel][k][block], the last panel
 * filled with zeros. The source is [..., k, n], or [..., n, k] when `arg` (transposed) is 1. */
#include <string.h>

#include "compute/gemm.h"
#include "compute/packs.h"
#include "compute/split.h"

unsigned sn_gemm_pack_id(unsigned block)
{
    return block == 16 ? SN_PACK_F32_GEMM16 : SN_PACK_F32_GEMM8;
}

size_t sn_gemm_packed_floats(int64_t n, int64_t k, unsigned block)
{
    return ((size_t)n + block - 1) / block * block * (size_t)k;
}

static void shape(const int64_t *dims, int rank, int64_t trans, int64_t *n, int64_t *k)
{
    *n = trans ? dims[rank - 2] : dims[rank - 1];
    *k = trans ? dims[rank - 1] : dims[rank - 2];
}

static bool gemm_bytes(const int64_t *dims, int rank, int64_t trans, unsigned block, size_t *bytes)
{
    if (rank < 2)
        return false;
    int64_t n, k;
    shape(dims, rank, trans, &n, &k);
    if (n <= 0 || k <= 0 || n > INT64_MAX - 16)
        return false;
    size_t total = ((size_t)n + block - 1) / block * block;
    if (!sn_size_mul(total, (size_t)k, &total))
        return false;
    for (int i = 0; i < rank - 2; i++)
        if (dims[i] <= 0 || !sn_size_mul(total, (size_t)dims[i], &total))
            return false;
    if (total > PTRDIFF_MAX / sizeof(float))
        return false;
    *bytes = total * sizeof(float);
    return true;
}

/* A unit is a few neighbouring panels, so that a row of the source is read in pieces of several
 * cache lines. */
enum { UNIT_PANELS = 4 };

static int64_t units_of(int64_t n, unsigned block)
{
    return (n + UNIT_PANELS * (int64_t)block - 1) / (UNIT_PANELS * (int64_t)block);
}

static size_t gemm_units(const int64_t *dims, int rank, int64_t trans, unsigned block)
{
    int64_t n, k;
    shape(dims, rank, trans, &n, &k);
    size_t units = (size_t)units_of(n, block);
    for (int i = 0; i < rank - 2; i++)
        units *= (size_t)dims[i];
    return units;
}

/* A panel from rows of n floats: column `col` and those behind it. */
static inline void pack_rows(float *dst, const uint8_t *src, int64_t n, int64_t row, int64_t rows,
                             int64_t col, unsigned block)
{
    src += (size_t)(row * n + col) * sizeof(float);
    dst += row * block;
    if (n - col >= block) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(dst + i * block, src + (size_t)(i * n) * sizeof(float), block * sizeof(float));
        return;
    }
    memset(dst, 0, (size_t)rows * block * sizeof(float));
    for (int64_t i = 0; i < rows; i++)
        memcpy(dst + i * block, src + (size_t)(i * n) * sizeof(float),
               (size_t)(n - col) * sizeof(float));
}

/* A panel of a transposed matrix: rows col … of k floats each become lanes. */
static void pack_lanes(float *dst, const uint8_t *src, int64_t n, int64_t k, int64_t col,
                       unsigned block)
{
    const int64_t lanes = sn_min(n - col, block);
    src += (size_t)(col * k) * sizeof(float);
    if ((uintptr_t)src % sizeof(float) == 0) {
        sn_pack_lanes(block)(dst, (const float *)(const void *)src, (size_t)k, (unsigned)lanes,
                             block, (size_t)k);
        return;
    }
    for (int64_t i = 0; i < k; i++)
        for (int64_t l = 0; l < block; l++)
            dst[i * block + l] = l < lanes ? sn_pack_f32(src, l * k + i) : 0.0f;
}

enum { ROWS = 64 }; /* of all panels of a unit, before the next */

static inline void gemm_pack(float *dst, const uint8_t *src, const int64_t *dims, int rank,
                             int64_t trans, unsigned block, size_t unit)
{
    int64_t n, k;
    shape(dims, rank, trans, &n, &k);
    const int64_t units = units_of(n, block), matrix = (int64_t)unit / units;
    const int64_t first = (int64_t)unit % units * UNIT_PANELS * block;
    const int64_t end = sn_min(first + UNIT_PANELS * (int64_t)block, n);
    const int64_t panels = (n + block - 1) / block;
    src += (size_t)(matrix * n * k) * sizeof(float);
    dst += (matrix * panels * block + first) * k;
    if (trans) {
        for (int64_t col = first; col < end; col += block, dst += k * block)
            pack_lanes(dst, src, n, k, col, block);
        return;
    }
    for (int64_t row = 0; row < k; row += ROWS)
        for (int64_t col = first; col < end; col += block)
            pack_rows(dst + (col - first) * k, src, n, row, sn_min(k - row, ROWS), col, block);
}

/* The rows of a transposed matrix are a panel's columns; else a panel takes a piece of each row. */
static bool gemm_source(const int64_t *dims, int rank, int64_t trans, unsigned block, size_t unit,
                        int64_t *first, int64_t *count)
{
    int64_t n, k;
    shape(dims, rank, trans, &n, &k);
    const int64_t units = units_of(n, block), matrix = (int64_t)unit / units;
    const int64_t col = (int64_t)unit % units * UNIT_PANELS * block;
    *first = (matrix * n + col) * k;
    *count = sn_min(n - col, UNIT_PANELS * (int64_t)block) * k;
    return trans != 0;
}

#define GEMM_FORMAT(block)                                                                         \
    static bool gemm##block##_bytes(const int64_t *dims, int rank, int64_t arg, size_t *bytes)     \
    {                                                                                              \
        return gemm_bytes(dims, rank, arg, block, bytes);                                          \
    }                                                                                              \
    static size_t gemm##block##_units(const int64_t *dims, int rank, int64_t arg)                  \
    {                                                                                              \
        return gemm_units(dims, rank, arg, block);                                                 \
    }                                                                                              \
    static void gemm##block##_pack(void *dst, const void *src, const int64_t *dims, int rank,      \
                                   int64_t arg, size_t unit)                                       \
    {                                                                                              \
        gemm_pack(dst, src, dims, rank, arg, block, unit);                                         \
    }                                                                                              \
    static bool gemm##block##_source(const int64_t *dims, int rank, int64_t arg, size_t unit,      \
                                     int64_t *first, int64_t *count)                               \
    {                                                                                              \
        return gemm_source(dims, rank, arg, block, unit, first, count);                            \
    }                                                                                              \
    const sn_pack_format sn_pack_f32_gemm##block = {"f32_gemm" #block, gemm##block##_bytes,        \
                                                    gemm##block##_units, gemm##block##_pack,       \
                                                    gemm##block##_source};

GEMM_FORMAT(8)
GEMM_FORMAT(16)
