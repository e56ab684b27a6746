/* SPDX-License-Identifier: Apache-2.0 */
/* Packed right-hand matrices: panels of `block` columns, [matrix][panel][k][block], the last panel
 * filled with zeros. The source is [..., k, n], or [..., n, k] when `arg` (transposed) is 1. */
#include <string.h>

#include "compute/gemm.h"
#include "compute/packs.h"

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

static size_t gemm_units(const int64_t *dims, int rank, int64_t trans, unsigned block)
{
    int64_t n, k;
    shape(dims, rank, trans, &n, &k);
    size_t units = ((size_t)n + block - 1) / block;
    for (int i = 0; i < rank - 2; i++)
        units *= (size_t)dims[i];
    return units;
}

static void gemm_pack(float *dst, const float *src, const int64_t *dims, int rank, int64_t trans,
                      unsigned block, size_t unit)
{
    int64_t n, k;
    shape(dims, rank, trans, &n, &k);
    const int64_t panels = (n + block - 1) / block;
    const int64_t matrix = (int64_t)unit / panels, col = (int64_t)unit % panels * block;
    const int64_t lanes = n - col < block ? n - col : block;
    src += matrix * n * k;
    dst += (int64_t)unit * k * block;
    if (lanes < block)
        memset(dst, 0, (size_t)k * block * sizeof(float));
    if (!trans) {
        for (int64_t i = 0; i < k; i++)
            memcpy(dst + i * block, src + i * n + col, (size_t)lanes * sizeof(float));
        return;
    }
    /* Squares of channels × lanes, so that both sides stay in the cache. */
    for (int64_t i0 = 0; i0 < k; i0 += 64) {
        const int64_t i1 = i0 + 64 < k ? i0 + 64 : k;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t i = i0; i < i1; i++)
                dst[i * block + l] = src[(col + l) * k + i];
    }
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
    const sn_pack_format sn_pack_f32_gemm##block = {"f32_gemm" #block, gemm##block##_bytes,        \
                                                    gemm##block##_units, gemm##block##_pack};

GEMM_FORMAT(8)
GEMM_FORMAT(16)
