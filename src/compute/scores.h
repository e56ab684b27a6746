/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of the scores that classical models end with. */
#ifndef SN_COMPUTE_SCORES_H
#define SN_COMPUTE_SCORES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_score_post {
    SN_SCORE_NONE,
    SN_SCORE_SOFTMAX,
    SN_SCORE_LOGISTIC,
    SN_SCORE_SOFTMAX_ZERO,
    SN_SCORE_PROBIT
} sn_score_post;

/* In place. */
void sn_score_apply(sn_score_post post, float *x, int64_t n);
/* One raw score of a binary classifier becomes two: of the first class and of the second. `mixed`:
 * the score may be negative, and its sign decides; else it is a probability. */
void sn_score_binary(sn_score_post post, float score, bool mixed, float out[2]);

#endif
