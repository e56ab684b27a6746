/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression of one class: boxes in order of score, each kept unless it overlaps one
 * already kept by more than a threshold (intersection over union). */
#ifndef SN_COMPUTE_NMS_H
#define SN_COMPUTE_NMS_H

#include "compute/ranking.h"

typedef struct sn_nms {
    bool center;   /* boxes are x, y, width, height; else two opposite corners y, x, in any order */
    int64_t limit; /* boxes kept at most */
    float overlap;
    bool has_score; /* only boxes with a score above this count */
    float score;
} sn_nms;

/* n boxes of four numbers and their scores. Returns how many are kept: their numbers are those of
 * the first items, best first. `items` has room for n. */
int64_t sn_nms_select(const sn_nms *p, const float *boxes, const float *scores, int64_t n,
                      sn_ranked *items);

#endif
