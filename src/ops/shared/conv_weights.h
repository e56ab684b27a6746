/* SPDX-License-Identifier: Apache-2.0 */
/* How operators that are convolutions have their weights packed. */
#ifndef SN_OPS_SHARED_CONV_WEIGHTS_H
#define SN_OPS_SHARED_CONV_WEIGHTS_H

#include "compute/conv.h"
#include "ops/framework/op.h"

/* Answers for input i, weights of so many groups, if they are constant. dilation_x: along the last
 * axis. */
void sn_conv_weights_pack(sn_pack_request *r, uint32_t i, int64_t groups, int64_t dilation_x);
/* For sn_op.in_half of a convolution: its images X and Z (inputs x and z; z is x where there is no
 * Z) and its output, if its weights, input w, will lie in tiles; without Z, if it goes by planes,
 * as depthwise ones do. */
uint32_t sn_conv_in_half(const sn_node *n, uint32_t x, uint32_t w, uint32_t z, int64_t groups,
                         sn_dtype half, uint32_t cpu_flags);
/* Says in a descriptor which of them do; false: they do, and the way does not know it. */
bool sn_conv_stored(const sn_bind *b, uint32_t x, uint32_t w, uint32_t z, sn_conv_desc *d);
/* Do weights of this fact lie in tiles (compute/conv_tiles.h)? */
bool sn_conv_weights_in_tiles(const sn_fact *w);

#endif
