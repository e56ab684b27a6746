/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shared/conv_weights.h"

#include "compute/conv_tiles.h"
#include "compute/packs.h"
#include "ops/shared/converted.h"

void sn_conv_weights_pack(sn_pack_request *r, uint32_t i, int64_t groups, int64_t dilation_x)
{
    const sn_fact *w = r->n_in > i ? r->in[i] : NULL;
    if (!w || !w->data || !sn_type_is_concrete(&w->type))
        return;
    const int64_t *dims = w->type.dims;
    const int rank = w->type.rank;
    const sn_dtype dtype = sn_pack_dtype(r, i);
    r->pack_arg[i] = groups;
    if (sn_pack_by_tiles(r, i)) {
        r->pack[i] = (uint8_t)sn_conv_tiles_pack_id(dtype, dims, rank, groups, r->in_block,
                                                    r->out_block, r->cpu_flags);
        if (r->pack[i] != SN_PACK_NONE) {
            r->pack_arg[i] =
                sn_conv_tiles_pack_arg(groups, r->in_block == 0, dims[rank - 1], dilation_x);
            return;
        }
    }
    r->pack[i] = (uint8_t)sn_conv_pack_id(dtype, dims, rank, groups, r->in_block, r->out_block,
                                          r->cpu_flags);
}

bool sn_conv_weights_in_tiles(const sn_fact *w)
{
    return w->pack == SN_PACK_BF16_CONV_TILES16 || w->pack == SN_PACK_F16_CONV_TILES16;
}
