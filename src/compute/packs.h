/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weight formats. A format follows from the weight's shape, the CPU and the precision, never
 * from activations. Listed in packs.inc; an operator asks for one in its `pack` phase and the plan
 * packs once per initializer and program, in parallel. */
#ifndef SN_COMPUTE_PACKS_H
#define SN_COMPUTE_PACKS_H

#include "base/alloc.h"

typedef struct sn_pack_format {
    const char *name; /* "f32_conv_oihw16i16o" */
    /* Physical bytes for a weight of these dims; false: not packable this way. `arg` e.g. groups.
     */
    bool (*bytes)(const int64_t *dims, int rank, int64_t arg, size_t *bytes);
    /* Independent units to pack in parallel, then one unit. */
    size_t (*units)(const int64_t *dims, int rank, int64_t arg);
    void (*pack)(void *dst, const void *src, const int64_t *dims, int rank, int64_t arg,
                 size_t unit);
} sn_pack_format;

enum {
    SN_PACK_NONE = 0,
#define SN_PACK(id, symbol) SN_PACK_##id,
#include "compute/packs.inc"
#undef SN_PACK
    SN_PACK_COUNT
};

const sn_pack_format *sn_pack_get(unsigned id); /* NULL for 0 and unknown ids */

/* Every row of packs.inc. */
#define SN_PACK(id, symbol) extern const sn_pack_format symbol;
#include "compute/packs.inc"
#undef SN_PACK

#endif
