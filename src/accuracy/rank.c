/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the errors: which operators add most, and which layers of a quantised model to
 * leave in float. */
#include <math.h>
#include <stdlib.h>

#include "accuracy/pairs.h"

#define DEFAULT_DB     30.0
#define GOOD_ENOUGH    1e-4 /* 40 dB: nobody needs a layer back */
#define SHARE_OF_ERROR 0.1  /* of what all layers do to the outputs, from which one matters */
#define STANDS_OUT     3.0  /* times the median layer */
#define ROUNDING       8.0  /* units in the last place of f32, or f64 */

sonde_accuracy_bound sn_accuracy_bound_of(const sonde_accuracy *acc)
{
    sonde_accuracy_bound b = acc->options.bound;
    if (!(b.sqnr_db > 0) && !(b.max_abs > 0) && !(b.relative > 0))
        b.sqnr_db = DEFAULT_DB;
    return b;
}

double sn_pair_floor(const sn_pair *p)
{
    const double unit = p->dtype_a == SONDE_DTYPE_F64 ? 0x1p-52 : 0x1p-23;
    return p->sums.exact ? 0 : ROUNDING * unit * ROUNDING * unit;
}

/* An infinite error at an input explains one at the output. */
double sn_pair_added(const sonde_accuracy *acc, const sn_pair *p)
{
    const double own = p->sums.different ? INFINITY : sn_sums_noise(&p->sums);
    double before = 0;
    for (uint32_t i = 0; i < p->n_reads; i++) {
        const sn_pair *in = &acc->pairs[p->reads[i]];
        const double noise = in->sums.different ? INFINITY : sn_sums_noise(&in->sums);
        before = noise > before ? noise : before;
    }
    return isinf(before) ? 0 : own - before;
}

static int by_key(const void *x, const void *y)
{
    const sn_keyed *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->pair < b->pair ? -1 : a->pair > b->pair;
}

void sn_keyed_sort(sn_keyed *all, size_t n)
{
    if (n > 1)
        qsort(all, n, sizeof *all, by_key);
}

/* A node with several outputs is named once, by the worst of them. */
static void rank_worst(sonde_accuracy *acc, sn_keyed *all, bool *named)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < acc->n_pairs; i++) {
        const sn_pair *p = &acc->pairs[i];
        const double key = !p->local.samples    ? sn_pair_added(acc, p)
                           : p->local.different ? INFINITY
                                                : sn_sums_noise(&p->local);
        if (key > sn_pair_floor(p))
            all[n++] = (sn_keyed){key, i};
    }
    sn_keyed_sort(all, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t node = acc->pairs[all[i].pair].node->id;
        if (!named[node])
            acc->worst[acc->n_worst++] = all[i].pair;
        named[node] = true;
    }
}

static double worst_output(const sonde_accuracy *acc)
{
    double worst = 0;
    for (uint32_t i = 0; i < acc->n_pairs; i++) {
        const sn_pair *p = &acc->pairs[i];
        const double noise = p->sums.different ? INFINITY : sn_sums_noise(&p->sums);
        if (p->output && !p->sums.exact && noise > worst)
            worst = noise;
    }
    return worst;
}

/* Two tensors may come from one layer. */
static void leave(sonde_accuracy *acc, uint32_t pair)
{
    for (uint32_t i = 0; i < acc->n_leave; i++)
        if (acc->pairs[acc->leave[i]].layer == acc->pairs[pair].layer)
            return;
    acc->leave[acc->n_leave++] = pair;
}

/* As many as bring the outputs to the bound, if errors of layers add up. */
static void leave_for_bound(sonde_accuracy *acc, const sn_keyed *all, uint32_t n, double total)
{
    const double aim = pow(10, -acc->options.bound.sqnr_db / 10);
    double left = worst_output(acc);
    const double scale = isfinite(left) && total > 0 ? left / total : 1;
    for (uint32_t i = 0; i < n && left > aim; i++) {
        leave(acc, all[i].pair);
        left -= all[i].key * scale;
    }
}

static void rank_layers(sonde_accuracy *acc, sn_keyed *all)
{
    uint32_t n = 0;
    double total = 0;
    for (uint32_t i = 0; i < acc->n_tried; i++) {
        const double noise = acc->pairs[acc->tried[i]].at_outputs;
        if (!(noise > 0))
            continue;
        all[n++] = (sn_keyed){noise, acc->tried[i]};
        total += isfinite(noise) ? noise : 0;
    }
    if (!n)
        return;
    sn_keyed_sort(all, n);
    if (acc->options.bound.sqnr_db > 0) {
        leave_for_bound(acc, all, n, total);
        return;
    }
    const double middle = all[n / 2].key;
    for (uint32_t i = 0; i < n && worst_output(acc) > GOOD_ENOUGH; i++)
        if (all[i].key >= SHARE_OF_ERROR * total && all[i].key >= STANDS_OUT * middle)
            leave(acc, all[i].pair);
}

sonde_status sn_accuracy_rank(sonde_accuracy *acc, sonde_error *err)
{
    sn_arena scratch;
    sn_arena_init(&scratch, &acc->context->alloc);
    sn_keyed *all = SN_NEW_N(&scratch, sn_keyed, acc->n_pairs);
    bool *named = SN_NEW_N(&scratch, bool, acc->a.model->core->graph->n_nodes + 1);
    const sonde_status st = all && named ? SONDE_OK : sn_fail_memory(err, acc->n_pairs);
    acc->n_worst = acc->n_leave = 0;
    if (st == SONDE_OK) {
        rank_worst(acc, all, named);
        rank_layers(acc, all);
    }
    sn_arena_free(&scratch);
    return st;
}
