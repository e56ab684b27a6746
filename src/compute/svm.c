/* SPDX-License-Identifier: Apache-2.0 */
/* Support vector machines; see svm.h. */
#include "compute/svm.h"

#include <math.h>

#include "compute/element.h"
#include "compute/split.h"

/* ------------------------------------------------------------------ sizes */
int64_t sn_svm_raw_scores(const sn_svm *v)
{
    return v->classifier && v->supports > 0 ? v->classes * (v->classes - 1) / 2 : v->classes;
}

/* One raw score for two labels becomes two scores. */
static bool is_binary(const sn_svm *v)
{
    return v->classifier && !v->has_prob && sn_svm_raw_scores(v) == 1 && v->n_labels == 2;
}

int64_t sn_svm_scores(const sn_svm *v)
{
    return v->has_prob ? v->classes : is_binary(v) ? 2 : sn_svm_raw_scores(v);
}

sn_svm_plan sn_svm_plan_make(const sn_svm *v, int64_t features)
{
    sn_svm_plan p = {.features = features};
    p.row = sn_carve(&p.workspace, features, sizeof(double));
    p.kernels = sn_carve(&p.workspace, v->supports, sizeof(double));
    p.scores = sn_carve(&p.workspace, sn_svm_raw_scores(v), sizeof(double));
    p.votes = sn_carve(&p.workspace, v->classes, sizeof(double));
    if (v->has_prob) {
        p.p = sn_carve(&p.workspace, v->classes, sizeof(double));
        p.r = sn_carve(&p.workspace, sn_count(v->classes, v->classes, 1, 1), sizeof(double));
        p.q = sn_carve(&p.workspace, sn_count(v->classes, v->classes, 1, 1), sizeof(double));
        p.qp = sn_carve(&p.workspace, v->classes, sizeof(double));
    }
    return p;
}

/* ------------------------------------------------------------------ a row */
static double kernel_value(const sn_svm *v, const double *x, const float *y, int64_t n)
{
    double sum = 0;
    if (v->kernel == SN_SVM_RBF) {
        for (int64_t i = 0; i < n; i++)
            sum += (x[i] - (double)y[i]) * (x[i] - (double)y[i]);
        return exp(-v->gamma * sum);
    }
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * (double)y[i];
    if (v->kernel == SN_SVM_POLY)
        return pow(v->gamma * sum + v->coef0, v->degree);
    return v->kernel == SN_SVM_SIGMOID ? tanh(v->gamma * sum + v->coef0) : sum;
}

static double weighted(const float *w, const double *kernels, int64_t first, int64_t n)
{
    double sum = 0;
    for (int64_t i = first; i < first + n; i++)
        sum += (double)w[i] * kernels[i];
    return sum;
}

/* Decision values of all pairs of classes, and their votes. */
static void pairwise(const sn_svm *v, const double *kernels, double *scores, double *votes)
{
    int64_t pair = 0;
    for (int64_t i = 0; i < v->classes; i++)
        votes[i] = 0;
    for (int64_t i = 0; i < v->classes; i++)
        for (int64_t j = i + 1; j < v->classes; j++, pair++) {
            const double s =
                (double)v->rho[pair] +
                weighted(v->coefficients + (j - 1) * v->supports, kernels, v->first[i],
                         v->per_class[i]) +
                weighted(v->coefficients + i * v->supports, kernels, v->first[j], v->per_class[j]);
            scores[pair] = s;
            votes[s > 0 ? i : j] += 1;
        }
}

/* The memory of a row; see sn_svm_plan. */
typedef struct row_space {
    double *row, *kernels, *scores, *votes, *p, *r, *q, *qp;
} row_space;

/* P from pairwise probabilities r[i][j] = P(i | i or j). */
static void join_probabilities(int64_t k, const double *r, double *q, double *qp, double *p)
{
    for (int64_t t = 0; t < k; t++) {
        p[t] = 1.0 / (double)k;
        q[t * k + t] = 0;
        for (int64_t j = 0; j < k; j++)
            if (j != t) {
                q[t * k + t] += r[j * k + t] * r[j * k + t];
                q[t * k + j] = -r[j * k + t] * r[t * k + j];
            }
    }
    const int64_t rounds = k > 100 ? k : 100;
    for (int64_t round = 0; round < rounds; round++) {
        double pqp = 0, worst = 0;
        for (int64_t t = 0; t < k; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < k; j++)
                qp[t] += q[t * k + j] * p[j];
            pqp += p[t] * qp[t];
        }
        for (int64_t t = 0; t < k; t++)
            worst = fmax(worst, fabs(qp[t] - pqp));
        if (worst < 0.005 / (double)k)
            return;
        for (int64_t t = 0; t < k; t++) {
            const double diff = (-qp[t] + pqp) / q[t * k + t];
            p[t] += diff;
            pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
            for (int64_t j = 0; j < k; j++) {
                qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
                p[j] /= 1 + diff;
            }
        }
    }
}

static void probabilities(const sn_svm *v, const row_space *m)
{
    const int64_t k = v->classes;
    double *r = m->r;
    int64_t pair = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++, pair++) {
            const double x = m->scores[pair] * (double)v->prob_a[pair] + (double)v->prob_b[pair];
            const double v1 = 1.0 / (1.0 + exp(x));
            r[i * k + j] = fmin(fmax(v1, 1e-7), 1 - 1e-7);
            r[j * k + i] = 1 - r[i * k + j];
        }
    join_probabilities(k, r, m->q, m->qp, m->p);
}

static int64_t largest(const double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* Which label a row gets, from its votes or, in linear mode, its scores. */
static int64_t choose(const sn_svm *v, const double *scores, const double *votes)
{
    const bool linear = v->supports == 0;
    const int64_t best = linear ? largest(scores, v->classes) : largest(votes, v->classes);
    const double weight = linear ? scores[best] : votes[best];
    if (v->n_rho == 1 && v->n_labels == 2)
        return !v->has_prob && !v->mixed && weight >= 0.5 ? 1 : best;
    return v->n_labels < 2 && v->classes < 2 ? weight > 0 : best;
}

/* Support vector i. A row without features has none, and v->vectors may then be NULL. */
static const float *vector(const sn_svm *v, int64_t i, int64_t features)
{
    return features ? v->vectors + i * features : v->vectors;
}

/* One row: y, its scores, may be NULL. */
static void svm_row(const sn_svm *v, const row_space *m, int64_t features, float *y, int64_t *index)
{
    const int64_t out = sn_svm_scores(v);
    const double *x = m->row;
    double *kernels = m->kernels, *scores = m->scores;
    for (int64_t i = 0; i < v->supports; i++)
        kernels[i] = kernel_value(v, x, vector(v, i, features), features);
    if (!v->classifier && v->supports) {
        scores[0] = weighted(v->coefficients, kernels, 0, v->supports) + (double)v->rho[0];
    } else if (v->supports) {
        pairwise(v, kernels, scores, m->votes);
    } else {
        for (int64_t c = 0; c < v->classes; c++)
            scores[c] =
                kernel_value(v, x, v->coefficients + c * features, features) + (double)v->rho[0];
    }
    if (v->one_class)
        scores[0] = scores[0] > 0 ? 1 : -1;
    if (v->has_prob)
        probabilities(v, m);
    if (v->classifier)
        *index = choose(v, scores, m->votes);
    if (!y)
        return;
    if (is_binary(v)) {
        sn_score_binary(v->post, (float)scores[0], true, y);
        return;
    }
    for (int64_t i = 0; i < out; i++)
        y[i] = (float)(v->has_prob ? m->p[i] : scores[i]);
    sn_score_apply(v->post, y, out);
}

void sn_svm_run(const sn_svm *v, const sn_svm_plan *plan, sonde_dtype t, const void *x, int64_t n,
                float *out, int64_t *index, void *workspace)
{
    const int64_t features = plan->features, scores = sn_svm_scores(v);
    const row_space m = {.row = sn_piece_at(workspace, plan->row),
                         .kernels = sn_piece_at(workspace, plan->kernels),
                         .scores = sn_piece_at(workspace, plan->scores),
                         .votes = sn_piece_at(workspace, plan->votes),
                         .p = sn_piece_at(workspace, plan->p),
                         .r = sn_piece_at(workspace, plan->r),
                         .q = sn_piece_at(workspace, plan->q),
                         .qp = sn_piece_at(workspace, plan->qp)};
    for (int64_t r = 0; r < n; r++) {
        for (int64_t i = 0; i < features; i++)
            m.row[i] = sn_elem_f64(t, x, r * features + i);
        svm_row(v, &m, features, out ? out + r * scores : NULL, &index[r]);
    }
}
