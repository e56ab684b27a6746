/* SPDX-License-Identifier: Apache-2.0 */
/* What passes know of the kernels: the block that convolutions are made for. */
#include "compute/conv.h"
#include "ops/framework/op.h"

unsigned sn_op_channel_block(uint32_t cpu_flags)
{
    return sn_conv_block(cpu_flags);
}
