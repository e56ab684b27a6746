/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble. Rows run side by side. */
#include <string.h>

#include "compute/split.h"
#include "ops/ml/tree.h"

typedef struct tree_params {
    sn_trees trees;
    sn_tree_votes votes;
    sn_ml_labels labels;
    bool classifier, flat;
} tree_params;

typedef struct tree_bound {
    int64_t n, features;
    sn_piece index, labels, sums, seen, scores;
} tree_bound;

static sonde_status check_targets(sn_prep *p)
{
    const tree_params *t = p->params;
    for (int64_t i = 0; i < t->trees.n_weights; i++)
        if (t->trees.weights[i].target < 0 || t->trees.weights[i].target >= t->votes.targets)
            return sn_prep_fail(p, "a leaf refers to target %lld of %lld",
                                (long long)t->trees.weights[i].target, (long long)t->votes.targets);
    return SONDE_OK;
}

static sonde_status prepare_classifier(sn_prep *p)
{
    tree_params *t = p->params;
    t->classifier = true;
    t->trees.join = SN_TREE_SUM;
    SN_TRY(sn_trees_read(p, "class", &t->trees));
    SN_TRY(sn_ml_labels_read(p, "classlabels_int64s", &t->labels));
    SN_TRY(sn_ml_post_read(p, &t->votes.post));
    t->votes.targets = (int64_t)t->labels.n;
    if (t->votes.targets < 1)
        return sn_prep_fail(p, "there are no class labels");
    SN_TRY(check_targets(p));
    t->votes.binary = t->votes.targets == 2 && t->trees.n_weights > 0;
    t->votes.voted = t->trees.n_weights > 0 ? t->trees.weights[0].target : 0;
    for (int64_t i = 0; i < t->trees.n_weights; i++) {
        t->votes.binary &= t->trees.weights[i].target == t->votes.voted;
        t->votes.mixed |= t->trees.weights[i].weight < 0;
    }
    /* Positive votes without a transform are a probability; else the sign decides. */
    t->votes.mixed |= t->votes.post == SN_SCORE_LOGISTIC || t->votes.post == SN_SCORE_SOFTMAX ||
                      t->votes.post == SN_SCORE_SOFTMAX_ZERO;
    return SONDE_OK;
}

static sonde_status prepare_regressor(sn_prep *p)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    tree_params *t = p->params;
    const char *join;
    int found = -1;
    SN_TRY(sn_trees_read(p, "target", &t->trees));
    SN_TRY(sn_ml_post_read(p, &t->votes.post));
    SN_TRY(sn_prep_int(p, "n_targets", 1, &t->votes.targets));
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
    SN_TRY(sn_prep_int(p, "n_targets", 1, &t->votes.targets));
    SN_TRY(sn_prep_int(p, "aggregate_function", 1, &join));
    SN_TRY(sn_prep_int(p, "post_transform", 0, &post));
    if (join < 0 || join > 3 || post < 0 || post > 4)
        return sn_prep_fail(p, "aggregate_function or post_transform is unknown");
    t->trees.join = (sn_tree_join)join;
    t->votes.post = (sn_score_post)post;
    return check_targets(p);
}

static sonde_status infer_tree(sn_infer *c)
{
    const tree_params *t = c->params;
    sn_dim dims[2];
    SN_TRY(sn_ml_infer_rows(c, &dims[0]));
    dims[1] = t->votes.targets;
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
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the tree uses feature %lld, but the input has %lld features",
                            (long long)t->trees.max_feature, (long long)k->features);
    const int64_t count = sn_count(k->n, t->votes.targets, 1, 1);
    k->index = sn_carve(&b->workspace, k->n, sizeof(int64_t));
    k->labels = sn_carve(&b->workspace, k->n, sizeof(sonde_string));
    k->sums = sn_carve(&b->workspace, count, sizeof(double));
    k->seen = sn_carve(&b->workspace, count, sizeof(bool));
    k->scores = sn_carve(&b->workspace, count, sizeof(float));
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the result is too large");
    b->bound = k;
    b->kernel = "f64_trees";
    b->arithmetic = SN_ARITH_F64;
    b->flops = (uint64_t)k->n * (uint64_t)t->trees.n_roots * 8;
    return SONDE_OK;
}

static sonde_status run_tree(const sn_step *s, sn_frame *f)
{
    const tree_params *t = s->params;
    const tree_bound *k = s->bound;
    const uint32_t o = t->classifier ? 1 : 0;
    sn_trees_args a = {.x_type = sn_in(s, f, 0)->dtype,
                       .x = sn_in(s, f, 0)->data,
                       .index = sn_piece_ptr(f, k->index),
                       .sums = sn_piece_ptr(f, k->sums),
                       .seen = sn_piece_ptr(f, k->seen),
                       .scores = sn_piece_ptr(f, k->scores)};
    if (sn_wants(s, o)) {
        a.y_type = sn_out(s, f, o)->dtype;
        a.y = sn_out(s, f, o)->data;
    }
    sn_trees_run(&t->trees, &t->votes, k->n, k->features, &a, f->pool);
    if (!t->classifier)
        return SONDE_OK;
    return sn_ml_labels_write(s, f, 0, &t->labels, a.index, k->n, sn_piece_ptr(f, k->labels));
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
