/* SPDX-License-Identifier: Apache-2.0 */
/* The list of packed weight formats, and weights on their way from the type of the file to that of
 * a format. */
#include "compute/packs.h"

#include <string.h>

#include "compute/small_floats.h"
#include "compute/split.h"

const sn_pack_format *sn_pack_get(unsigned id)
{
    static const sn_pack_format *const formats[SN_PACK_COUNT] = {
        NULL,
#define SN_PACK(id, symbol) &symbol,
#include "compute/packs.inc"
#undef SN_PACK
    };
    return id < SN_PACK_COUNT ? formats[id] : NULL;
}

unsigned sn_pack_find(sn_arrangement arrangement, sn_dtype dtype, const sn_geometry *g)
{
    for (unsigned id = 1; id < SN_PACK_COUNT; id++) {
        const sn_pack_format *f = sn_pack_get(id);
        const bool fits = f->block == g->block && f->kr == g->kr;
        if (f->arrangement == arrangement && f->dtype == dtype &&
            (fits || arrangement == SN_WEIGHTS_SPARSE)) /* whose blocks are the same for all */
            return id;
    }
    return SN_PACK_NONE;
}

enum { PIECE = 1024 }; /* elements converted at a time */

/* Numbers from here on round to infinity, as bits of an f32 without its sign: half way from the
 * largest number of the type to the next power of two. NaN and infinity have greater bits. */
static uint32_t first_too_large(sn_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_F16:
        return 0x477ff000; /* 65520 */
    case SONDE_DTYPE_BF16:
        return 0x7f7f8000; /* 0x1.ffp127 */
    default:
        return 0x7f800000;
    }
}

bool sn_pack_holds(sn_dtype to, sn_dtype from, const void *data, int64_t n, uint32_t cpu_flags)
{
    const size_t elem = sn_dtype_bytes(from);
    const uint32_t limit = first_too_large(to);
    float floats[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = sn_min(n - at, PIECE);
        uint32_t most = 0;
        sn_load_f32(cpu_flags, from, floats, (const uint8_t *)data + (size_t)at * elem,
                    (size_t)count);
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, &floats[i], sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
        if (most >= limit)
            return false;
    }
    return true;
}

/* A piece at a time: forward where elements shrink, backward where they grow. */
void sn_pack_convert(sn_dtype to, sn_dtype from, void *data, int64_t n, uint32_t cpu_flags)
{
    const size_t a = sn_dtype_bytes(from), b = sn_dtype_bytes(to);
    const int64_t pieces = sn_ceil_div(n, PIECE);
    float floats[PIECE];
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t at = (b > a ? pieces - 1 - i : i) * PIECE, count = sn_min(n - at, PIECE);
        sn_load_f32(cpu_flags, from, floats, (const uint8_t *)data + (size_t)at * a, (size_t)count);
        sn_store_f32(cpu_flags, to, (uint8_t *)data + (size_t)at * b, floats, (size_t)count,
                     (sn_rounding){0});
    }
}

bool sn_pack_has_tiles(uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    return k->bf16_rows_geometry.speed > k->f32_gemm_geometry.speed + 1;
}

bool sn_pack_has_image_tiles(uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    return sn_pack_has_tiles(cpu_flags) &&
           k->bf16_rows_geometry.block == k->f32_conv_geometry.block;
}

bool sn_pack_has_f16_tiles(uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    return sn_pack_has_image_tiles(cpu_flags) &&
           k->f16_rows_geometry.speed >= k->bf16_rows_geometry.speed;
}

bool sn_pack_has_fast_tiles(uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    return k->bf16_rows_geometry.speed > 4 * (k->f32_gemm_geometry.speed + 1);
}
