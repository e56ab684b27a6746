/* SPDX-License-Identifier: Apache-2.0 */
/* Rows times coefficients plus intercepts, then a transform of the scores. Sums are kept in double.
 */
#ifndef SN_COMPUTE_LINEAR_MODEL_H
#define SN_COMPUTE_LINEAR_MODEL_H

#include "base/pool.h"
#include "compute/scores.h"
#include "sonde/types.h"

typedef struct sn_linear_model {
    const float *coefficients; /* [targets][features] */
    const float *intercepts;   /* [targets], or NULL */
    int64_t targets, features;
    sn_score_post post;
    bool classifier;
    bool binary; /* one score for two classes: two are handed out */
} sn_linear_model;

/* n rows of features of any number type. scores: [n][targets, or 2]. A classifier says in index
 * which class a row is of; otherwise it may be NULL. */
void sn_linear_model_run(const sn_linear_model *m, sonde_dtype t, const void *x, int64_t n,
                         float *scores, int64_t *index, sn_pool *pool);

#endif
