/* SPDX-License-Identifier: Apache-2.0 */
/* How operators that are convolutions have their weights packed. */
#ifndef SN_OPS_SHARED_CONV_WEIGHTS_H
#define SN_OPS_SHARED_CONV_WEIGHTS_H

#include "ops/framework/op.h"

/* Answers for input i, weights of so many groups, if they are constant. dilation_x: along the last
 * axis. */
void sn_conv_weights_pack(sn_pack_request *r, uint32_t i, int64_t groups, int64_t dilation_x);
/* Do weights of this fact lie in tiles of bf16 (compute/conv_tiles.h)? */
bool sn_conv_weights_in_tiles(const sn_fact *w);

#endif
