/* SPDX-License-Identifier: Apache-2.0 */
/* Decision trees as the tree-ensemble operators walk them: one flat array of nodes, checked when it
 * is made so that a walk always ends at a leaf. */
#ifndef SN_OPS_ML_TREE_H
#define SN_OPS_ML_TREE_H

#include "ops/ml/shared.h"

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

/* From attributes nodes_* and `votes`_treeids, _nodeids, _ids, _weights ("class" or "target"). */
sonde_status sn_trees_read(sn_prep *p, const char *votes, sn_trees *t);
/* From the attributes of TreeEnsemble. */
sonde_status sn_trees_read_flat(sn_prep *p, sn_trees *t);
/* One row of features ► one number per target, base values included. `seen` has room for the
 * targets. */
void sn_trees_row(const sn_trees *t, sn_dtype dtype, const void *x, int64_t row, int64_t features,
                  int64_t targets, double *out, bool *seen);

#endif
