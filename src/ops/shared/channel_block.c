/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shared/channel_block.h"

#include "compute/conv.h"

unsigned sn_op_channel_block(uint32_t cpu_flags)
{
    return sn_conv_block(cpu_flags);
}
