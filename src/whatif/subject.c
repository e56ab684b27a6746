/* SPDX-License-Identifier: Apache-2.0 */
/* A variant that runs under the profiler, in a context of its own. Every run is a profile of its
 * own, so that of a round the middle half of the runs, by their length, can be averaged: neither a
 * run that was disturbed nor a lucky one counts, and the steps still add up to the whole. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "export/sheet.h"
#include "sonde/experimental/inspect.h"
#include "whatif/whatif.h"

/* Of a round without a given number of runs. */
enum { MOST_RUNS = 100 };
#define LEAST_NS 50e6
/* Before it: caches are another subject's, and units for long vectors may have been switched off.
 */
#define WARM_NS 2e6

typedef struct sample { /* of one step in one run */
    uint32_t run, step;
    double ns;
} sample;

struct sn_round_open {
    sn_map known; /* "table index" or a bracket's name ► step + 1 */
    sn_text text;
    SN_VEC(sample) samples;
    SN_VEC(double) walls; /* by run */
    SN_VEC(double) sums;  /* by step */
    SN_VEC(double) sorted;
};

/* ------------------------------------------------------------------ making it ready */
static sonde_status open_session(sn_subject *s, sonde_error *err)
{
    sonde_context *outer = s->k.model->context;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = s->k.threads;
    o.cpu = sn_cpu_level_name(outer->core.cpu.flags);
    o.max_memory = outer->alloc.limit_bytes;
    o.alloc = outer->user_alloc;
    o.free = outer->user_free;
    o.alloc_user = outer->user;
    SN_TRY(sonde_context_create(&o, &s->context, err));
    SN_TRY(sn_api_ignore_env(s->context, err));
    SN_TRY(sn_variant_make(s->k.model->core, s->k.forms, s->context, &s->parts, &s->changed,
                           &s->model, err));
    if (s->k.must_change && (!s->changed || s->parts.idle))
        return sn_fail(err, SONDE_UNSUPPORTED, "no weight of the model can have %s",
                       s->changed ? "one of these forms" : "this form");
    sonde_session_options so = s->k.session;
    so.precision = s->k.precision;
    so.threads = 0;
    return sonde_session_create(s->model, &so, &s->session, err);
}

static sonde_status make_values(sn_subject *s, sonde_error *err)
{
    s->n_out = sonde_session_output_count(s->session);
    s->values = SN_NEW_N(&s->arena, sonde_value *, s->k.n_values + 1);
    s->outputs = SN_NEW_N(&s->arena, sonde_value *, s->n_out + 1);
    if (!s->values || !s->outputs)
        return sn_fail_memory(err, s->k.n_values * sizeof *s->values);
    return sn_batch_values(s->session, s->k.names, s->k.values, s->k.n_values, s->k.batch,
                           s->context, s->values, err);
}

static sonde_status weigh(sn_subject *s, sonde_error *err)
{
    sonde_inspection *look = NULL;
    sonde_inspection_totals t = SONDE_INIT(sonde_inspection_totals);
    SN_TRY(sonde_inspect_session(s->session, s->k.names, s->values, s->k.n_values, &look, err));
    const sonde_status st = sonde_inspection_totals_get(look, &t, err);
    sonde_inspection_release(look);
    s->weight_bytes = t.packed_bytes + t.weight_bytes;
    s->peak_bytes = t.peak_bytes;
    return st;
}

/* ------------------------------------------------------------------ one run */
static sonde_status run(sn_subject *s, bool warmup, sonde_error *err)
{
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.warmup = warmup;
    o.cancel = s->k.cancel;
    const sonde_status st = sonde_session_run(s->session, &o, s->k.names, s->values, s->k.n_values,
                                              NULL, s->outputs, s->n_out, err);
    for (size_t i = 0; i < s->n_out; i++) {
        sonde_value_release(s->outputs[i]);
        s->outputs[i] = NULL;
    }
    return st;
}

/* Origins are called by their numbers; those that were added are not. */
static bool set_nodes(sn_subject *s, const sn_prof_step *from, sn_whatif_step *step)
{
    uint32_t *nodes = SN_NEW_N(&s->arena, uint32_t, from->n_origins + 1);
    const size_t known = s->k.model->core->origins.list.n;
    if (!nodes)
        return false;
    for (uint32_t i = 0; i < from->n_origins; i++) {
        char *end;
        const unsigned long id = strtoul(from->origins[i].name, &end, 10);
        if (end != from->origins[i].name && !*end && id < known)
            nodes[step->n_nodes++] = (uint32_t)id;
    }
    step->nodes = nodes;
    step->added = from->n_origins > 0 && step->n_nodes == 0;
    return true;
}

/* Of an operator that is no product: the largest constant of several dimensions. */
static const sn_prof_tensor *largest_constant(const sn_prof_step *from)
{
    const sn_prof_tensor *found = NULL;
    double most = 0;
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        const sn_prof_tensor *t = &from->inputs[i];
        double elems = t->constant && t->rank >= 2 ? 1 : 0;
        for (int32_t d = 0; d < t->rank; d++)
            elems *= (double)t->dims[d];
        if (elems > most) {
            most = elems;
            found = t;
        }
    }
    return found;
}

static void add_types(sn_text *text, const sn_prof_tensor *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        sn_text_add(text, i ? "," : " ");
        sn_text_add(text, list[i].dtype);
    }
}

static bool add_step(sn_subject *s, const sn_prof_step *from, const sn_prof_row *row)
{
    sn_arena *arena = &s->arena;
    sn_text *text = &s->open->text;
    sn_whatif_step step = {.shapes = "", .weight = "", .how = ""};
    step.op_type = sn_arena_strdup(arena, row->op_type);
    step.name = step.op_type;
    if (from) {
        const sn_prof_tensor *w = sn_sheet_weight(from, &step.sparse);
        step.name = *from->post_op ? sn_arena_printf(arena, "%s+%s", from->op_type, from->post_op)
                                   : step.op_type;
        sn_text_clear(text);
        sn_text_shapes(text, from->inputs, from->n_inputs);
        step.shapes = sn_arena_strdup(arena, sn_text_get(text));
        sn_text_clear(text);
        w = w ? w : largest_constant(from);
        if (w)
            sn_text_shapes(text, w, 1);
        step.weight = sn_arena_strdup(arena, sn_text_get(text));
        sn_text_clear(text);
        sn_text_add(text, from->kernel);
        add_types(text, from->inputs, from->n_inputs);
        add_types(text, from->outputs, from->n_outputs);
        step.how = sn_arena_strdup(arena, sn_text_get(text));
        if (!set_nodes(s, from, &step))
            return false;
    }
    return step.name && step.op_type && step.shapes && step.weight && step.how && !text->failed &&
           sn_vec_push(&s->steps, s->alloc, step);
}

/* The step that a row is about, made if it is new; -1: out of memory. */
static int64_t step_of(sn_subject *s, const sn_profile *p, const sn_prof_row *row)
{
    const sn_prof_step *from = row->step < p->steps.n ? &p->steps.data[row->step] : NULL;
    sn_map *known = &s->open->known;
    char key[64];
    const int n = from ? snprintf(key, sizeof key, "%u %u", from->table, from->index)
                       : snprintf(key, sizeof key, "%.60s", row->name);
    void *found = sn_map_get_n(known, key, (size_t)n);
    if (!found) {
        const char *own = sn_arena_strndup(&s->arena, key, (size_t)n);
        if (!own || !add_step(s, from, row))
            return -1;
        found = (void *)(uintptr_t)s->steps.n;
        if (!sn_map_put_n(known, own, (size_t)n, found, NULL))
            return -1;
    }
    return (int64_t)((uintptr_t)found - 1);
}

static sonde_status take(sn_subject *s, const sn_profile *p, sonde_error *err)
{
    sn_prof_summary sum;
    SN_TRY(sn_profile_summarise(p, SN_BY_STEP, &sum, err));
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < sum.rows.n && st == SONDE_OK; i++) {
        const sn_prof_row *row = &sum.rows.data[i];
        if (row->step < p->steps.n && p->steps.data[row->step].folded)
            continue;
        const int64_t step = step_of(s, p, row);
        const sample one = {(uint32_t)s->open->walls.n, (uint32_t)step, row->mean_ns};
        if (step < 0 || !sn_vec_push(&s->open->samples, s->alloc, one))
            st = sn_fail_memory(err, sizeof one);
    }
    if (st == SONDE_OK && !sn_vec_push(&s->open->walls, s->alloc, sum.wall_ns.mean))
        st = sn_fail_memory(err, sizeof(double));
    sn_prof_summary_free(&sum);
    return st;
}

static sonde_status measured_run(sn_subject *s, sonde_error *err)
{
    sonde_profile *profile = NULL;
    SN_TRY(sonde_profiler_start(s->context, 1, err));
    sonde_status st = run(s, false, err);
    const sonde_status stopped =
        sonde_profiler_stop(s->context, st ? NULL : &profile, st ? NULL : err);
    if (st == SONDE_OK)
        st = stopped;
    if (st == SONDE_OK)
        st = take(s, profile->core, err);
    sonde_profile_release(profile);
    return st;
}

/* ------------------------------------------------------------------ a round */
static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The runs become one round: means over those of the middle half. */
static sonde_status fold(sn_subject *s, sonde_error *err)
{
    struct sn_round_open *o = s->open;
    const size_t n = o->walls.n;
    sn_round made = {.runs = n, .first_part = s->round_parts.n};
    o->sorted.n = o->sums.n = 0;
    if (!sn_vec_append(&o->sorted, s->alloc, o->walls.data, n) ||
        !sn_vec_reserve(&o->sums, s->alloc, s->steps.n) ||
        !sn_vec_reserve(&s->round_parts, s->alloc, s->steps.n) ||
        !sn_vec_reserve(&s->rounds, s->alloc, 1))
        return sn_fail_memory(err, s->steps.n * sizeof(sn_round_part));
    qsort(o->sorted.data, n, sizeof(double), by_number);
    const double least = o->sorted.data[n / 4], most = o->sorted.data[n - 1 - n / 4];
    size_t taken = 0;
    for (size_t i = 0; i < n; i++)
        taken += o->walls.data[i] >= least && o->walls.data[i] <= most;
    for (size_t i = 0; i < s->steps.n; i++)
        o->sums.data[i] = 0;
    for (size_t i = 0; i < o->samples.n; i++) {
        const sample *one = &o->samples.data[i];
        const double wall = o->walls.data[one->run];
        if (wall >= least && wall <= most)
            o->sums.data[one->step] += one->ns / (double)taken;
    }
    for (size_t i = 0; i < s->steps.n; i++) {
        s->round_parts.data[s->round_parts.n++] = (sn_round_part){(uint32_t)i, o->sums.data[i]};
        made.ns += o->sums.data[i];
    }
    s->rounds.data[s->rounds.n++] = made;
    return SONDE_OK;
}

static sonde_status warm_up(sn_subject *s, sonde_error *err)
{
    const uint64_t begin = sn_now_ns();
    for (int i = 0; s->k.warmup > 0 && i < MOST_RUNS; i++) {
        SN_TRY(run(s, true, err));
        if ((double)(sn_now_ns() - begin) >= WARM_NS)
            break;
    }
    return SONDE_OK;
}

sonde_status sn_subject_round(sn_subject *s, size_t runs, double done, double then,
                              sonde_error *err)
{
    struct sn_round_open *o = s->open;
    double total = 0;
    o->samples.n = o->walls.n = 0;
    SN_TRY(warm_up(s, err));
    while (runs ? o->walls.n < runs : total < LEAST_NS && o->walls.n < MOST_RUNS) {
        SN_TRY(measured_run(s, err));
        total += o->walls.data[o->walls.n - 1];
        const double part = runs ? (double)o->walls.n / (double)runs : total / LEAST_NS;
        if (s->k.progress)
            s->k.progress(s->k.progress_user, done + (then - done) * (part < 1 ? part : 1));
    }
    return fold(s, err);
}

/* ------------------------------------------------------------------ life */
sonde_status sn_subject_open(sn_subject *s, const sn_whatif_case *k, sn_allocator *alloc,
                             sonde_error *err)
{
    *s = (sn_subject){.k = *k, .alloc = alloc};
    sn_arena_init(&s->arena, alloc);
    s->open = sn_alloc_zero(alloc, sizeof *s->open);
    if (!s->open)
        return sn_fail_memory(err, sizeof *s->open);
    sn_map_init(&s->open->known, alloc);
    sn_text_init(&s->open->text, alloc);
    SN_TRY(open_session(s, err));
    s->k.forms = NULL;
    SN_TRY(make_values(s, err));
    SN_TRY(weigh(s, err));
    for (int i = 0; i < k->warmup; i++)
        SN_TRY(run(s, true, err));
    return SONDE_OK;
}

static void free_open(struct sn_round_open *o, sn_allocator *alloc)
{
    sn_vec_free(&o->samples, alloc);
    sn_vec_free(&o->walls, alloc);
    sn_vec_free(&o->sums, alloc);
    sn_vec_free(&o->sorted, alloc);
    sn_text_free(&o->text);
    sn_map_free(&o->known);
    sn_free(alloc, o, sizeof *o);
}

void sn_subject_close(sn_subject *s)
{
    if (!s->alloc)
        return;
    for (size_t i = 0; s->values && i < s->k.n_values; i++)
        sonde_value_release(s->values[i]);
    sonde_session_release(s->session);
    sonde_model_release(s->model);
    if (s->context)
        sn_variant_free_parts(&s->parts, s->context);
    sonde_context_release(s->context);
    sn_vec_free(&s->steps, s->alloc);
    sn_vec_free(&s->rounds, s->alloc);
    sn_vec_free(&s->round_parts, s->alloc);
    if (s->open)
        free_open(s->open, s->alloc);
    sn_arena_free(&s->arena);
    *s = (sn_subject){.alloc = NULL};
}
