/* SPDX-License-Identifier: Apache-2.0 */
/* Decision trees as the attributes of the tree-ensemble operators describe them: checked when they
 * are read, so that a walk always ends at a leaf. */
#ifndef SN_OPS_ML_TREE_H
#define SN_OPS_ML_TREE_H

#include "compute/trees.h"
#include "ops/ml/shared.h"

/* From attributes nodes_* and `votes`_treeids, _nodeids, _ids, _weights ("class" or "target"). */
sonde_status sn_trees_read(sn_prep *p, const char *votes, sn_trees *t);
/* From the attributes of TreeEnsemble. */
sonde_status sn_trees_read_flat(sn_prep *p, sn_trees *t);

#endif
