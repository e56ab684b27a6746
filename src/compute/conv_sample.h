/* SPDX-License-Identifier: Apache-2.0 */
/* 1×1 convolutions with strides: the pixels they read, brought together. */
#ifndef SN_COMPUTE_CONV_SAMPLE_H
#define SN_COMPUTE_CONV_SAMPLE_H

#include "compute/conv.h"

/* Makes a direct plan one of a convolution without strides, of a copy of those pixels, where that
 * pays; once its blocks are known. False: the copy is too large. */
bool sn_conv_sample_plan(sn_conv_plan *p);
/* Makes the copy. */
const float *sn_conv_sample(const sn_conv_call *c, sn_pool *pool);

#endif
