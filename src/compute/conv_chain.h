/* SPDX-License-Identifier: Apache-2.0 */
/* A 1×1 convolution and the depthwise one behind it, a few channel blocks of a band of rows at a
 * time, so that what lies between them never leaves the second-level cache. */
#ifndef SN_COMPUTE_CONV_CHAIN_H
#define SN_COMPUTE_CONV_CHAIN_H

#include "compute/conv.h"

typedef struct sn_conv_chain {
    sn_conv_plan first[2], second[2]; /* of a chunk of channels, and of the last, smaller one */
    int64_t images, channels;
    bool apart;                            /* in chunks and bands, not one after the other */
    int64_t chunk, chunks;                 /* channels of a chunk */
    int64_t band, bands;                   /* output rows of a band */
    int64_t in, out;                       /* floats: of an image, of a channel of a result */
    int64_t first_weights, second_weights; /* bytes per chunk */
    int threads;
    sn_pieces between, core; /* per thread: what lies between the two; workspace of either */
    sn_workspace workspace;
    uint64_t flops;
} sn_conv_chain;

/* The desc of `second` begins where `first` ends: one window per channel, the same layout. Both are
 * for all channels; weights come packed or both do not. */
sonde_status sn_conv_chain_make(sn_conv_chain *p, const sn_conv_desc *first,
                                const sn_conv_desc *second, uint32_t cpu_flags, size_t l2_bytes,
                                int threads, sonde_error *err);

/* Weights and bias (NULL: 0) of both. */
typedef struct sn_conv_chain_call {
    const void *x;    /* f32, or bf16 as the first desc says */
    const void *w[2]; /* of the descs' w_dtype */
    const float *bias[2];
    void *y; /* f32, or bf16 as the second desc says */
} sn_conv_chain_call;
void sn_conv_chain_run(const sn_conv_chain *p, const sn_conv_chain_call *c, void *workspace,
                       sn_pool *pool);

#endif
