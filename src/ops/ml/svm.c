/* SPDX-License-Identifier: Apache-2.0 */
/* SVMClassifier and SVMRegressor. With support vectors every pair of classes votes by its own
 * decision function, and probabilities come from pairwise sigmoids made consistent (Wu, Lin and
 * Weng 2004, the second method); without, each class has one linear score. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "ops/ml/shared.h"
#include "ops/shared/as_f32.h"

typedef enum svm_kernel { SVM_LINEAR, SVM_POLY, SVM_RBF, SVM_SIGMOID } svm_kernel;

typedef struct svm_params {
    svm_kernel kernel;
    double gamma, coef0, degree;
    const float *coefficients, *vectors, *rho, *prob_a, *prob_b;
    size_t n_coefficients, n_vector_floats, n_rho, n_prob;
    int64_t supports; /* vectors; 0: linear mode */
    int64_t classes;
    const int64_t *per_class;
    int64_t *first; /* vector of each class */
    sn_ml_labels labels;
    sn_ml_post post;
    bool classifier, one_class, mixed;
} svm_params;

typedef struct svm_bound {
    int64_t n, features;
    int64_t scores;  /* raw ones per row */
    int64_t out;     /* those handed out */
    int64_t scratch; /* doubles per row */
    size_t index, room, rows, x;
} svm_bound;

/* ------------------------------------------------------------------ prepare */
static sonde_status read_kernel(sn_prep *p)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    svm_params *v = p->params;
    const char *name;
    const float *params;
    size_t n;
    SN_TRY(sn_prep_string(p, "kernel_type", "LINEAR", &name));
    SN_TRY(sn_prep_floats(p, "kernel_params", &params, &n));
    if (n != 0 && n != 3)
        return sn_prep_fail(p, "attribute 'kernel_params' has %zu numbers, expected 3", n);
    if (n) {
        v->gamma = (double)params[0];
        v->coef0 = (double)params[1];
        v->degree = (double)params[2];
    }
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            v->kernel = (svm_kernel)i;
            return SONDE_OK;
        }
    return sn_prep_fail(p, "attribute 'kernel_type' is '%s'", name);
}

static sonde_status read_common(sn_prep *p)
{
    svm_params *v = p->params;
    SN_TRY(read_kernel(p));
    SN_TRY(sn_prep_floats(p, "coefficients", &v->coefficients, &v->n_coefficients));
    SN_TRY(sn_prep_floats(p, "support_vectors", &v->vectors, &v->n_vector_floats));
    SN_TRY(sn_prep_floats(p, "rho", &v->rho, &v->n_rho));
    SN_TRY(sn_ml_post_read(p, &v->post));
    if (v->n_coefficients == 0 || v->n_rho == 0)
        return sn_prep_fail(p, "attributes 'coefficients' and 'rho' are required");
    for (size_t i = 0; i < v->n_coefficients; i++)
        v->mixed |= v->coefficients[i] < 0;
    return SONDE_OK;
}

static sonde_status prepare_regressor(sn_prep *p)
{
    svm_params *v = p->params;
    int64_t one;
    SN_TRY(read_common(p));
    SN_TRY(sn_prep_int(p, "n_supports", 0, &v->supports));
    SN_TRY(sn_prep_int(p, "one_class", 0, &one));
    v->one_class = one != 0;
    v->classes = 1;
    if (v->supports < 0 || (uint64_t)v->supports > v->n_coefficients ||
        (v->supports > 0 && v->n_vector_floats % (size_t)v->supports))
        return sn_prep_fail(p, "n_supports is %lld, with %zu coefficients", (long long)v->supports,
                            v->n_coefficients);
    if (v->supports == 0)
        v->kernel = SVM_LINEAR;
    return SONDE_OK;
}

static sonde_status prepare_classifier(sn_prep *p)
{
    svm_params *v = p->params;
    size_t n, n_b;
    v->classifier = true;
    SN_TRY(read_common(p));
    SN_TRY(sn_ml_labels_read(p, "classlabels_ints", &v->labels));
    SN_TRY(sn_prep_ints(p, "vectors_per_class", &v->per_class, &n));
    SN_TRY(sn_prep_floats(p, "prob_a", &v->prob_a, &v->n_prob));
    SN_TRY(sn_prep_floats(p, "prob_b", &v->prob_b, &n_b));
    v->classes = v->labels.n ? (int64_t)v->labels.n : n ? (int64_t)n : 1;
    if (n_b != v->n_prob)
        return sn_prep_fail(p, "prob_a and prob_b differ in length");
    for (size_t i = 0; i < n; i++)
        if (v->per_class[i] < 0 || !sn_i64_add(v->supports, v->per_class[i], &v->supports))
            return sn_prep_fail(p, "attribute 'vectors_per_class' has %lld",
                                (long long)v->per_class[i]);
    if (v->supports == 0) {
        v->kernel = SVM_LINEAR;
        v->n_prob = 0;
        return v->n_coefficients % (size_t)v->classes == 0
                   ? SONDE_OK
                   : sn_prep_fail(p, "the coefficients do not fit %lld classes",
                                  (long long)v->classes);
    }
    if ((int64_t)n != v->classes || v->classes > 65536)
        return sn_prep_fail(p, "there are %lld classes and vectors for %zu", (long long)v->classes,
                            n);
    const int64_t pairs = v->classes * (v->classes - 1) / 2;
    int64_t need;
    if (v->n_vector_floats % (size_t)v->supports || v->n_rho < (size_t)pairs ||
        (v->n_prob && v->n_prob < (size_t)pairs) ||
        !sn_i64_mul(v->supports, v->classes - 1, &need) || v->n_coefficients < (size_t)need)
        return sn_prep_fail(p, "coefficients, vectors or rho are too few for %lld classes",
                            (long long)v->classes);
    v->first = SN_NEW_N(p->arena, int64_t, n);
    if (!v->first)
        return sn_fail_memory(p->err, n * sizeof(int64_t));
    for (size_t i = 1; i < n; i++)
        v->first[i] = v->first[i - 1] + v->per_class[i - 1];
    return SONDE_OK;
}

/* ------------------------------------------------------------------ shapes */
static int64_t raw_scores(const svm_params *v)
{
    return v->classifier && v->supports > 0 ? v->classes * (v->classes - 1) / 2 : v->classes;
}

/* One raw score for two labels becomes two scores. */
static bool is_binary(const svm_params *v)
{
    return v->classifier && !v->n_prob && raw_scores(v) == 1 && v->labels.n == 2;
}

static int64_t out_scores(const svm_params *v)
{
    return v->n_prob ? v->classes : is_binary(v) ? 2 : raw_scores(v);
}

static sonde_status infer_svm(sn_infer *c)
{
    const svm_params *v = c->params;
    sn_dim dims[2];
    SN_TRY(sn_ml_infer_rows(c, &dims[0]));
    dims[1] = out_scores(v);
    if (!v->classifier)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 2);
    SN_TRY(
        sn_infer_tensor(c, 0, v->labels.strings ? SONDE_DTYPE_STRING : SONDE_DTYPE_I64, dims, 1));
    return sn_infer_tensor(c, 1, SONDE_DTYPE_F32, dims, 2);
}

static sonde_status bind_svm(sn_bind *b)
{
    const svm_params *v = b->params;
    svm_bound *k = SN_NEW(b->arena, svm_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(sn_ml_check(b, &k->n, &k->features));
    const size_t floats = v->supports ? v->n_vector_floats : v->n_coefficients;
    const size_t rows = (size_t)(v->supports ? v->supports : v->classes);
    if (rows * (size_t)k->features != floats)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the vectors do not have %lld features",
                            (long long)k->features);
    k->scores = raw_scores(v);
    k->out = out_scores(v);
    /* Kernel values, raw scores, votes, then for probabilities R, Q, Qp and P. */
    k->scratch = v->supports + k->scores + v->classes + k->out;
    if (v->n_prob)
        k->scratch += 2 * v->classes * v->classes + 2 * v->classes;
    sn_room ws = {0};
    int64_t count;
    k->index = sn_room_take(&ws, k->n, sizeof(int64_t));
    k->room = sn_room_take(&ws, k->n, sizeof(sonde_string));
    k->rows = sn_room_take(&ws, sn_i64_mul(k->n, k->scratch, &count) ? count : -1, sizeof(double));
    k->x = sn_room_take(&ws, k->features, sizeof(double));
    b->bound = k;
    b->kernel = "f64_svm";
    b->flops = 2 * (uint64_t)k->n * floats;
    return sn_room_done(b, &ws);
}

/* ------------------------------------------------------------------ run */
static double kernel_value(const svm_params *v, const double *x, const float *y, int64_t n)
{
    double sum = 0;
    if (v->kernel == SVM_RBF) {
        for (int64_t i = 0; i < n; i++)
            sum += (x[i] - (double)y[i]) * (x[i] - (double)y[i]);
        return exp(-v->gamma * sum);
    }
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * (double)y[i];
    if (v->kernel == SVM_POLY)
        return pow(v->gamma * sum + v->coef0, v->degree);
    return v->kernel == SVM_SIGMOID ? tanh(v->gamma * sum + v->coef0) : sum;
}

static double weighted(const float *w, const double *kernels, int64_t first, int64_t n)
{
    double sum = 0;
    for (int64_t i = first; i < first + n; i++)
        sum += (double)w[i] * kernels[i];
    return sum;
}

/* Decision values of all pairs of classes, and their votes. */
static void pairwise(const svm_params *v, const double *kernels, double *scores, double *votes)
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

static void probabilities(const svm_params *v, const double *scores, double *room, double *p)
{
    const int64_t k = v->classes;
    double *r = room, *q = r + k * k, *qp = q + k * k;
    int64_t pair = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++, pair++) {
            const double x = scores[pair] * (double)v->prob_a[pair] + (double)v->prob_b[pair];
            const double v1 = 1.0 / (1.0 + exp(x));
            r[i * k + j] = fmin(fmax(v1, 1e-7), 1 - 1e-7);
            r[j * k + i] = 1 - r[i * k + j];
        }
    join_probabilities(k, r, q, qp, p);
}

static int64_t largest(const double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* Which label a row gets, from its votes or, in linear mode, its scores. */
static int64_t choose(const svm_params *v, const double *scores, const double *votes)
{
    const bool linear = v->supports == 0;
    const int64_t best = linear ? largest(scores, v->classes) : largest(votes, v->classes);
    const double weight = linear ? scores[best] : votes[best];
    if (v->n_rho == 1 && v->labels.n == 2)
        return !v->n_prob && !v->mixed && weight >= 0.5 ? 1 : best;
    return v->labels.n < 2 && v->classes < 2 ? weight > 0 : best;
}

typedef struct svm_job {
    const svm_params *v;
    const svm_bound *k;
    const sn_tensor *x;
    double *rows;
    float *out; /* NULL: not wanted */
    int64_t *index;
} svm_job;

static void svm_row(const svm_job *j, int64_t r, const double *x)
{
    const svm_params *v = j->v;
    const svm_bound *k = j->k;
    double *kernels = j->rows + r * k->scratch, *scores = kernels + v->supports;
    double *votes = scores + k->scores, *probs = votes + v->classes, *room = probs + k->out;
    for (int64_t i = 0; i < v->supports; i++)
        kernels[i] = kernel_value(v, x, v->vectors + i * k->features, k->features);
    if (!v->classifier && v->supports) {
        scores[0] = weighted(v->coefficients, kernels, 0, v->supports) + (double)v->rho[0];
    } else if (v->supports) {
        pairwise(v, kernels, scores, votes);
    } else {
        for (int64_t c = 0; c < v->classes; c++)
            scores[c] = kernel_value(v, x, v->coefficients + c * k->features, k->features) +
                        (double)v->rho[0];
    }
    if (v->one_class)
        scores[0] = scores[0] > 0 ? 1 : -1;
    if (v->n_prob)
        probabilities(v, scores, room, probs);
    if (v->classifier)
        j->index[r] = choose(v, scores, votes);
    if (!j->out)
        return;
    float *y = j->out + r * k->out;
    if (is_binary(v)) {
        sn_ml_post_binary(v->post, (float)scores[0], true, y);
        return;
    }
    for (int64_t i = 0; i < k->out; i++)
        y[i] = (float)(v->n_prob ? probs[i] : scores[i]);
    sn_ml_post_apply(v->post, y, k->out);
}

static sonde_status run_svm(const sn_step *s, sn_frame *f)
{
    const svm_params *v = s->params;
    const svm_bound *k = s->bound;
    const uint32_t o = v->classifier ? 1 : 0;
    svm_job j = {.v = v,
                 .k = k,
                 .x = sn_in(s, f, 0),
                 .rows = (double *)(void *)(f->workspace + k->rows),
                 .out = sn_wants(s, o) ? sn_out(s, f, o)->data : NULL,
                 .index = (int64_t *)(void *)(f->workspace + k->index)};
    double *x = (double *)(void *)(f->workspace + k->x);
    for (int64_t r = 0; r < k->n; r++) {
        for (int64_t i = 0; i < k->features; i++)
            x[i] = sn_elem_f64(j.x->dtype, j.x->data, r * k->features + i);
        svm_row(&j, r, x);
    }
    if (!v->classifier)
        return SONDE_OK;
    return sn_ml_labels_write(s, f, 0, &v->labels, j.index, k->n,
                              (sonde_string *)(void *)(f->workspace + k->room));
}

#define SVM(symbol, NAME, OUTPUTS, PREPARE)                                                        \
    const sn_op symbol[] = {{SN_ML_HEAD(NAME, 1, 0, 1, 1, OUTPUTS),                                \
                             .params_size = sizeof(svm_params), .prepare = PREPARE,                \
                             .infer = infer_svm, .bind = bind_svm, .run = run_svm,                 \
                             .types = SN_ML_NUMBERS},                                              \
                            {.name = NULL}};
SVM(sn_op_ml_svm_classifier, "SVMClassifier", 2, prepare_classifier)
SVM(sn_op_ml_svm_regressor, "SVMRegressor", 1, prepare_regressor)
