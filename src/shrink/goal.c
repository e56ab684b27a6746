/* SPDX-License-Identifier: Apache-2.0 */
/* An accuracy goal. Where the quantised model misses it, each product is tried alone: the model in
 * which only that one computes with integers tells what it costs. Then the ones that cost most stay
 * in float: one, two, four … of them until the goal is met, at most all but one; a binary search
 * between the last two numbers finds how few are enough. Ranges do not depend on what is quantised,
 * so nothing is calibrated again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shrink/quantizer.h"

enum { TRIAL_SAMPLES = 4, COMPARED = 64 };

typedef struct cost {
    uint32_t node;
    double sqnr_db;
} cost;

static int by_cost(const void *a, const void *b)
{
    const cost *x = a, *y = b;
    if (x->sqnr_db != y->sqnr_db)
        return x->sqnr_db < y->sqnr_db ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Plans again, with the ranges that were found. */
static sonde_status plan_again(sn_quantizer *q, const sn_q_value *found)
{
    SN_TRY(sn_q_plan(q));
    for (size_t i = 0; i < q->g->values.n; i++) {
        sn_q_value *v = &q->values[i];
        const sn_q_value *from = &found[v->scale_of];
        v->scale = from->scale;
        v->zero = from->zero;
        v->means = found[i].means;
        v->channels = found[i].channels;
        if (v->bytes && !(v->scale > 0))
            return sn_fail(q->err, SONDE_INTERNAL, "value '%.200s' has no range",
                           q->g->values.data[i]->name);
    }
    return SONDE_OK;
}

static sonde_status try_one(sn_quantizer *q, const sn_q_value *found, const cost *all, size_t n,
                            size_t k, double *sqnr_db)
{
    sonde_model *made = NULL;
    sn_q_agreement a;
    for (size_t i = 0; i < n; i++)
        q->left[all[i].node] = i != k;
    SN_TRY(plan_again(q, found));
    SN_TRY(sn_q_write_static(q, &made));
    const sonde_status st = sn_q_compare(q, made, TRIAL_SAMPLES, &a);
    sonde_model_release(made);
    *sqnr_db = a.sqnr_db;
    return st;
}

static sonde_status rank_products(sn_quantizer *q, const sn_q_value *found, cost *all, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        SN_TRY(try_one(q, found, all, n, k, &all[k].sqnr_db));
        SN_TRY(sn_q_progress(q, "trying layers", (double)(k + 1) / (double)n));
    }
    for (size_t i = 0; i < n; i++)
        q->left[all[i].node] = false;
    qsort(all, n, sizeof *all, by_cost);
    return SONDE_OK;
}

typedef struct search {
    sn_quantizer *q;
    const sn_q_value *found;
    const cost *all; /* the costliest first */
    size_t n;
    sonde_model **made;   /* the best one … */
    sn_q_agreement *best; /* … how well it agrees … */
    size_t *left;         /* … and how many of `all` it has in float */
} search;

static bool is_enough(const search *s, const sn_q_agreement *a)
{
    return a->sqnr_db >= s->q->o.goal_db;
}

/* Of models that meet the goal, that with the fewest layers in float; else the one that agrees
 * best. */
static bool is_better(const search *s, const sn_q_agreement *a, size_t k)
{
    if (is_enough(s, a) != is_enough(s, s->best))
        return is_enough(s, a);
    return is_enough(s, a) ? k < *s->left : a->sqnr_db > s->best->sqnr_db;
}

static void leave_first(const search *s, size_t k)
{
    for (size_t i = 0; i < s->n; i++)
        s->q->left[s->all[i].node] = i < k;
}

static sonde_status try_count(const search *s, size_t k, bool *enough)
{
    sonde_model *tried = NULL;
    sn_q_agreement a;
    leave_first(s, k);
    SN_TRY(plan_again(s->q, s->found));
    SN_TRY(sn_q_write_static(s->q, &tried));
    const sonde_status st = sn_q_compare(s->q, tried, COMPARED, &a);
    const bool better = st == SONDE_OK && is_better(s, &a, k);
    sonde_model_release(better ? *s->made : tried);
    SN_TRY(st);
    *enough = is_enough(s, &a);
    if (better) {
        *s->made = tried;
        *s->best = a;
        *s->left = k;
    }
    return SONDE_OK;
}

static sonde_status leave_out(const search *s)
{
    const size_t most = s->n - 1;
    size_t missed = 0, met = 0;
    bool enough = false;
    for (size_t k = 1; !enough && missed < most; k = k * 2 < most ? k * 2 : most) {
        SN_TRY(try_count(s, k, &enough));
        *(enough ? &met : &missed) = k;
    }
    while (enough && met - missed > 1) {
        const size_t k = missed + (met - missed) / 2;
        bool also = false;
        SN_TRY(try_count(s, k, &also));
        *(also ? &met : &missed) = k;
    }
    leave_first(s, *s->left); /* the tables tell of the best one */
    return SONDE_OK;
}

sonde_status sn_q_reach_goal(sn_quantizer *q, sonde_model **made, sn_q_agreement *found,
                             size_t *left)
{
    const size_t n_values = q->g->values.n;
    cost *all = SN_NEW_N(&q->arena, cost, q->g->n_nodes + 1);
    sn_q_value *ranges = SN_NEW_N(&q->arena, sn_q_value, n_values + 1);
    size_t n = 0;
    *left = 0;
    if (!all || !ranges)
        return sn_fail_memory(q->err, n_values * sizeof *ranges);
    if (!(q->o.goal_db > 0) || found->sqnr_db >= q->o.goal_db || isnan(found->sqnr_db))
        return SONDE_OK;
    memcpy(ranges, q->values, n_values * sizeof *ranges);
    for (const sn_node *node = q->g->first; node; node = node->next)
        if (q->nodes[node->id].role == SN_Q_PRODUCT)
            all[n++].node = node->id;
    if (n < 2)
        return SONDE_OK;
    SN_TRY(rank_products(q, ranges, all, n));
    SN_TRY(leave_out(&(search){q, ranges, all, n, made, found, left}));
    /* Plan and figures once more, as they were for the best. */
    sonde_model *again = NULL;
    SN_TRY(plan_again(q, ranges));
    SN_TRY(sn_q_write_static(q, &again));
    sonde_model_release(*made);
    *made = again;
    return SONDE_OK;
}
