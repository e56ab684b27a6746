/* SPDX-License-Identifier: Apache-2.0 */
/* What passes know of the kernels. */
#ifndef SN_OPS_SHARED_CHANNEL_BLOCK_H
#define SN_OPS_SHARED_CHANNEL_BLOCK_H

#include <stdint.h>

/* Channels of a block in the layout that convolutions are made for, on this CPU. */
unsigned sn_op_channel_block(uint32_t cpu_flags);

#endif
