/* SPDX-License-Identifier: Apache-2.0 */
/* LinearClassifier and LinearRegressor: rows times coefficients plus intercepts, then a transform
 * of the scores. Sums are kept in double. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "ops/ml/shared.h"
#include "ops/shared/as_f32.h"

typedef struct linear_params {
    const float *coefficients, *intercepts;
    size_t n_coefficients, n_intercepts;
    int64_t targets; /* rows of coefficients; classifier: found from the intercepts or the labels */
    sn_ml_labels labels;
    sn_ml_post post;
    bool classifier, binary; /* binary: one score for two labels */
} linear_params;

typedef struct linear_bound {
    int64_t n, features, out;  /* out: scores per row */
    size_t index, room, score; /* workspace */
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
    SN_TRY(sn_ml_check(b, &k->n, &k->features));
    if ((size_t)l->targets * (size_t)k->features != l->n_coefficients)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%zu coefficients do not fit %lld features",
                            l->n_coefficients, (long long)k->features);
    k->out = l->binary ? 2 : l->targets;
    sn_room ws = {0};
    int64_t count;
    k->index = sn_room_take(&ws, k->n, sizeof(int64_t));
    k->room = sn_room_take(&ws, k->n, sizeof(sonde_string));
    k->score = sn_room_take(&ws, sn_i64_mul(k->n, k->out, &count) ? count : -1, sizeof(float));
    b->bound = k;
    b->kernel = "f64_linear";
    b->flops = 2 * (uint64_t)k->n * l->n_coefficients;
    return sn_room_done(b, &ws);
}

typedef struct linear_job {
    const linear_params *l;
    const linear_bound *k;
    const sn_tensor *x;
    float *scores;
    int64_t *index;
} linear_job;

static void linear_range(void *arg, size_t lo, size_t hi)
{
    const linear_job *j = arg;
    const linear_params *l = j->l;
    const int64_t features = j->k->features;
    for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {
        float *score = j->scores + r * j->k->out;
        int64_t best = 0;
        for (int64_t t = 0; t < l->targets; t++) {
            double sum = l->n_intercepts ? (double)l->intercepts[t] : 0.0;
            for (int64_t i = 0; i < features; i++)
                sum += sn_elem_f64(j->x->dtype, j->x->data, r * features + i) *
                       (double)l->coefficients[t * features + i];
            score[t] = (float)sum;
            best = score[t] > score[best] ? t : best;
        }
        if (l->classifier && l->targets == 1)
            best = score[0] > 0.0f;
        if (l->classifier)
            j->index[r] = best;
        if (l->binary)
            sn_ml_post_binary(l->post, score[0], true, score);
        else
            sn_ml_post_apply(l->post, score, l->targets);
    }
}

static sonde_status run_linear(const sn_step *s, sn_frame *f)
{
    const linear_params *l = s->params;
    const linear_bound *k = s->bound;
    const uint32_t scores = l->classifier ? 1 : 0;
    linear_job j = {.l = l,
                    .k = k,
                    .x = sn_in(s, f, 0),
                    .scores = sn_wants(s, scores) ? sn_out(s, f, scores)->data
                                                  : sn_space_f32(f, k->score),
                    .index = (int64_t *)(void *)(f->workspace + k->index)};
    sn_parallel_range(f->pool, (size_t)k->n, 2 * l->n_coefficients, linear_range, &j);
    if (!l->classifier)
        return SONDE_OK;
    return sn_ml_labels_write(s, f, 0, &l->labels, j.index, k->n,
                              (sonde_string *)(void *)(f->workspace + k->room));
}

#define LINEAR(symbol, NAME, OUTPUTS, PREPARE)                                                     \
    const sn_op symbol[] = {{SN_ML_HEAD(NAME, 1, 0, 1, 1, OUTPUTS),                                \
                             .params_size = sizeof(linear_params), .prepare = PREPARE,             \
                             .infer = infer_linear, .bind = bind_linear, .run = run_linear,        \
                             .types = SN_ML_NUMBERS},                                              \
                            {.name = NULL}};
LINEAR(sn_op_ml_linear_classifier, "LinearClassifier", 2, prepare_classifier)
LINEAR(sn_op_ml_linear_regressor, "LinearRegressor", 1, prepare_regressor)
