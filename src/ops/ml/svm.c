/* SPDX-License-Identifier: Apache-2.0 */
/* SVMClassifier and SVMRegressor: attributes and shapes; compute/svm.h has the model. */
#include <string.h>

#include "compute/split.h"
#include "compute/svm.h"
#include "ops/ml/shared.h"

typedef struct svm_params {
    sn_svm model;
    size_t n_coefficients, n_vector_floats, n_prob;
    sn_ml_labels labels;
} svm_params;

typedef struct svm_bound {
    int64_t n, features;
    sn_svm_plan plan;
    sn_piece index, labels, core;
} svm_bound;

/* ------------------------------------------------------------------ prepare */
static sonde_status read_kernel(sn_prep *p)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    svm_params *v = p->params;
    sn_svm *m = &v->model;
    const char *name;
    const float *params;
    size_t n;
    SN_TRY(sn_prep_string(p, "kernel_type", "LINEAR", &name));
    SN_TRY(sn_prep_floats(p, "kernel_params", &params, &n));
    if (n != 0 && n != 3)
        return sn_prep_fail(p, "attribute 'kernel_params' has %zu numbers, expected 3", n);
    if (n) {
        m->gamma = (double)params[0];
        m->coef0 = (double)params[1];
        m->degree = (double)params[2];
    }
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            m->kernel = (sn_svm_kernel)i;
            return SONDE_OK;
        }
    return sn_prep_fail(p, "attribute 'kernel_type' is '%s'", name);
}

static sonde_status read_common(sn_prep *p)
{
    svm_params *v = p->params;
    sn_svm *m = &v->model;
    SN_TRY(read_kernel(p));
    SN_TRY(sn_prep_floats(p, "coefficients", &m->coefficients, &v->n_coefficients));
    SN_TRY(sn_prep_floats(p, "support_vectors", &m->vectors, &v->n_vector_floats));
    SN_TRY(sn_prep_floats(p, "rho", &m->rho, &m->n_rho));
    SN_TRY(sn_ml_post_read(p, &m->post));
    if (v->n_coefficients == 0 || m->n_rho == 0)
        return sn_prep_fail(p, "attributes 'coefficients' and 'rho' are required");
    for (size_t i = 0; i < v->n_coefficients; i++)
        m->mixed |= m->coefficients[i] < 0;
    return SONDE_OK;
}

static sonde_status prepare_regressor(sn_prep *p)
{
    svm_params *v = p->params;
    sn_svm *m = &v->model;
    int64_t one;
    SN_TRY(read_common(p));
    SN_TRY(sn_prep_int(p, "n_supports", 0, &m->supports));
    SN_TRY(sn_prep_int(p, "one_class", 0, &one));
    m->one_class = one != 0;
    m->classes = 1;
    if (m->supports < 0 || (uint64_t)m->supports > v->n_coefficients ||
        (m->supports > 0 && v->n_vector_floats % (size_t)m->supports))
        return sn_prep_fail(p, "n_supports is %lld, with %zu coefficients", (long long)m->supports,
                            v->n_coefficients);
    if (m->supports == 0)
        m->kernel = SN_SVM_LINEAR;
    return SONDE_OK;
}

static sonde_status prepare_classifier(sn_prep *p)
{
    svm_params *v = p->params;
    sn_svm *m = &v->model;
    size_t n, n_b;
    m->classifier = true;
    SN_TRY(read_common(p));
    SN_TRY(sn_ml_labels_read(p, "classlabels_ints", &v->labels));
    SN_TRY(sn_prep_ints(p, "vectors_per_class", &m->per_class, &n));
    SN_TRY(sn_prep_floats(p, "prob_a", &m->prob_a, &v->n_prob));
    SN_TRY(sn_prep_floats(p, "prob_b", &m->prob_b, &n_b));
    m->n_labels = v->labels.n;
    m->classes = v->labels.n ? (int64_t)v->labels.n : n ? (int64_t)n : 1;
    if (n_b != v->n_prob)
        return sn_prep_fail(p, "prob_a and prob_b differ in length");
    for (size_t i = 0; i < n; i++)
        if (m->per_class[i] < 0 || !sn_i64_add(m->supports, m->per_class[i], &m->supports))
            return sn_prep_fail(p, "attribute 'vectors_per_class' has %lld",
                                (long long)m->per_class[i]);
    if (m->supports == 0) {
        m->kernel = SN_SVM_LINEAR;
        return v->n_coefficients % (size_t)m->classes == 0
                   ? SONDE_OK
                   : sn_prep_fail(p, "the coefficients do not fit %lld classes",
                                  (long long)m->classes);
    }
    if ((int64_t)n != m->classes || m->classes > 65536)
        return sn_prep_fail(p, "there are %lld classes and vectors for %zu", (long long)m->classes,
                            n);
    const int64_t pairs = m->classes * (m->classes - 1) / 2;
    int64_t need;
    if (v->n_vector_floats % (size_t)m->supports || m->n_rho < (size_t)pairs ||
        (v->n_prob && v->n_prob < (size_t)pairs) ||
        !sn_i64_mul(m->supports, m->classes - 1, &need) || v->n_coefficients < (size_t)need)
        return sn_prep_fail(p, "coefficients, vectors or rho are too few for %lld classes",
                            (long long)m->classes);
    m->has_prob = v->n_prob > 0;
    int64_t *first = SN_NEW_N(p->arena, int64_t, n);
    if (!first)
        return sn_fail_memory(p->err, n * sizeof(int64_t));
    for (size_t i = 1; i < n; i++)
        first[i] = first[i - 1] + m->per_class[i - 1];
    m->first = first;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ shapes */
static sonde_status infer_svm(sn_infer *c)
{
    const svm_params *v = c->params;
    sn_dim dims[2];
    SN_TRY(sn_ml_infer_rows(c, &dims[0]));
    dims[1] = sn_svm_scores(&v->model);
    if (!v->model.classifier)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 2);
    SN_TRY(
        sn_infer_tensor(c, 0, v->labels.strings ? SONDE_DTYPE_STRING : SONDE_DTYPE_I64, dims, 1));
    return sn_infer_tensor(c, 1, SONDE_DTYPE_F32, dims, 2);
}

static sonde_status bind_svm(sn_bind *b)
{
    const svm_params *v = b->params;
    const sn_svm *m = &v->model;
    svm_bound *k = SN_NEW(b->arena, svm_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(sn_ml_check(b, &k->n, &k->features));
    const size_t floats = m->supports ? v->n_vector_floats : v->n_coefficients;
    const size_t rows = (size_t)(m->supports ? m->supports : m->classes);
    if (rows * (size_t)k->features != floats)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the vectors do not have %lld features",
                            (long long)k->features);
    k->index = sn_carve(&b->workspace, k->n, sizeof(int64_t));
    k->labels = sn_carve(&b->workspace, k->n, sizeof(sonde_string));
    k->plan = sn_svm_plan_make(m, k->features);
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = "f64_svm";
    b->arithmetic = SN_ARITH_F64;
    b->flops = 2 * (uint64_t)k->n * floats;
    return SONDE_OK;
}

static sonde_status run_svm(const sn_step *s, sn_frame *f)
{
    const svm_params *v = s->params;
    const svm_bound *k = s->bound;
    const sn_svm *m = &v->model;
    const uint32_t o = m->classifier ? 1 : 0;
    const sn_tensor *x = sn_in(s, f, 0);
    int64_t *index = sn_piece_ptr(f, k->index);
    sn_svm_run(m, &k->plan, x->dtype, x->data, k->n, sn_wants(s, o) ? sn_out(s, f, o)->data : NULL,
               index, sn_piece_ptr(f, k->core));
    if (!m->classifier)
        return SONDE_OK;
    return sn_ml_labels_write(s, f, 0, &v->labels, index, k->n, sn_piece_ptr(f, k->labels));
}

#define SVM(symbol, NAME, OUTPUTS, PREPARE)                                                        \
    const sn_op symbol[] = {{SN_ML_HEAD(NAME, 1, 0, 1, 1, OUTPUTS),                                \
                             .params_size = sizeof(svm_params), .prepare = PREPARE,                \
                             .infer = infer_svm, .bind = bind_svm, .run = run_svm,                 \
                             .types = SN_ML_NUMBERS},                                              \
                            {.name = NULL}};
SVM(sn_op_ml_svm_classifier, "SVMClassifier", 2, prepare_classifier)
SVM(sn_op_ml_svm_regressor, "SVMRegressor", 1, prepare_regressor)
