/* SPDX-License-Identifier: Apache-2.0 */
/* Support vector machines. With support vectors every pair of classes votes by its own decision
 * function, and probabilities come from pairwise sigmoids made consistent (Wu, Lin and Weng 2004,
 * the second method); without, each class has one linear score. */
#ifndef SN_COMPUTE_SVM_H
#define SN_COMPUTE_SVM_H

#include "base/workspace.h"
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

/* What a row needs, in double: its features, the kernel's value at every vector, raw scores, votes;
 * for probabilities P, R, Q and Qp (see svm.c). */
typedef struct sn_svm_plan {
    int64_t features;
    sn_piece row, kernels, scores, votes, p, r, q, qp;
    sn_workspace workspace;
} sn_svm_plan;
sn_svm_plan sn_svm_plan_make(const sn_svm *v, int64_t features);
/* n rows of features of any number type. out: [n][scores], or NULL. index: which class a row is of,
 * for classifiers. */
void sn_svm_run(const sn_svm *v, const sn_svm_plan *plan, sonde_dtype t, const void *x, int64_t n,
                float *out, int64_t *index, void *workspace);

#endif
