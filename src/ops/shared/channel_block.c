/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shared/channel_block.h"

#include "compute/conv.h"
#include "compute/packs.h"

unsigned sn_op_channel_block(uint32_t cpu_flags)
{
    return sn_conv_block(cpu_flags);
}

bool sn_op_blocks_suit(bool plain_tiles, sonde_precision precision, uint32_t cpu_flags)
{
    return !plain_tiles || precision != SONDE_PRECISION_BF16 || !sn_pack_has_tiles(cpu_flags);
}
