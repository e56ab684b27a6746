/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product by constant weights, as passes that change its weights and bias see it, and the
 * way of its columns through nodes that only regroup the other axes. */
#ifndef SN_PASSES_PRODUCT_H
#define SN_PASSES_PRODUCT_H

#include "passes/rewrite.h"

typedef struct sn_product {
    sn_node *node;         /* MatMul or Gemm */
    int64_t k, columns;    /* of the weights */
    int k_axis;            /* of the weights; that of the columns is the other one */
    const sn_tensor *bias; /* of a Gemm, one element per column or one for all; NULL: none */
} sn_product;

/* False: the weights are not constant, somebody else reads them, or the addend is no constant row.
 */
bool sn_product_of(sn_node *n, sn_product *p);

/* The product's columns times scale[c] plus shift[c]; the Add that a MatMul may need is made behind
 * it. `from` is the tensor the shift comes from, for names; it may be NULL. */
sonde_status sn_product_scale_columns(sn_graph *g, sn_pass_env *env, sn_product *p,
                                      const double *scale, const double *shift,
                                      const sn_value *from);
/* The product of x · scale[i] + shift[i], for the elements i of its rows, in place of that of x. */
sonde_status sn_product_scale_input(sn_graph *g, sn_pass_env *env, sn_product *p,
                                    const double *scale, const double *shift, const sn_value *from);

/* Where axis `axis` of n's input is in its output, when n is a Reshape, Flatten, Squeeze, Unsqueeze
 * or Transpose that keeps its elements together and in order; else -1. */
int sn_view_axis(const sn_node *n, int axis);
/* The same from output to input. */
int sn_view_axis_before(const sn_node *n, int axis);

#endif
