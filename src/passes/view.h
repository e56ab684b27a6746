/* SPDX-License-Identifier: Apache-2.0 */
/* Views: what a chain of Reshape, Transpose, Split, Gather of one index and the like does to a
 * value, without doing it. Each axis of the result is written as digits of the source's axes, the
 * way a number is written in digits: an axis of heads times sizes has two, and one that a Reshape
 * took from two axes has theirs. Dims may be symbols or unknown; a step that cannot be followed
 * with certainty ends the chain. */
#ifndef SN_PASSES_VIEW_H
#define SN_PASSES_VIEW_H

#include "passes/rewrite.h"

enum { SN_VIEW_STEPS = 16, SN_VIEW_RANK = 6, SN_VIEW_DIGITS = 4 };

typedef struct sn_digit {
    int axis;      /* of the source; -1: the same elements are repeated */
    int64_t inner; /* elements of that axis between two steps of the digit */
    sn_dim size;
    bool maybe_more; /* an Expand may have made this dim larger, if it is 1 */
} sn_digit;

typedef struct sn_view {
    int rank;
    struct {
        int n; /* 0: the axis has size 1 */
        sn_digit digit[SN_VIEW_DIGITS];
    } axis[SN_VIEW_RANK];
    int64_t first; /* column of the source's last axis where it begins */
    double scale;  /* what the elements were multiplied by on the way */
} sn_view;

/* The chain that makes v: source[0] = v is made from source[1] by node[0], and so on. */
typedef struct sn_view_chain {
    int n; /* nodes; sources are one more */
    sn_node *node[SN_VIEW_STEPS];
    sn_value *source[SN_VIEW_STEPS + 1];
} sn_view_chain;

void sn_view_find_chain(sn_value *v, sn_view_chain *c);
/* v as a view of c->source[k]; false: not with certainty. */
bool sn_view_follow(const sn_view_chain *c, int k, sn_view *out);
/* All of v. False: its rank is unknown or too large. */
bool sn_view_begin(const sn_value *v, sn_view *out);
/* The view through one more node, whose output `out` is made from `in`. */
bool sn_view_step(const sn_node *n, const sn_value *in, const sn_value *out, sn_view *view);

/* `other` times a constant number, as Mul or Div; NULL: it is not that. */
sn_value *sn_node_scaled_input(const sn_node *n, double *factor);

#endif
