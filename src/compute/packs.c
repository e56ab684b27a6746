/* SPDX-License-Identifier: Apache-2.0 */
/* The list of packed weight formats, and what they share. */
#include "compute/packs.h"

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

/* Panels of columns: those of the next part follow when a part fills its last panel. */
bool sn_pack_joins(unsigned id, const int64_t *dims, int rank, int64_t arg, int axis)
{
    const int64_t block = id == SN_PACK_F32_GEMM16 ? 16 : id == SN_PACK_F32_GEMM8 ? 8 : 0;
    return block > 0 && rank == 2 && axis == (arg ? 0 : 1) && dims[0] > 0 && dims[1] > 0 &&
           dims[axis] % block == 0;
}
