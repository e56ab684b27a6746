/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees: one flat array of nodes, in which every walk from a root ends at a
 * leaf. */
#ifndef SN_COMPUTE_TREES_H
#define SN_COMPUTE_TREES_H

#include "base/pool.h"
#include "compute/scores.h"
#include "sonde/types.h"

typedef enum sn_tree_mode { /* numbers of TreeEnsemble's nodes_modes */
                            SN_TREE_LEQ,
                            SN_TREE_LT,
                            SN_TREE_GTE,
                            SN_TREE_GT,
                            SN_TREE_EQ,
                            SN_TREE_NEQ,
                            SN_TREE_MEMBER,
                            SN_TREE_LEAF
} sn_tree_mode;

typedef struct sn_tree_node {
    sn_tree_mode mode;
    bool nan_true; /* NaN takes the branch `yes` */
    int64_t feature;
    double split;
    int64_t yes,
        no; /* nodes; MEMBER: the set is members[first … end); LEAF: weights [first … end) */
    int64_t first, end;
} sn_tree_node;

typedef struct sn_tree_weight {
    int64_t target;
    double weight;
} sn_tree_weight;

typedef enum sn_tree_join { SN_TREE_AVERAGE, SN_TREE_SUM, SN_TREE_MIN, SN_TREE_MAX } sn_tree_join;

typedef struct sn_trees {
    sn_tree_node *nodes;
    int64_t n_nodes;
    int64_t *roots;
    int64_t n_roots;
    sn_tree_weight *weights;
    int64_t n_weights;
    double *members;
    int64_t max_feature;
    sn_tree_join join;
    const double *base; /* n_base of them: none, or one per target */
    size_t n_base;
} sn_trees;

/* What becomes of the numbers of a row. */
typedef struct sn_tree_votes {
    int64_t targets;
    sn_score_post post;
    /* Two classes whose votes all go to `voted`: one score decides. `mixed`: by its sign, else it
     * is a probability. */
    bool binary, mixed;
    int64_t voted;
} sn_tree_votes;

typedef struct sn_trees_args {
    sonde_dtype x_type, y_type;
    const void *x;  /* [n][features] */
    void *y;        /* [n][targets], or NULL */
    int64_t *index; /* the class of each row */
    /* scratch: [n][targets] */
    double *sums;
    bool *seen;
    float *scores;
} sn_trees_args;

/* Features asked for exist, and so do the targets of all weights. */
void sn_trees_run(const sn_trees *t, const sn_tree_votes *v, int64_t n, int64_t features,
                  const sn_trees_args *a, sn_pool *pool);

#endif
