/* SPDX-License-Identifier: Apache-2.0 */
/* What passes know of the kernels. */
#ifndef SN_OPS_SHARED_CHANNEL_BLOCK_H
#define SN_OPS_SHARED_CHANNEL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/types.h"

/* Channels of a block in the layout that convolutions are made for, on this CPU. */
unsigned sn_op_channel_block(uint32_t cpu_flags);
/* Do images gain by that layout? `plain_tiles`: of operators whose tiles of bf16 are for plain
 * images only, they do not where those are faster. */
bool sn_op_blocks_suit(bool plain_tiles, sonde_precision precision, uint32_t cpu_flags);

#endif
