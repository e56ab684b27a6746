/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation with constant statistics: a scale and a shift per channel. */
#ifndef SN_PASSES_BATCHNORM_H
#define SN_PASSES_BATCHNORM_H

#include "graph/graph.h"

/* Inference form with constant f32 parameters of `channels` elements, only output 0 read? */
bool sn_batchnorm_is_constant(const sn_node *bn, int64_t channels);
/* y = scale x + shift. False: a variance that has no root; such a model keeps its node and its NaN.
 */
bool sn_batchnorm_factors(const sn_node *bn, int64_t channels, double *scale, double *shift);
/* The same of one channel. */
bool sn_batchnorm_channel(const sn_node *bn, int64_t c, double *scale, double *shift);

#endif
