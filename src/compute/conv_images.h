/* SPDX-License-Identifier: Apache-2.0 */
/* The way of 1×1 convolutions of f32 of several images that are too small for tiles one by one:
 * pixels of all images are the rows of one product, by tiles of f16 in halves (tiles.h). Weights
 * come as other convolutions of f32 have them, so that one image alone can go the direct way, and
 * are split at every run. */
#ifndef SN_COMPUTE_CONV_IMAGES_H
#define SN_COMPUTE_CONV_IMAGES_H

#include "compute/conv.h"

/* Can it go this way, and is that faster? The caller knows that the CPU has such tiles. */
bool sn_conv_images_pay(const sn_conv_desc *d);
/* The rest of a plan; false: sizes overflow. */
bool sn_conv_images_plan(sn_conv_plan *p, size_t l2_bytes);
void sn_conv_images_run(const sn_conv_call *c, sn_pool *pool);

#endif
