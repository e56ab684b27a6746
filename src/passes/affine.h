/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that do no more to a value than multiply each channel by a number and add another to it:
 * BatchNormalization with constant statistics, and Add, Sub, Mul and Div by a constant per channel
 * or for all. Products and convolutions beside them carry both in their weights. */
#ifndef SN_PASSES_AFFINE_H
#define SN_PASSES_AFFINE_H

#include "passes/rewrite.h"

typedef enum sn_affine {
    SN_AFFINE_NONE,   /* another node */
    SN_AFFINE_SHIFT,  /* adds only */
    SN_AFFINE_NUMBER, /* one factor for all channels */
    SN_AFFINE_SCALE   /* a factor per channel */
} sn_affine;

/* What n does to its input x, whose axis `axis` has `channels` elements. A result of another shape
 * and a normalisation that makes NaN are another node's. */
sn_affine sn_affine_of(const sn_node *n, const sn_value *x, int axis, int64_t channels);
/* Its factors and summands behind those given: scale[c]·x + shift[c] goes through n. */
void sn_affine_join(const sn_node *n, const sn_value *x, int64_t channels, double *scale,
                    double *shift);
/* The value that n, which has only one input that is not constant, works on; NULL: another. */
sn_value *sn_affine_input(const sn_node *n);
/* The constant with the summands, for the name of a bias; NULL: there is none. */
const sn_value *sn_affine_shown(const sn_node *n, const sn_value *x);

#endif
