/* SPDX-License-Identifier: Apache-2.0 */
/* LinearClassifier and LinearRegressor: rows times coefficients plus intercepts, then a transform
 * of the scores. Sums are kept in double. */
#include "compute/linear_model.h"
#include "compute/split.h"
#include "ops/ml/shared.h"

typedef struct linear_params {
    const float *coefficients, *intercepts;
    size_t n_coefficients, n_intercepts;
    int64_t targets; /* rows of coefficients; classifier: found from the intercepts or the labels */
    sn_ml_labels labels;
    sn_score_post post;
    bool classifier, binary; /* binary: one score for two labels */
} linear_params;

typedef struct linear_bound {
    sn_linear_model model;
    int64_t n;
    sn_piece index, labels, scores;
} linear_bound;

static sonde_status read_common(sn_prep *p)
{
    linear_params *l = p->params;
    SN_TRY(sn_prep_floats(p, "coefficients", &l->coefficients, &l->n_coefficients));
    SN_TRY(sn_prep_floats(p, "intercepts", &l->intercepts, &l->n_intercepts));
    SN_TRY(sn_ml_post_read(p, &l->post));
    if (l->n_coefficients == 0)
        return sn_prep_fail(p, "attribute 'coefficients' is missing");
    return SONDE_OK;
}

static sonde_status prepare_classifier(sn_prep *p)
{
    linear_params *l = p->params;
    l->classifier = true;
    SN_TRY(read_common(p));
    SN_TRY(sn_ml_labels_read(p, "classlabels_ints", &l->labels));
    l->targets = (int64_t)(l->n_intercepts ? l->n_intercepts : l->labels.n ? l->labels.n : 1);
    l->binary = l->targets == 1 && l->labels.n == 2;
    if (l->n_coefficients % (size_t)l->targets)
        return sn_prep_fail(p, "%zu coefficients do not fit %lld scores", l->n_coefficients,
                            (long long)l->targets);
    return SONDE_OK;
}

static sonde_status prepare_regressor(sn_prep *p)
{
    linear_params *l = p->params;
    SN_TRY(read_common(p));
    SN_TRY(sn_prep_int(p, "targets", 1, &l->targets));
    if (l->targets < 1 || (uint64_t)l->targets > l->n_coefficients ||
        l->n_coefficients % (size_t)l->targets ||
        (l->n_intercepts && l->n_intercepts != (size_t)l->targets))
        return sn_prep_fail(p, "%zu coefficients and %zu intercepts do not fit %lld targets",
                            l->n_coefficients, l->n_intercepts, (long long)l->targets);
    return SONDE_OK;
}

static sonde_status infer_linear(sn_infer *c)
{
    const linear_params *l = c->params;
    sn_dim dims[2];
    SN_TRY(sn_ml_infer_rows(c, &dims[0]));
    dims[1] = l->binary ? 2 : l->targets;
    if (!l->classifier)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 2);
    SN_TRY(
        sn_infer_tensor(c, 0, l->labels.strings ? SONDE_DTYPE_STRING : SONDE_DTYPE_I64, dims, 1));
    return sn_infer_tensor(c, 1, SONDE_DTYPE_F32, dims, 2);
}

static sonde_status bind_linear(sn_bind *b)
{
    const linear_params *l = b->params;
    linear_bound *k = SN_NEW(b->arena, linear_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    sn_linear_model *m = &k->model;
    SN_TRY(sn_ml_check(b, &k->n, &m->features));
    if ((size_t)l->targets * (size_t)m->features != l->n_coefficients)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%zu coefficients do not fit %lld features",
                            l->n_coefficients, (long long)m->features);
    m->coefficients = l->coefficients;
    m->intercepts = l->n_intercepts ? l->intercepts : NULL;
    m->targets = l->targets;
    m->post = l->post;
    m->classifier = l->classifier;
    m->binary = l->binary;
    const int64_t out = l->binary ? 2 : l->targets;
    k->index = sn_carve(&b->workspace, k->n, sizeof(int64_t));
    k->labels = sn_carve(&b->workspace, k->n, sizeof(sonde_string));
    k->scores = sn_carve(&b->workspace, sn_count(k->n, out, 1, 1), sizeof(float));
    b->bound = k;
    b->kernel = "f64_linear";
    b->arithmetic = SN_ARITH_F64;
    b->flops = 2 * (uint64_t)k->n * l->n_coefficients;
    return SONDE_OK;
}

static sonde_status run_linear(const sn_step *s, sn_frame *f)
{
    const linear_params *l = s->params;
    const linear_bound *k = s->bound;
    const uint32_t scores = l->classifier ? 1 : 0;
    const sn_tensor *x = sn_in(s, f, 0);
    int64_t *index = sn_piece_ptr(f, k->index);
    sn_linear_model_run(&k->model, x->dtype, x->data, k->n,
                        sn_wants(s, scores) ? sn_out(s, f, scores)->data
                                            : sn_piece_ptr(f, k->scores),
                        index, f->pool);
    if (!l->classifier)
        return SONDE_OK;
    return sn_ml_labels_write(s, f, 0, &l->labels, index, k->n, sn_piece_ptr(f, k->labels));
}

#define LINEAR(symbol, NAME, OUTPUTS, PREPARE)                                                     \
    const sn_op symbol[] = {{SN_ML_HEAD(NAME, 1, 0, 1, 1, OUTPUTS),                                \
                             .params_size = sizeof(linear_params), .prepare = PREPARE,             \
                             .infer = infer_linear, .bind = bind_linear, .run = run_linear,        \
                             .types = SN_ML_NUMBERS},                                              \
                            {.name = NULL}};
LINEAR(sn_op_ml_linear_classifier, "LinearClassifier", 2, prepare_classifier)
LINEAR(sn_op_ml_linear_regressor, "LinearRegressor", 1, prepare_regressor)
