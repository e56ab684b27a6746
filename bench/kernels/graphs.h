/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that are small graphs, run by a session: operators without a driver of their own in the
 * other files, and patterns that passes rewrite, of which the whole is what counts. */
#ifndef BENCH_KERNELS_GRAPHS_H
#define BENCH_KERNELS_GRAPHS_H

#include "zoo/builder.h"

typedef struct bench_graph bench_graph;
struct bench_graph {
    const char *kind, *layer; /* the name is "kind/layer" */
    void (*build)(sn_builder *b, const bench_graph *g);
    /* What the builder takes; 0 where it does not matter, or means 1. */
    const char *op;  /* of a pool or a recurrent layer */
    int64_t in, out; /* channels, or columns */
    int64_t rows;    /* positions, or steps */
    int64_t groups;  /* or heads */
    int64_t images;  /* of a batch */
    int rank;        /* of an image without batch and channels */
    int64_t size[3]; /* of the image */
    int64_t kernel[3], stride[3], dilation, pad[3];
    double loop_flops; /* of bodies, which a session does not count */
};

/* The k-th; NULL past the end. */
const bench_graph *bench_graph_get(size_t k);

#endif
