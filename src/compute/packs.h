/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weight formats. A format follows from the weight's shape, the CPU and the precision, never
 * from activations. Listed in packs.inc; an operator asks for one in its `pack` phase and the plan
 * packs once per initializer and program, in parallel. */
#ifndef SN_COMPUTE_PACKS_H
#define SN_COMPUTE_PACKS_H

#include <string.h>

#include "base/alloc.h"
#include "kernels/kernels.h"

typedef struct sn_pack_format {
    const char *name; /* "f32_conv_oihw16i16o" */
    /* Physical bytes for a weight of these dims; false: not packable this way. `arg` e.g. groups.
     */
    bool (*bytes)(const int64_t *dims, int rank, int64_t arg, size_t *bytes);
    /* Independent units to pack in parallel, then one unit. src lies as it does in a file: it need
     * not be aligned (sn_pack_f32 reads it). */
    size_t (*units)(const int64_t *dims, int rank, int64_t arg);
    void (*pack)(void *dst, const void *src, const int64_t *dims, int rank, int64_t arg,
                 size_t unit);
    /* The elements a unit reads: *count from *first. Weights that have to be changed first are so a
     * unit at a time, while they are in the cache. false: a unit reads here and there. */
    bool (*source)(const int64_t *dims, int rank, int64_t arg, size_t unit, int64_t *first,
                   int64_t *count);
} sn_pack_format;

/* The kernel that turns rows into a block's lanes, y[p*block + l] = x[l*x_channel + p]. A block of
 * 16 means AVX-512, on this machine: formats follow from the CPU. */
static inline sn_f32_block_fn *sn_pack_lanes(unsigned block)
{
#if defined(__x86_64__)
    return block == 16 ? sn_f32_block_avx512 : sn_f32_block_ref;
#else
    return block == 8 ? sn_f32_block_neon : sn_f32_block_ref;
#endif
}

static inline float sn_pack_f32(const void *src, int64_t i)
{
    float x;
    memcpy(&x, (const uint8_t *)src + (size_t)i * sizeof x, sizeof x);
    return x;
}

enum {
    SN_PACK_NONE = 0,
#define SN_PACK(id, symbol) SN_PACK_##id,
#include "compute/packs.inc"
#undef SN_PACK
    SN_PACK_COUNT
};

const sn_pack_format *sn_pack_get(unsigned id); /* NULL for 0 and unknown ids */
/* Is a weight in parts along `axis` packed by packing its parts one behind the other? Asked with
 * the dims of each part. */
bool sn_pack_joins(unsigned id, const int64_t *dims, int rank, int64_t arg, int axis);

/* Every row of packs.inc. */
#define SN_PACK(id, symbol) extern const sn_pack_format symbol;
#include "compute/packs.inc"
#undef SN_PACK

#endif
