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
