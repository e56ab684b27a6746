/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble. Rows run side by side. */
#include <string.h>

#include "compute/eltwise.h"
#include "ops/ml/tree.h"
#include "ops/shared/as_f32.h"

typedef struct tree_params {
    sn_trees trees;
    int64_t targets;
    sn_ml_labels labels;
    sn_ml_post post;
    bool classifier, flat;
    /* Two labels whose votes all go to one class: one score decides. */
    bool binary, mixed;
    int64_t voted;
} tree_params;

typedef struct tree_bound {
    int64_t n, features, out;
    size_t index, room, sums, seen, scores;
} tree_bound;

static sonde_status check_targets(sn_prep *p)
{
    const tree_params *t = p->params;
    for (int64_t i = 0; i < t->trees.n_weights; i++)
        if (t->trees.weights[i].target < 0 || t->trees.weights[i].target >= t->targets)
            return sn_prep_fail(p, "a leaf votes for target %lld of %lld",
                                (long long)t->trees.weights[i].target, (long long)t->targets);
    return SONDE_OK;
}

static sonde_status prepare_classifier(sn_prep *p)
{
    tree_params *t = p->params;
    t->classifier = true;
    t->trees.join = SN_TREE_SUM;
    SN_TRY(sn_trees_read(p, "class", &t->trees));
    SN_TRY(sn_ml_labels_read(p, "classlabels_int64s", &t->labels));
    SN_TRY(sn_ml_post_read(p, &t->post));
    t->targets = (int64_t)t->labels.n;
    if (t->targets < 1)
        return sn_prep_fail(p, "there are no class labels");
    SN_TRY(check_targets(p));
    t->binary = t->targets == 2 && t->trees.n_weights > 0;
    t->voted = t->trees.n_weights > 0 ? t->trees.weights[0].target : 0;
    for (int64_t i = 0; i < t->trees.n_weights; i++) {
        t->binary &= t->trees.weights[i].target == t->voted;
        t->mixed |= t->trees.weights[i].weight < 0;
    }
    /* Positive votes without a transform are a probability; else the sign decides. */
    t->mixed |=
        t->post == SN_ML_LOGISTIC || t->post == SN_ML_SOFTMAX || t->post == SN_ML_SOFTMAX_ZERO;
    return SONDE_OK;
}

static sonde_status prepare_regressor(sn_prep *p)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    tree_params *t = p->params;
    const char *join;
    int found = -1;
    SN_TRY(sn_trees_read(p, "target", &t->trees));
    SN_TRY(sn_ml_post_read(p, &t->post));
    SN_TRY(sn_prep_int(p, "n_targets", 1, &t->targets));
    SN_TRY(sn_prep_string(p, "aggregate_function", "SUM", &join));
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], join) == 0)
            found = i;
    if (found < 0)
        return sn_prep_fail(p, "attribute 'aggregate_function' is '%s'", join);
    t->trees.join = (sn_tree_join)found;
    return check_targets(p);
}

static sonde_status prepare_ensemble(sn_prep *p)
{
    tree_params *t = p->params;
    int64_t join, post;
    t->flat = true;
    SN_TRY(sn_trees_read_flat(p, &t->trees));
    SN_TRY(sn_prep_int(p, "n_targets", 1, &t->targets));
    SN_TRY(sn_prep_int(p, "aggregate_function", 1, &join));
    SN_TRY(sn_prep_int(p, "post_transform", 0, &post));
    if (join < 0 || join > 3 || post < 0 || post > 4)
        return sn_prep_fail(p, "aggregate_function or post_transform is unknown");
    t->trees.join = (sn_tree_join)join;
    t->post = (sn_ml_post)post;
    return check_targets(p);
}

static sonde_status infer_tree(sn_infer *c)
{
    const tree_params *t = c->params;
    sn_dim dims[2];
    SN_TRY(sn_ml_infer_rows(c, &dims[0]));
    dims[1] = t->targets;
    if (!t->classifier)
        return sn_infer_tensor(c, 0, t->flat ? c->in[0]->type.dtype : SONDE_DTYPE_F32, dims, 2);
    SN_TRY(
        sn_infer_tensor(c, 0, t->labels.strings ? SONDE_DTYPE_STRING : SONDE_DTYPE_I64, dims, 1));
    return sn_infer_tensor(c, 1, SONDE_DTYPE_F32, dims, 2);
}

static sonde_status bind_tree(sn_bind *b)
{
    const tree_params *t = b->params;
    tree_bound *k = SN_NEW(b->arena, tree_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (t->flat && b->in[0]->type.dtype == SONDE_DTYPE_F16) {
        if (!sn_ml_rows(&b->in[0]->type, &k->n, &k->features))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the input must have rank 1 or 2");
    } else {
        SN_TRY(sn_ml_check(b, &k->n, &k->features));
    }
    if (k->n > 0 && t->trees.max_feature >= k->features)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "feature %lld is asked for, the input has %lld",
                            (long long)t->trees.max_feature, (long long)k->features);
    k->out = t->targets;
    int64_t count = 0;
    if (!sn_i64_mul(k->n, t->targets, &count))
        return sn_bind_fail(b, SONDE_LIMIT, "the result is too large");
    sn_room ws = {0};
    k->index = sn_room_take(&ws, k->n, sizeof(int64_t));
    k->room = sn_room_take(&ws, k->n, sizeof(sonde_string));
    k->sums = sn_room_take(&ws, count, sizeof(double));
    k->seen = sn_room_take(&ws, count, sizeof(bool));
    k->scores = sn_room_take(&ws, count, sizeof(float));
    b->bound = k;
    b->kernel = "f64_trees";
    b->flops = (uint64_t)k->n * (uint64_t)t->trees.n_roots * 8;
    return sn_room_done(b, &ws);
}

typedef struct tree_job {
    const tree_params *t;
    const tree_bound *k;
    const sn_tensor *x;
    sn_tensor *y; /* NULL: not wanted */
    double *sums;
    bool *seen;
    float *scores;
    int64_t *index;
} tree_job;

static void tree_range(void *arg, size_t lo, size_t hi)
{
    const tree_job *j = arg;
    const tree_params *t = j->t;
    const int64_t n = t->targets;
    for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {
        double *sum = j->sums + r * n;
        float *score = j->scores + r * n;
        sn_trees_row(&t->trees, j->x->dtype, j->x->data, r, j->k->features, n, sum,
                     j->seen + r * n);
        if (t->binary) {
            double s = sum[t->voted];
            if (t->trees.n_base == 1)
                s += t->trees.base[0];
            j->index[r] = t->mixed ? s > 0 : s > 0.5;
            sn_ml_post_binary(t->post, (float)s, t->mixed, score);
        } else {
            int64_t best = 0;
            for (int64_t i = 0; i < n; i++) {
                best = sum[i] > sum[best] ? i : best;
                score[i] = (float)sum[i];
            }
            j->index[r] = best;
            if (t->post != SN_ML_NONE)
                sn_ml_post_apply(t->post, score, n);
        }
        for (int64_t i = 0; j->y && i < n; i++)
            sn_elem_set_f64(j->y->dtype, j->y->data, r * n + i,
                            t->post == SN_ML_NONE && !t->binary ? sum[i] : (double)score[i]);
    }
}

static sonde_status run_tree(const sn_step *s, sn_frame *f)
{
    const tree_params *t = s->params;
    const tree_bound *k = s->bound;
    const uint32_t o = t->classifier ? 1 : 0;
    tree_job j = {.t = t,
                  .k = k,
                  .x = sn_in(s, f, 0),
                  .y = sn_wants(s, o) ? sn_out(s, f, o) : NULL,
                  .sums = (double *)(void *)(f->workspace + k->sums),
                  .seen = (bool *)(void *)(f->workspace + k->seen),
                  .scores = sn_space_f32(f, k->scores),
                  .index = (int64_t *)(void *)(f->workspace + k->index)};
    sn_parallel_range(f->pool, (size_t)k->n, 100 * (size_t)t->trees.n_roots + 1, tree_range, &j);
    if (!t->classifier)
        return SONDE_OK;
    return sn_ml_labels_write(s, f, 0, &t->labels, j.index, k->n,
                              (sonde_string *)(void *)(f->workspace + k->room));
}

#define TREES(symbol, NAME, SINCE, OUTPUTS, PREPARE, TYPES)                                        \
    const sn_op symbol[] = {{SN_ML_HEAD(NAME, SINCE, 0, 1, 1, OUTPUTS),                            \
                             .params_size = sizeof(tree_params), .prepare = PREPARE,               \
                             .infer = infer_tree, .bind = bind_tree, .run = run_tree,              \
                             .types = TYPES},                                                      \
                            {.name = NULL}};
TREES(sn_op_ml_tree_ensemble_classifier, "TreeEnsembleClassifier", 1, 2, prepare_classifier,
      SN_ML_NUMBERS)
TREES(sn_op_ml_tree_ensemble_regressor, "TreeEnsembleRegressor", 1, 1, prepare_regressor,
      SN_ML_NUMBERS)
TREES(sn_op_ml_tree_ensemble, "TreeEnsemble", 5, 1, prepare_ensemble, "f32 f64 f16")
