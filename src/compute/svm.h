/* SPDX-License-Identifier: Apache-2.0 */
/* Support vector machines. With support vectors every pair of classes votes by its own decision
 * function, and probabilities come from pairwise sigmoids made consistent (Wu, Lin and Weng 2004,
 * the second method); without, each class has one linear score. */
#ifndef SN_COMPUTE_SVM_H
#define SN_COMPUTE_SVM_H

#include <stddef.h>

#include "compute/scores.h"
#include "sonde/types.h"

typedef enum sn_svm_kernel { SN_SVM_LINEAR, SN_SVM_POLY, SN_SVM_RBF, SN_SVM_SIGMOID } sn_svm_kernel;

typedef struct sn_svm {
    sn_svm_kernel kernel;
    double gamma, coef0, degree;
    const float *coefficients, *vectors; /* [classes - 1][supports], [supports][features] */
    const float *rho;
    size_t n_rho;
    const float *prob_a, *prob_b; /* per pair of classes; has_prob */
    bool has_prob;
    int64_t supports; /* vectors; 0: linear mode, coefficients are [classes][features] */
    int64_t classes;
    const int64_t *per_class, *first; /* vectors of each class */
    size_t n_labels;
    sn_score_post post;
    bool classifier, one_class;
    bool mixed; /* some coefficient is negative */
} sn_svm;

int64_t sn_svm_raw_scores(const sn_svm *v); /* of a row */
int64_t sn_svm_scores(const sn_svm *v);     /* those handed out */
int64_t sn_svm_scratch(const sn_svm *v);    /* doubles of a row */

/* n rows of features of any number type. out: [n][scores], or NULL. index: which class a row is of,
 * for classifiers. row: scratch of `features` doubles; scratch: n times sn_svm_scratch. */
void sn_svm_run(const sn_svm *v, sonde_dtype t, const void *x, int64_t n, int64_t features,
                float *out, int64_t *index, double *row, double *scratch);

#endif
