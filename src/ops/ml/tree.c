/* SPDX-License-Identifier: Apache-2.0 */
/* Reading decision trees; see tree.h. */
#include "ops/ml/tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ node ids */
typedef struct place {
    int64_t tree, node, at;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* -1: no such node. */
static int64_t find_place(const place *list, int64_t n, int64_t tree, int64_t node)
{
    const place key = {tree, node, 0};
    const place *hit = bsearch(&key, list, (size_t)n, sizeof *list, by_place);
    return hit ? hit->at : -1;
}

/* ------------------------------------------------------------------ checking */
/* Every walk from a root ends: no node is its own descendant. Linear, without recursion. */
static sonde_status check_ends(sn_prep *p, const sn_trees *t)
{
    enum { NEW, OPEN, DONE };
    uint8_t *state = SN_NEW_N(p->arena, uint8_t, t->n_nodes + 1);
    int64_t *stack = SN_NEW_N(p->arena, int64_t, t->n_nodes + 1);
    if (!state || !stack)
        return sn_fail_memory(p->err, (size_t)t->n_nodes * 9);
    for (int64_t r = 0; r < t->n_roots; r++) {
        int64_t depth = 0;
        if (state[t->roots[r]] == NEW) {
            stack[depth++] = t->roots[r];
            state[t->roots[r]] = OPEN;
        }
        while (depth > 0) {
            const int64_t at = stack[depth - 1];
            const sn_tree_node *n = &t->nodes[at];
            int64_t next = -1;
            if (n->mode != SN_TREE_LEAF)
                next = state[n->yes] != DONE ? n->yes : state[n->no] != DONE ? n->no : -1;
            if (next < 0) {
                state[at] = DONE;
                depth--;
            } else if (state[next] == OPEN) {
                return sn_prep_fail(p, "node %lld of a tree is its own descendant",
                                    (long long)next);
            } else {
                state[next] = OPEN;
                stack[depth++] = next;
            }
        }
    }
    return SONDE_OK;
}

static sonde_status new_nodes(sn_prep *p, sn_trees *t)
{
    t->nodes = SN_NEW_N(p->arena, sn_tree_node, t->n_nodes);
    t->weights = SN_NEW_N(p->arena, sn_tree_weight, t->n_weights + 1);
    t->roots = SN_NEW_N(p->arena, int64_t, t->n_nodes);
    if (!t->nodes || !t->weights || !t->roots)
        return sn_fail_memory(p->err, (size_t)t->n_nodes * sizeof(sn_tree_node));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ nodes by tree and id */
static sonde_status ints_of(sn_prep *p, const char *name, size_t n, const int64_t **out)
{
    size_t have;
    SN_TRY(sn_prep_ints(p, name, out, &have));
    if (have != n)
        return sn_prep_fail(p, "attribute '%s' has %zu entries, expected %zu", name, have, n);
    return SONDE_OK;
}

static bool mode_of(sonde_string s, sn_tree_mode *mode)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    for (int i = 0; i < 8; i++)
        if (names[i][0] && s.size == strlen(names[i]) && memcmp(s.data, names[i], s.size) == 0) {
            *mode = (sn_tree_mode)i;
            return true;
        }
    return false;
}

/* The votes of each leaf, one after the other. */
static sonde_status read_votes(sn_prep *p, const char *votes, sn_trees *t, const place *places)
{
    char name[4][32];
    static const char *const parts[] = {"treeids", "nodeids", "ids", "weights"};
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s_%s", votes, parts[i]);
    const int64_t *trees, *nodes, *ids;
    const double *weights;
    size_t n;
    SN_TRY(sn_ml_doubles(p, name[3], &weights, &n));
    SN_TRY(ints_of(p, name[0], n, &trees));
    SN_TRY(ints_of(p, name[1], n, &nodes));
    SN_TRY(ints_of(p, name[2], n, &ids));
    int64_t *leaf = SN_NEW_N(p->arena, int64_t, n + 1);
    t->n_weights = (int64_t)n;
    t->weights = SN_NEW_N(p->arena, sn_tree_weight, n + 1);
    if (!leaf || !t->weights)
        return sn_fail_memory(p->err, n * sizeof(sn_tree_weight));
    for (size_t i = 0; i < n; i++) {
        leaf[i] = find_place(places, t->n_nodes, trees[i], nodes[i]);
        if (leaf[i] < 0 || t->nodes[leaf[i]].mode != SN_TREE_LEAF)
            return sn_prep_fail(p, "node %lld of tree %lld is not a leaf", (long long)nodes[i],
                                (long long)trees[i]);
        t->nodes[leaf[i]].end++;
    }
    int64_t at = 0;
    for (int64_t i = 0; i < t->n_nodes; i++) {
        const int64_t count = t->nodes[i].end;
        t->nodes[i].first = t->nodes[i].end = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++)
        t->weights[t->nodes[leaf[i]].end++] = (sn_tree_weight){ids[i], weights[i]};
    return SONDE_OK;
}

sonde_status sn_trees_read(sn_prep *p, const char *votes, sn_trees *t)
{
    const int64_t *trees, *ids, *features, *yes, *no, *nan = NULL;
    const sonde_string *modes;
    const double *splits;
    size_t n, n_modes, n_splits, n_nan;
    SN_TRY(sn_prep_ints(p, "nodes_treeids", &trees, &n));
    SN_TRY(ints_of(p, "nodes_nodeids", n, &ids));
    SN_TRY(ints_of(p, "nodes_featureids", n, &features));
    SN_TRY(ints_of(p, "nodes_truenodeids", n, &yes));
    SN_TRY(ints_of(p, "nodes_falsenodeids", n, &no));
    SN_TRY(sn_prep_strings(p, "nodes_modes", &modes, &n_modes));
    SN_TRY(sn_ml_doubles(p, "nodes_values", &splits, &n_splits));
    SN_TRY(sn_prep_ints(p, "nodes_missing_value_tracks_true", &nan, &n_nan));
    SN_TRY(sn_ml_doubles(p, "base_values", &t->base, &t->n_base));
    if (n == 0 || n_modes != n || n_splits != n || (n_nan != 0 && n_nan != n))
        return sn_prep_fail(p, "the attributes nodes_* have no or different lengths");
    t->n_nodes = (int64_t)n;
    SN_TRY(new_nodes(p, t));
    place *places = SN_NEW_N(p->arena, place, n);
    if (!places)
        return sn_fail_memory(p->err, n * sizeof *places);
    for (size_t i = 0; i < n; i++)
        places[i] = (place){trees[i], ids[i], (int64_t)i};
    qsort(places, n, sizeof *places, by_place);
    for (size_t i = 0; i < n; i++) {
        sn_tree_node *node = &t->nodes[i];
        if (i > 0 && by_place(&places[i - 1], &places[i]) == 0)
            return sn_prep_fail(p, "node %lld of tree %lld is defined twice",
                                (long long)places[i].node, (long long)places[i].tree);
        if (!mode_of(modes[i], &node->mode))
            return sn_prep_fail(p, "mode %zu of nodes_modes is unknown", i);
        if (node->mode == SN_TREE_LEAF)
            continue;
        node->feature = features[i];
        node->split = splits[i];
        node->nan_true = n_nan && nan[i] != 0;
        node->yes = find_place(places, t->n_nodes, trees[i], yes[i]);
        node->no = find_place(places, t->n_nodes, trees[i], no[i]);
        if (node->yes < 0 || node->no < 0 || node->feature < 0)
            return sn_prep_fail(p, "node %lld of tree %lld refers to a node that does not exist",
                                (long long)ids[i], (long long)trees[i]);
        t->max_feature = node->feature > t->max_feature ? node->feature : t->max_feature;
    }
    /* The root of a tree is its first node in the file: walk the trees in sorted order. */
    for (size_t i = 0; i < n;) {
        int64_t root = places[i].at;
        const size_t first = i;
        for (; i < n && places[i].tree == places[first].tree; i++)
            root = places[i].at < root ? places[i].at : root;
        t->roots[t->n_roots++] = root;
    }
    SN_TRY(read_votes(p, votes, t, places));
    return check_ends(p, t);
}

/* ------------------------------------------------------------------ TreeEnsemble */
static sonde_status tensor_of(sn_prep *p, const char *name, size_t n, const sn_tensor **out)
{
    SN_TRY(sn_ml_tensor(p, name, out));
    if (!*out || (size_t)sn_tensor_count(*out) != n || (*out)->dtype == SONDE_DTYPE_STRING)
        return sn_prep_fail(p, "attribute '%s' does not have %zu numbers", name, n);
    return SONDE_OK;
}

/* Sets of the nodes with mode MEMBER, one after the other, each ended by NaN. */
static sonde_status read_members(sn_prep *p, sn_trees *t, size_t n_inner)
{
    const sn_tensor *m;
    SN_TRY(sn_ml_tensor(p, "membership_values", &m));
    const int64_t n = m && m->dtype != SONDE_DTYPE_STRING ? sn_tensor_count(m) : 0;
    t->members = SN_NEW_N(p->arena, double, n + 1);
    if (!t->members)
        return sn_fail_memory(p->err, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        t->members[i] = sn_elem_f64(m->dtype, m->data, i);
    int64_t at = 0;
    for (size_t i = 0; i < n_inner; i++) {
        sn_tree_node *node = &t->nodes[i];
        if (node->mode != SN_TREE_MEMBER)
            continue;
        node->first = at;
        while (at < n && !isnan(t->members[at]))
            at++;
        node->end = at++;
        if (node->end >= n && node->end == node->first)
            return sn_prep_fail(p, "there are fewer member sets than nodes that need one");
    }
    return SONDE_OK;
}

sonde_status sn_trees_read_flat(sn_prep *p, sn_trees *t)
{
    const int64_t *features, *yes, *no, *yes_leaf, *no_leaf, *targets, *roots, *nan;
    const sn_tensor *modes, *splits, *weights;
    size_t n, n_leaves, n_roots, n_nan;
    SN_TRY(sn_prep_ints(p, "nodes_featureids", &features, &n));
    SN_TRY(ints_of(p, "nodes_truenodeids", n, &yes));
    SN_TRY(ints_of(p, "nodes_falsenodeids", n, &no));
    SN_TRY(ints_of(p, "nodes_trueleafs", n, &yes_leaf));
    SN_TRY(ints_of(p, "nodes_falseleafs", n, &no_leaf));
    SN_TRY(sn_prep_ints(p, "leaf_targetids", &targets, &n_leaves));
    SN_TRY(sn_prep_ints(p, "tree_roots", &roots, &n_roots));
    SN_TRY(sn_prep_ints(p, "nodes_missing_value_tracks_true", &nan, &n_nan));
    SN_TRY(tensor_of(p, "nodes_modes", n, &modes));
    SN_TRY(tensor_of(p, "nodes_splits", n, &splits));
    SN_TRY(tensor_of(p, "leaf_weights", n_leaves, &weights));
    if (n == 0 || n_leaves == 0 || n_roots > n || (n_nan != 0 && n_nan != n))
        return sn_prep_fail(p, "the attributes nodes_*, leaf_* or tree_roots do not fit");
    t->n_nodes = (int64_t)(n + n_leaves);
    t->n_weights = (int64_t)n_leaves;
    SN_TRY(new_nodes(p, t));
    for (size_t i = 0; i < n_leaves; i++) {
        t->nodes[n + i] =
            (sn_tree_node){.mode = SN_TREE_LEAF, .first = (int64_t)i, .end = (int64_t)i + 1};
        t->weights[i] =
            (sn_tree_weight){targets[i], sn_elem_f64(weights->dtype, weights->data, (int64_t)i)};
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t mode = sn_elem_i64(modes->dtype, modes->data, (int64_t)i);
        const int64_t limit[2] = {(int64_t)(yes_leaf[i] ? n_leaves : n),
                                  (int64_t)(no_leaf[i] ? n_leaves : n)};
        if (mode < 0 || mode > SN_TREE_MEMBER || features[i] < 0 || yes[i] < 0 || no[i] < 0 ||
            yes[i] >= limit[0] || no[i] >= limit[1])
            return sn_prep_fail(p, "node %zu is invalid", i);
        t->nodes[i] = (sn_tree_node){.mode = (sn_tree_mode)mode,
                                     .feature = features[i],
                                     .nan_true = n_nan && nan[i] != 0,
                                     .split = sn_elem_f64(splits->dtype, splits->data, (int64_t)i),
                                     .yes = yes[i] + (yes_leaf[i] ? (int64_t)n : 0),
                                     .no = no[i] + (no_leaf[i] ? (int64_t)n : 0)};
        t->max_feature = features[i] > t->max_feature ? features[i] : t->max_feature;
    }
    for (size_t i = 0; i < n_roots; i++) {
        if (roots[i] < 0 || roots[i] >= (int64_t)n)
            return sn_prep_fail(p, "root %lld is not a node", (long long)roots[i]);
        t->roots[t->n_roots++] = roots[i];
    }
    SN_TRY(read_members(p, t, n));
    return check_ends(p, t);
}
