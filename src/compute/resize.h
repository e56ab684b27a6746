/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of resizing: elements picked by one index table per axis, and one axis of weighted
 * sums. Tables come from the operator. */
#ifndef SN_COMPUTE_RESIZE_H
#define SN_COMPUTE_RESIZE_H

#include "base/pool.h"

#define SN_PICK_RANK 16
typedef struct sn_pick {
    void *y;
    const void *x;
    int rank; /* at least 1 */
    int64_t out[SN_PICK_RANK];
    const int64_t *maps[SN_PICK_RANK]; /* input position per output position; -1: outside */
    ptrdiff_t strides[SN_PICK_RANK];   /* of x, in elements */
    size_t elem_bytes;
    bool gaps; /* maps may say outside, where `outside` is put */
    /* An element, written as one; with gaps they have at most 16 bytes. */
    _Alignas(16) uint8_t outside[16];
} sn_pick;
/* No dim of the result is 0. */
void sn_pick_run(const sn_pick *p, sn_pool *pool);

/* [outer][in][inner] ► [outer][out][inner]: rows are sums of `taps` weighted rows. */
typedef struct sn_mix {
    const float *src;
    float *dst;
    int64_t outer, in, out, inner, taps;
    const int32_t *index; /* out × taps; the first of an output is -1 outside */
    const float *weight;
    bool gaps; /* some are outside, where `outside` is put */
    float outside;
    uint32_t cpu_flags;
} sn_mix;
void sn_mix_run(const sn_mix *m, sn_pool *pool);

#endif
