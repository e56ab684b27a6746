/* SPDX-License-Identifier: Apache-2.0 */
/* The negative log likelihood of labels, of scores that are logarithms already or become so by a
 * softmax (cross entropy). Any float type; sums are made in double. */
#ifndef SN_COMPUTE_LOSS_H
#define SN_COMPUTE_LOSS_H

#include "compute/element.h"

typedef enum sn_loss_reduction { SN_LOSS_EACH, SN_LOSS_SUM, SN_LOSS_MEAN } sn_loss_reduction;

/* Scores [outer][classes][inner], labels [outer][inner]. */
typedef struct sn_loss {
    sn_loss_reduction reduction; /* EACH: a loss per label; MEAN is weighted as the labels are */
    bool softmax;
    bool ignores; /* the label `ignored` has no loss and no weight */
    int64_t ignored;
    int64_t outer, classes, inner;
} sn_loss;
/* `y`: a loss per label, or one; `logs`: log-softmax of the scores, where wanted; `weights`: one
 * per class. Each of these may be left out. False: label *bad is none of the classes, and the
 * results are not complete. */
bool sn_loss_run(const sn_loss *l, sn_elems y, sn_elems logs, sn_elems scores, sn_elems labels,
                 sn_elems weights, int64_t *bad);

#endif
