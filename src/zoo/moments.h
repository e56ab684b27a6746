/* SPDX-License-Identifier: Apache-2.0 */
/* What an image classifier's activations will look like, without running it: mean and variance of
 * every channel, followed through the graph from a normally distributed input. Two things need it:
 * normalisations want statistics of the size that training would have collected, and quantisation
 * wants the range of every value. Channels and pixels are taken as independent, which with random
 * weights is right on average. */
#ifndef SN_ZOO_MOMENTS_H
#define SN_ZOO_MOMENTS_H

#include "graph/graph.h"

typedef struct sn_moments {
    int64_t channels; /* 0: not an activation */
    float *mean, *var;
    float low, high; /* where nearly all elements are, over all channels */
} sn_moments;

/* One entry per value, by id, in `arena`. */
sonde_status sn_moments_estimate(const sn_graph *g, sn_arena *arena, sn_moments **of,
                                 sonde_error *err);
/* The running mean and variance of each BatchNormalization, drawn for inputs of variance 1, are
 * scaled to what its input is like. */
sonde_status sn_moments_fit_batchnorm(sn_graph *g, sonde_error *err);

#endif
