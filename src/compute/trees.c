/* SPDX-License-Identifier: Apache-2.0 */
/* Walking decision trees; rows run side by side. */
#include "compute/trees.h"

#include <math.h>

#include "compute/element.h"
#include "compute/parallel.h"

/* ------------------------------------------------------------------ walking */
static bool takes_yes(const sn_trees *t, const sn_tree_node *n, double v)
{
    if (isnan(v))
        return n->nan_true;
    switch (n->mode) {
    case SN_TREE_LEQ:
        return v <= n->split;
    case SN_TREE_LT:
        return v < n->split;
    case SN_TREE_GTE:
        return v >= n->split;
    case SN_TREE_GT:
        return v > n->split;
    case SN_TREE_EQ:
        return v == n->split;
    case SN_TREE_NEQ:
        return v != n->split;
    case SN_TREE_MEMBER:
        for (int64_t i = n->first; i < n->end; i++)
            if (t->members[i] == v)
                return true;
        return false;
    case SN_TREE_LEAF:
        break;
    }
    return false;
}

static void add_weight(const sn_trees *t, double *sum, bool *seen, double w)
{
    if (t->join == SN_TREE_MIN)
        *sum = !*seen || w < *sum ? w : *sum;
    else if (t->join == SN_TREE_MAX)
        *sum = !*seen || w > *sum ? w : *sum;
    else
        *sum += w;
    *seen = true;
}

static void walk_row(const sn_trees *t, sonde_dtype dtype, const void *x, int64_t row,
                     int64_t features, int64_t targets, double *out, bool *seen)
{
    for (int64_t i = 0; i < targets; i++) {
        out[i] = 0;
        seen[i] = false;
    }
    for (int64_t r = 0; r < t->n_roots; r++) {
        const sn_tree_node *n = &t->nodes[t->roots[r]];
        while (n->mode != SN_TREE_LEAF) {
            const double v = sn_elem_f64(dtype, x, row * features + n->feature);
            n = &t->nodes[takes_yes(t, n, v) ? n->yes : n->no];
        }
        for (int64_t i = n->first; i < n->end; i++)
            add_weight(t, &out[t->weights[i].target], &seen[t->weights[i].target],
                       t->weights[i].weight);
    }
    for (int64_t i = 0; i < targets; i++) {
        if (t->join == SN_TREE_AVERAGE && t->n_roots > 0)
            out[i] /= (double)t->n_roots;
        if (t->n_base == (size_t)targets)
            out[i] += t->base[i];
    }
}

/* ------------------------------------------------------------------ rows */
typedef struct tree_job {
    const sn_trees *t;
    const sn_tree_votes *v;
    int64_t features;
    const sn_trees_args *a;
} tree_job;

static void tree_range(void *arg, size_t lo, size_t hi)
{
    const tree_job *j = arg;
    const sn_trees *t = j->t;
    const sn_tree_votes *v = j->v;
    const sn_trees_args *a = j->a;
    const int64_t n = v->targets;
    for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {
        double *sum = a->sums + r * n;
        float *score = a->scores + r * n;
        walk_row(t, a->x_type, a->x, r, j->features, n, sum, a->seen + r * n);
        if (v->binary) {
            double s = sum[v->voted];
            if (t->n_base == 1)
                s += t->base[0];
            a->index[r] = v->mixed ? s > 0 : s > 0.5;
            sn_score_binary(v->post, (float)s, v->mixed, score);
        } else {
            int64_t best = 0;
            for (int64_t i = 0; i < n; i++) {
                best = sum[i] > sum[best] ? i : best;
                score[i] = (float)sum[i];
            }
            a->index[r] = best;
            if (v->post != SN_SCORE_NONE)
                sn_score_apply(v->post, score, n);
        }
        for (int64_t i = 0; a->y && i < n; i++)
            sn_elem_set_f64(a->y_type, a->y, r * n + i,
                            v->post == SN_SCORE_NONE && !v->binary ? sum[i] : (double)score[i]);
    }
}

void sn_trees_run(const sn_trees *t, const sn_tree_votes *v, int64_t n, int64_t features,
                  const sn_trees_args *a, sn_pool *pool)
{
    tree_job j = {t, v, features, a};
    sn_parallel_range(pool, (size_t)n, 100 * (size_t)t->n_roots + 1, tree_range, &j);
}
