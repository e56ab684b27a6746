/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a model: constants that matrix products and convolutions read, directly or by way
 * of nodes that change nothing but type and order of axes (Identity, Cast, Transpose,
 * QuantizeLinear, DequantizeLinear). One constant is one weight, however many nodes and graphs read
 * it. */
#ifndef SN_SHRINK_FIND_WEIGHTS_H
#define SN_SHRINK_FIND_WEIGHTS_H

#include "graph/graph.h"

/* How the constant lies: its numbers are matrices of outputs × k, one for every index of its other
 * axes. Of grouped convolutions one axis holds `groups` such matrices side by side. */
typedef struct sn_weight_view {
    int out_axis, k_axis;
    int64_t groups;
    bool groups_along_k; /* they are on the k axis, as of ConvTranspose; else on that of outputs */
} sn_weight_view;

/* What a number of a quantised weight stands for: (number - zero) × scale. */
typedef struct sn_weight_quant {
    bool there;
    const sn_tensor *scale, *zero; /* NULL: 1 and 0 */
    int axis;                      /* of the constant that they belong to; -1: one for all */
    int64_t block; /* elements along that axis that share them, when both are tensors of … */
    int perm[SN_MAX_RANK]; /* … the constant's rank, whose axis i is axis perm[i] of it; else 0 */
} sn_weight_quant;

typedef struct sn_weight {
    const sn_tensor *data;
    const char *name;        /* of the initializer, or of what the Constant makes */
    const sn_node **readers; /* products and convolutions, in the order they run */
    size_t n_readers;
    sn_weight_view view;
    sn_weight_quant quant;
    const char *note; /* a sentence why it has to be left as it is; NULL: it may be changed */
    bool depthwise;   /* of a convolution in which every output has one input */
    size_t order;     /* of the first reader among all nodes */
} sn_weight;

typedef struct sn_weights {
    SN_VEC(sn_weight) list; /* in the order they are read first */
} sn_weights;

/* The contents of a constant, whether it is an initializer or made by a Constant node; NULL: it is
 * none. */
const sn_tensor *sn_constant_of(const sn_value *v);

/* Memory of the list from g->alloc, all else from the arena. */
sonde_status sn_weights_find(sn_weights *w, const sn_graph *g, sn_arena *arena, sonde_error *err);
void sn_weights_free(sn_weights *w, sn_allocator *alloc);

#endif
