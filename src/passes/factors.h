/* SPDX-License-Identifier: Apache-2.0 */
/* A value as a product: exporters write the factors of an activation in any order and grouping, so
 * patterns ask for the number and the values that are multiplied, not for nodes. */
#ifndef SN_PASSES_FACTORS_H
#define SN_PASSES_FACTORS_H

#include "passes/rewrite.h"

enum { SN_FACTOR_NODES = 8, SN_FACTOR_LEAVES = 4 };

typedef struct sn_factors {
    double number; /* product of all constants */
    sn_value *leaves[SN_FACTOR_LEAVES];
    uint32_t n_leaves;
    sn_node *nodes[SN_FACTOR_NODES]; /* Mul, Div by a number, Pow by 2 or 3 */
    uint32_t n_nodes;
    int rank; /* the highest of a constant: that of the product is not below it */
} sn_factors;

/* The factors of v, whose producer is looked into whoever else reads v. False: too many. */
bool sn_factors_of(sn_value *v, sn_factors *f);
/* Two numbers that mean the same constant, one of them perhaps written with few digits. */
bool sn_near(double a, double b);

#endif
