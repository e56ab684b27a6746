/* SPDX-License-Identifier: Apache-2.0 */
/* What passes know of the kernels. */
#ifndef SN_OPS_SHARED_CHANNEL_BLOCK_H
#define SN_OPS_SHARED_CHANNEL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/types.h"

/* Channels of a block in the layout that convolutions are made for, on this CPU. */
unsigned sn_op_channel_block(uint32_t cpu_flags);
/* Do images of this rank gain by that layout? Not those with a depth, where tiles of bf16 are
 * faster on plain ones. */
bool sn_op_blocks_suit(int rank, sonde_precision precision, uint32_t cpu_flags);

#endif
