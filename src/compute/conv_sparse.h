/* SPDX-License-Identifier: Apache-2.0 */
/* The way of convolutions (conv.h) whose weights are sparse, in blocks of four output channels,
 * or one, at one tap of one input channel: one to three spatial dims, plain or blocked, without
 * groups. */
#ifndef SN_COMPUTE_CONV_SPARSE_H
#define SN_COMPUTE_CONV_SPARSE_H

#include "compute/conv.h"

typedef struct sn_conv_sparse_case {
    int64_t out[3]; /* dims of the image that results; -1: not known */
    int64_t oc, ic, kernel[3], stride[3], dilation[3];
    int64_t entries; /* blocks of four outputs that are not zero, … */
    bool single;     /* … or single weights */
    bool winograd;   /* the dense convolution may go Winograd's way */
    bool tiles;      /* … or would be in tiles of bf16 */
    bool plain;      /* … or is of plain tensors */
} sn_conv_sparse_case;
/* Is the convolution faster without the zeros? If sizes are not known it has to be for any. */
bool sn_conv_sparse_pays(const sn_conv_sparse_case *c);

/* The rest of a plan; false: sizes overflow. */
bool sn_conv_sparse_plan(sn_conv_plan *p, size_t l2_bytes);
void sn_conv_sparse_run(const sn_conv_call *c, sn_pool *pool);

#endif
