/* SPDX-License-Identifier: Apache-2.0 */
/* The list of packed weight formats. */
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

unsigned sn_pack_find(sn_arrangement arrangement, sn_dtype dtype, const sn_geometry *g)
{
    for (unsigned id = 1; id < SN_PACK_COUNT; id++) {
        const sn_pack_format *f = sn_pack_get(id);
        if (f->arrangement == arrangement && f->dtype == dtype && f->block == g->block &&
            f->kr == g->kr)
            return id;
    }
    return SN_PACK_NONE;
}
