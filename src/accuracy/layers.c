/* SPDX-License-Identifier: Apache-2.0 */
/* What each quantised layer alone does to the outputs: A runs with the tensor that B's layer makes
 * of A's inputs in the place of its own. A layer with a large error of its own may matter little,
 * and this tells. */
#include <math.h>
#include <stdlib.h>

#include "accuracy/pairs.h"

enum { MOST_LAYERS = 64 }; /* that are tried: each is another program */

/* ------------------------------------------------------------------ which */
/* Layers that only move or select numbers are as good as what they are given. */
static bool computes(const sn_node *n)
{
    static const char *const moves[] = {
        "Reshape", "Transpose", "Flatten", "Squeeze",  "Unsqueeze", "MaxPool",      "Concat",
        "Split",   "Slice",     "Gather",  "Pad",      "Identity",  "Expand",       "Relu",
        "Clip",    "Resize",    "Tile",    "Cast",     "Dropout",   "DepthToSpace", "SpaceToDepth",
        "Shape",   "Size",      "Where",   "Constant", "Upsample"};
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (sn_is_op(n, moves[i]))
            return false;
    return true;
}

static int by_pair(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static sonde_status choose(sonde_accuracy *acc, sonde_error *err)
{
    sn_keyed *all = SN_NEW_N(&acc->arena, sn_keyed, acc->n_pairs);
    acc->tried = SN_NEW_N(&acc->arena, uint32_t, acc->n_pairs);
    if (!all || !acc->tried)
        return sn_fail_memory(err, acc->n_pairs * sizeof *all);
    uint32_t n = 0;
    for (uint32_t i = 0; i < acc->n_pairs; i++) {
        const sn_pair *p = &acc->pairs[i];
        if (p->quantized && p->local.samples && !p->local.exact && !p->local.different &&
            computes(p->layer))
            all[n++] = (sn_keyed){sn_sums_noise(&p->local), i};
    }
    sn_keyed_sort(all, n);
    acc->n_tried = n < MOST_LAYERS ? n : MOST_LAYERS;
    for (uint32_t i = 0; i < acc->n_tried; i++)
        acc->tried[i] = all[i].pair;
    if (acc->n_tried > 1)
        qsort(acc->tried, acc->n_tried, sizeof *acc->tried, by_pair); /* groups side by side */
    return SONDE_OK;
}

/* ------------------------------------------------------------------ running A from there */
typedef struct tail_run {
    const sn_sample *sample;
    const char **names;    /* of the sample, and one more */
    sonde_value **values;  /* the same */
    sonde_value **outputs; /* of A as it is */
    size_t n_outputs;
} tail_run;

static sonde_status run_tail(sonde_accuracy *acc, const tail_run *t, size_t n, sonde_value **out,
                             sonde_error *err)
{
    const sonde_run_options o = sn_accuracy_run_options(acc);
    return sonde_session_run(acc->tail, &o, t->names, t->values, n, NULL, out, t->n_outputs, err);
}

static sonde_status try_layer(sonde_accuracy *acc, sn_pair *p, sonde_value *value, void *user,
                              sonde_error *err)
{
    tail_run *t = user;
    sonde_value **out = calloc(t->n_outputs + 1, sizeof(sonde_value *));
    if (!out)
        return sn_fail_memory(err, t->n_outputs * sizeof(void *));
    t->names[t->sample->n] = p->name;
    t->values[t->sample->n] = value;
    double worst = NAN;
    sonde_status st = value ? run_tail(acc, t, t->sample->n + 1, out, err) : SONDE_RUNTIME;
    for (size_t i = 0; i < t->n_outputs && st == SONDE_OK; i++) {
        sn_sums sums = {.samples = 0};
        st = sn_sums_add(&sums, t->outputs[i], out[i], err);
        const double noise = sums.different ? INFINITY : sn_sums_noise(&sums);
        worst = noise > worst || isnan(worst) ? noise : worst;
    }
    for (size_t i = 0; i < t->n_outputs; i++)
        sonde_value_release(out[i]);
    free(out);
    if (st == SONDE_CANCELLED || st == SONDE_OUT_OF_MEMORY)
        return st;
    if (st == SONDE_OK) /* one that A does not take is not judged */
        p->at_outputs = worst;
    return SONDE_OK;
}

/* The tried layers of one group after the other. */
static sonde_status try_all(sonde_accuracy *acc, tail_run *t, sonde_error *err)
{
    sonde_status st = run_tail(acc, t, t->sample->n, t->outputs, err);
    for (uint32_t i = 0, n; i < acc->n_tried && st == SONDE_OK; i += n) {
        sn_job job;
        n = 1;
        while (i + n < acc->n_tried &&
               acc->pairs[acc->tried[i + n]].group == acc->pairs[acc->tried[i]].group)
            n++;
        st = sn_job_open(acc, &job, acc->tried + i, n, SN_JOB_LOCAL, err);
        if (st == SONDE_OK)
            st = sn_job_run(acc, &job, t->sample, try_layer, t, err);
        sn_job_close(&job);
    }
    return st;
}

static sonde_status open_tail(sonde_accuracy *acc, sonde_error *err)
{
    sonde_session_options o = acc->a.options;
    /* Each layer makes another program: copies of weights would take more time and memory than
     * runs. */
    o.no_prepack = o.no_optimize = 1;
    return acc->tail ? SONDE_OK : sonde_session_create(acc->a.model, &o, &acc->tail, err);
}

sonde_status sn_accuracy_layers(sonde_accuracy *acc, const sn_sample *s, sonde_error *err)
{
    SN_TRY(choose(acc, err));
    if (!acc->n_tried)
        return SONDE_OK;
    SN_TRY(open_tail(acc, err));
    tail_run t = {.sample = s, .n_outputs = sonde_session_output_count(acc->tail)};
    t.names = SN_NEW_N(&acc->arena, const char *, s->n + 1);
    t.values = SN_NEW_N(&acc->arena, sonde_value *, s->n + 1);
    t.outputs = SN_NEW_N(&acc->arena, sonde_value *, t.n_outputs + 1);
    if (!t.names || !t.values || !t.outputs)
        return sn_fail_memory(err, s->n * sizeof(void *));
    for (size_t i = 0; i < s->n; i++) {
        t.names[i] = s->names[i];
        t.values[i] = s->values[i];
    }
    const sonde_status st = try_all(acc, &t, err);
    for (size_t i = 0; i < t.n_outputs; i++)
        sonde_value_release(t.outputs[i]);
    sonde_session_release(acc->tail);
    acc->tail = NULL;
    return st;
}
