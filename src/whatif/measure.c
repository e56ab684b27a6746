/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a variant under the profiler, in a context of its own. Every run is a profile of its own, so
 * that those of the middle half, by their length, can be averaged: neither a run that was disturbed
 * nor a lucky one counts, and the steps still add up to the whole. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "export/sheet.h"
#include "sonde/experimental/inspect.h"
#include "whatif/whatif.h"

enum { LEAST_RUNS = 10, MOST_RUNS = 200 };
#define LEAST_NS 500e6

typedef struct sample { /* of one step in one run */
    uint32_t run, step;
    double ns;
} sample;

typedef struct runs {
    const sn_whatif_case *k;
    sn_measured *m;
    sonde_context *context;
    sn_buffers buffers;
    sonde_model *model;
    sonde_session *session;
    sonde_value **values, **outputs;
    size_t n_out;
    sn_map known; /* "table index" or a bracket's name ► step + 1 */
    sn_text text;
    SN_VEC(sample) samples;
    SN_VEC(double) walls; /* by run */
    sonde_error *err;
} runs;

void sn_measured_init(sn_measured *m, sn_allocator *alloc)
{
    *m = (sn_measured){.alloc = alloc};
    sn_arena_init(&m->arena, alloc);
}

void sn_measured_free(sn_measured *m)
{
    sn_vec_free(&m->steps, m->alloc);
    sn_vec_free(&m->walls, m->alloc);
    sn_arena_free(&m->arena);
}

/* ------------------------------------------------------------------ making it ready */
static sonde_status open(runs *r)
{
    sonde_context *outer = r->k->model->context;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = r->k->threads;
    o.cpu = sn_cpu_level_name(outer->core.cpu.flags);
    o.max_memory = outer->alloc.limit_bytes;
    o.alloc = outer->user_alloc;
    o.free = outer->user_free;
    o.alloc_user = outer->user;
    SN_TRY(sonde_context_create(&o, &r->context, r->err));
    SN_TRY(sn_api_ignore_env(r->context, r->err));
    SN_TRY(sn_variant_make(r->k->model->core, r->k->forms, r->context, &r->buffers, &r->m->changed,
                           &r->model, r->err));
    sonde_session_options s = r->k->session;
    s.precision = r->k->precision;
    s.threads = 0;
    SN_TRY(sonde_session_create(r->model, &s, &r->session, r->err));
    r->n_out = sonde_session_output_count(r->session);
    r->values = SN_NEW_N(&r->m->arena, sonde_value *, r->k->n_values + 1);
    r->outputs = SN_NEW_N(&r->m->arena, sonde_value *, r->n_out + 1);
    if (!r->values || !r->outputs)
        return sn_fail_memory(r->err, r->k->n_values * sizeof *r->values);
    return sn_batch_values(r->session, r->k->names, r->k->values, r->k->n_values, r->k->batch,
                           r->context, r->values, r->err);
}

static sonde_status weigh(runs *r)
{
    sonde_inspection *look = NULL;
    sonde_inspection_totals t = SONDE_INIT(sonde_inspection_totals);
    SN_TRY(
        sonde_inspect_session(r->session, r->k->names, r->values, r->k->n_values, &look, r->err));
    const sonde_status st = sonde_inspection_totals_get(look, &t, r->err);
    sonde_inspection_release(look);
    r->m->weight_bytes = t.packed_bytes + t.weight_bytes;
    r->m->peak_bytes = t.peak_bytes;
    return st;
}

/* ------------------------------------------------------------------ one run */
static sonde_status run(runs *r, bool warmup)
{
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.warmup = warmup;
    o.cancel = r->k->cancel;
    const sonde_status st = sonde_session_run(r->session, &o, r->k->names, r->values,
                                              r->k->n_values, NULL, r->outputs, r->n_out, r->err);
    for (size_t i = 0; i < r->n_out; i++) {
        sonde_value_release(r->outputs[i]);
        r->outputs[i] = NULL;
    }
    return st;
}

/* Origins are called by their numbers; those that were added are not. */
static bool set_nodes(const runs *r, const sn_prof_step *from, sn_whatif_step *step)
{
    uint32_t *nodes = SN_NEW_N(&r->m->arena, uint32_t, from->n_origins + 1);
    const size_t known = r->k->model->core->origins.list.n;
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

static bool add_step(runs *r, const sn_prof_step *from, const sn_prof_row *row)
{
    sn_arena *arena = &r->m->arena;
    sn_whatif_step step = {.shapes = "", .weight = ""};
    step.op_type = sn_arena_strdup(arena, row->op_type);
    step.name = step.op_type;
    if (from) {
        bool capable;
        const sn_prof_tensor *w = sn_sheet_weight(from, &capable);
        step.name = *from->post_op ? sn_arena_printf(arena, "%s+%s", from->op_type, from->post_op)
                                   : step.op_type;
        sn_text_clear(&r->text);
        sn_text_shapes(&r->text, from->inputs, from->n_inputs);
        step.shapes = sn_arena_strdup(arena, sn_text_get(&r->text));
        sn_text_clear(&r->text);
        if (w && capable)
            sn_text_shapes(&r->text, w, 1);
        step.weight = sn_arena_strdup(arena, sn_text_get(&r->text));
        if (!set_nodes(r, from, &step))
            return false;
    }
    return step.name && step.op_type && step.shapes && step.weight && !r->text.failed &&
           sn_vec_push(&r->m->steps, r->m->alloc, step);
}

/* The step that a row is about, made if it is new; -1: out of memory. */
static int64_t step_of(runs *r, const sn_profile *p, const sn_prof_row *row)
{
    const sn_prof_step *from = row->step < p->steps.n ? &p->steps.data[row->step] : NULL;
    char key[64];
    const int n = from ? snprintf(key, sizeof key, "%u %u", from->table, from->index)
                       : snprintf(key, sizeof key, "%.60s", row->name);
    void *found = sn_map_get_n(&r->known, key, (size_t)n);
    if (!found) {
        const char *own = sn_arena_strndup(&r->m->arena, key, (size_t)n);
        if (!own || !add_step(r, from, row))
            return -1;
        found = (void *)(uintptr_t)r->m->steps.n;
        if (!sn_map_put_n(&r->known, own, (size_t)n, found, NULL))
            return -1;
    }
    return (int64_t)(uintptr_t)found - 1;
}

static sonde_status take(runs *r, const sn_profile *p)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_STEP, &s, r->err));
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < s.rows.n && st == SONDE_OK; i++) {
        const sn_prof_row *row = &s.rows.data[i];
        if (row->step < p->steps.n && p->steps.data[row->step].folded)
            continue;
        const int64_t step = step_of(r, p, row);
        const sample one = {(uint32_t)r->walls.n, (uint32_t)step, row->mean_ns};
        if (step < 0 || !sn_vec_push(&r->samples, r->m->alloc, one))
            st = sn_fail_memory(r->err, sizeof one);
    }
    if (st == SONDE_OK && !sn_vec_push(&r->walls, r->m->alloc, s.wall_ns.mean))
        st = sn_fail_memory(r->err, sizeof(double));
    sn_prof_summary_free(&s);
    return st;
}

static sonde_status measured_run(runs *r)
{
    sonde_profile *profile = NULL;
    SN_TRY(sonde_profiler_start(r->context, 1, r->err));
    sonde_status st = run(r, false);
    const sonde_status stopped =
        sonde_profiler_stop(r->context, st ? NULL : &profile, st ? NULL : r->err);
    if (st == SONDE_OK)
        st = stopped;
    if (st == SONDE_OK)
        st = take(r, profile->core);
    sonde_profile_release(profile);
    return st;
}

/* ------------------------------------------------------------------ all of them */
static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sonde_status average(runs *r)
{
    sn_measured *m = r->m;
    const size_t n = r->walls.n;
    if (!sn_vec_append(&m->walls, m->alloc, r->walls.data, n))
        return sn_fail_memory(r->err, n * sizeof(double));
    qsort(m->walls.data, n, sizeof(double), by_number);
    const double least = m->walls.data[n / 4], most = m->walls.data[n - 1 - n / 4];
    size_t taken = 0;
    for (size_t i = 0; i < n; i++)
        taken += r->walls.data[i] >= least && r->walls.data[i] <= most;
    for (size_t i = 0; i < r->samples.n; i++) {
        const sample *s = &r->samples.data[i];
        const double wall = r->walls.data[s->run];
        if (wall >= least && wall <= most)
            m->steps.data[s->step].ns += s->ns / (double)taken;
    }
    for (size_t i = 0; i < m->steps.n; i++)
        m->total_ns += m->steps.data[i].ns;
    return SONDE_OK;
}

static void tell(const runs *r, double done)
{
    if (r->k->progress)
        r->k->progress(r->k->progress_user, done < 1 ? done : 1);
}

static sonde_status measure(runs *r)
{
    const size_t fixed = r->k->runs > 0 ? (size_t)r->k->runs : 0;
    double total = 0;
    SN_TRY(open(r));
    SN_TRY(weigh(r));
    for (int i = 0; i < r->k->warmup; i++)
        SN_TRY(run(r, true));
    while (fixed ? r->walls.n < fixed
                 : r->walls.n < LEAST_RUNS || (total < LEAST_NS && r->walls.n < MOST_RUNS)) {
        SN_TRY(measured_run(r));
        total += r->walls.data[r->walls.n - 1];
        const double enough = (double)r->walls.n / (double)(fixed ? fixed : LEAST_RUNS);
        const double long_enough = fixed ? 1 : total / LEAST_NS;
        tell(r, enough < long_enough ? enough : long_enough);
    }
    return average(r);
}

sonde_status sn_whatif_measure(const sn_whatif_case *k, sn_measured *m, sonde_error *err)
{
    runs r = {.k = k, .m = m, .err = err};
    sn_map_init(&r.known, m->alloc);
    sn_text_init(&r.text, m->alloc);
    const sonde_status st = measure(&r);
    for (size_t i = 0; r.values && i < k->n_values; i++)
        sonde_value_release(r.values[i]);
    sonde_session_release(r.session);
    sonde_model_release(r.model);
    sn_vec_free(&r.samples, m->alloc);
    sn_vec_free(&r.walls, m->alloc);
    sn_text_free(&r.text);
    sn_map_free(&r.known);
    if (r.context)
        sn_variant_free_buffers(&r.buffers, r.context);
    sonde_context_release(r.context);
    return st;
}

/* Ranks from the binomial distribution, by its normal approximation: n/2 ± 0.98 √n. */
void sn_median_interval(const double *sorted, size_t n, double *low, double *high)
{
    const double reach = 0.98 * sqrt((double)n), middle = (double)n / 2;
    const double first = floor(middle - reach), last = ceil(middle + reach);
    *low = sorted[first > 0 ? (size_t)first : 0];
    *high = sorted[last < (double)n - 1 ? (size_t)last : n - 1];
}
