/* SPDX-License-Identifier: Apache-2.0 */
/* The scores of attention as exporters write them, from the softmax up to the product of queries
 * and keys: what is added to them, in any number and order, what is hidden, by how much they are
 * scaled. On the way a Reshape may regroup the axes before the last two: batch and heads as one
 * axis, or windows, into which images are cut, apart from the images. */
#ifndef SN_PASSES_ATTENTION_SCORES_H
#define SN_PASSES_ATTENTION_SCORES_H

#include "passes/rewrite.h"

enum { SN_SCORES_NODES = 16, SN_SCORES_TERMS = 4 };

typedef struct sn_scores {
    sn_node *nodes[SN_SCORES_NODES]; /* in order of finding; the last one is the product */
    size_t n_nodes;
    sn_value *terms[SN_SCORES_TERMS]; /* added, from the softmax up, by … */
    sn_node *adders[SN_SCORES_TERMS];
    int n_terms;
    sn_value *keep; /* NULL: nothing is hidden */
    float filter;
    int64_t hidden, hide; /* as the attributes of sonde.FusedAttention */
    double scale;
    sn_value *scales; /* constant, one of each head; NULL: none */
    bool divided;     /* by the scales */
    int rank;         /* the highest of the scores: 3, 4 or 5 */
    int64_t windows;  /* of rank 5; else 1 */
    sn_dim heads;     /* unknown when the rank is 3 */
} sn_scores;

/* Scores as a softmax reads them. False: not that, or not to be fused. */
bool sn_scores_match(sn_value *v, sn_scores *s);
/* Has the axes of scores: f32, rank 3 to 5. */
bool sn_scores_fit(const sn_value *v);
/* A Reshape that regroups the axes before the last two, as far as the scores allow; its input. */
sn_value *sn_scores_regrouped(sn_scores *s, const sn_node *n);

#endif
