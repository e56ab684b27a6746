/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and runs: public values in, public values out, the rest is exec's. A run allocates
 * nothing here beyond the value objects it hands out, unless it has very many inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/cache.h"
#include "base/list_text.h"
#include "passes/pass.h"

/* ------------------------------------------------------------------ what goes in and out */
/* Required inputs first, then those with a default, each in the order of the file. */
static sonde_status describe_inputs(sonde_session *s, const sn_graph *g, sonde_error *err)
{
    for (int optional = 0; optional < 2; optional++)
        for (size_t i = 0; i < g->inputs.n; i++) {
            const sn_value *v = g->inputs.data[i];
            if (v->is_initializer != (optional == 1))
                continue;
            const size_t k = s->n_inputs++;
            s->has_defaults |= optional == 1;
            SN_TRY(sn_api_describe(&s->arena, g, v->name, &v->fact.type, &s->inputs[k], err));
            s->inputs[k].optional_input = optional;
            s->input_names[k] = s->inputs[k].name;
        }
    return SONDE_OK;
}

static bool fully_known(const sn_type *t)
{
    return t->kind == SN_KIND_TENSOR && sn_type_is_concrete(t);
}

/* The file's declaration, or what inference found where that says more. */
static sonde_status describe_outputs(sonde_session *s, const sn_graph *g, sonde_error *err)
{
    const sn_graph *made = sn_session_program(s->core)->graph;
    for (size_t i = 0; i < g->outputs.n; i++) {
        const sn_type *type = &g->outputs.data[i]->fact.type;
        const sn_graph *from = g;
        if (!fully_known(type) && i < made->outputs.n &&
            made->outputs.data[i]->fact.type.kind != SN_KIND_NONE) {
            type = &made->outputs.data[i]->fact.type;
            from = made;
        }
        SN_TRY(
            sn_api_describe(&s->arena, from, g->outputs.data[i]->name, type, &s->outputs[i], err));
        s->output_names[i] = s->outputs[i].name;
        s->n_outputs++;
    }
    return SONDE_OK;
}

static sonde_status describe_all(sonde_session *s, sonde_error *err)
{
    const sn_graph *g = s->model->core->graph;
    s->inputs = SN_NEW_N(&s->arena, sonde_type_info, g->inputs.n + 1);
    s->outputs = SN_NEW_N(&s->arena, sonde_type_info, g->outputs.n + 1);
    s->input_names = SN_NEW_N(&s->arena, const char *, g->inputs.n + 1);
    s->output_names = SN_NEW_N(&s->arena, const char *, g->outputs.n + 1);
    if (!s->inputs || !s->outputs || !s->input_names || !s->output_names)
        return sn_fail_memory(err, g->inputs.n * sizeof *s->inputs);
    SN_TRY(describe_inputs(s, g, err));
    return describe_outputs(s, g, err);
}

/* ------------------------------------------------------------------ life */
static sonde_status check_passes(const sonde_session_options *o, sonde_error *err)
{
    if (o->disabled_pass_count > 0)
        SN_REQUIRE(o->disabled_passes, err);
    for (size_t i = 0; i < o->disabled_pass_count; i++) {
        SN_REQUIRE(o->disabled_passes[i], err);
        sn_list_text names = {.room = SN_LIST_BYTES - 100};
        bool found = false;
        for (size_t k = 0; sn_pass_row(k); k++) {
            found |= strcmp(sn_pass_row(k)->name, o->disabled_passes[i]) == 0;
            sn_list_add(&names, "%s", sn_pass_row(k)->name);
        }
        if (!found)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "unknown pass '%.150s'; the passes are %s",
                           o->disabled_passes[i], sn_list_end(&names));
    }
    return SONDE_OK;
}

sonde_status sonde_session_create(sonde_model *model, const sonde_session_options *options,
                                  sonde_session **session, sonde_error *err)
{
    SN_REQUIRE(session, err);
    *session = NULL;
    SN_REQUIRE(model, err);
    sonde_session_options o;
    SN_OPTIONS(o, options, err);
    SN_TRY(check_passes(&o, err));
    if (o.threads < 0 || o.threads > SN_POOL_MOST)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "threads is %d, expected 0 to %d", o.threads,
                       SN_POOL_MOST);

    if (o.instance < 0 || o.instance >= SN_API_MAX_INSTANCES)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "instance is %d, expected 0 to %d", o.instance,
                       SN_API_MAX_INSTANCES - 1);
    if (o.instances < 0 || o.instances > SN_API_MAX_INSTANCES ||
        (o.instances > 1 && o.instance >= o.instances))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "instances is %d, expected 0 to %d and more than instance, which is %d",
                       o.instances, SN_API_MAX_INSTANCES, o.instance);
    sn_numa numa;
    if (o.numa)
        SN_TRY(sn_numa_parse(o.numa, "numa", &numa, err));
    char user_folder[4096];
    const char *cache = o.weights_cache, *tune = o.tune;
    const bool of_user = (cache && !*cache) || (tune && !*tune);
    const char *user = sn_cache_user_folder(user_folder, sizeof user_folder) ? user_folder : NULL;
    if (of_user && !user)
        sn_log_write(&model->context->core.log, SN_LOG_WARN,
                     "nothing is cached: neither XDG_CACHE_HOME nor HOME is an absolute path, so "
                     "there is no cache folder");
    cache = cache && !*cache ? user : cache;
    tune = tune && !*tune ? user : tune;
    if (!sn_precision_name(o.precision))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "precision %d is not known", (int)o.precision);
    sonde_context *c = model->context;
    sonde_session *s = sn_alloc_zero(&c->alloc, sizeof *s);
    if (!s)
        return sn_fail_memory(err, sizeof *s);
    atomic_init(&s->refs, 1);
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    s->model = model;
    s->instance = (uint32_t)o.instance;
    sn_arena_init(&s->arena, &c->alloc);
    const sn_session_config cfg = {.no_optimize = o.no_optimize != 0,
                                   .no_prepack = o.no_prepack != 0,
                                   .precision = o.precision,
                                   .plan_only = o.plan_only != 0,
                                   .disabled = o.disabled_passes,
                                   .n_disabled = o.disabled_pass_count,
                                   .threads = o.threads,
                                   .numa = o.numa ? &numa : NULL,
                                   .weights_cache = cache,
                                   .tune = tune,
                                   .flush_denormals = o.flush_denormals != 0,
                                   .instance = (uint32_t)o.instance,
                                   .instances = (uint32_t)o.instances};
    sn_api_begin_trace(c);
    sn_records_enter(&c->records);
    sonde_status st = sn_session_create(&c->core, model->core, &cfg, &s->core, err);
    sn_records_leave(&c->records);
    if (st == SONDE_OK)
        st = describe_all(s, err);
    if (st == SONDE_OK)
        st = sn_api_describe_placement(s, err);
    if (st != SONDE_OK) {
        sonde_session_release(s);
        return st;
    }
    *session = s;
    return SONDE_OK;
}

void sonde_session_release(sonde_session *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    sonde_model *model = s->model;
    if (s->core)
        sn_session_free(s->core);
    sn_arena_free(&s->arena);
    sn_free(&model->context->alloc, s, sizeof *s);
    sonde_model_release(model);
}

size_t sonde_session_input_count(const sonde_session *s)
{
    return s ? s->n_inputs : 0;
}

size_t sonde_session_output_count(const sonde_session *s)
{
    return s ? s->n_outputs : 0;
}

const char *sonde_session_input_name(const sonde_session *s, size_t index)
{
    return s && index < s->n_inputs ? s->input_names[index] : NULL;
}

const char *sonde_session_output_name(const sonde_session *s, size_t index)
{
    return s && index < s->n_outputs ? s->output_names[index] : NULL;
}

static sonde_status copy_info(const sonde_type_info *from, size_t count, size_t index,
                              const char *what, sonde_type_info *to, sonde_error *err)
{
    if (index >= count)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%s %zu of a model with %zu", what, index,
                       count);
    return sn_api_copy_out(to, &from[index], sizeof *to, err);
}

sonde_status sonde_session_input_info(const sonde_session *session, size_t index,
                                      sonde_type_info *info, sonde_error *err)
{
    SN_REQUIRE(session, err);
    SN_REQUIRE(info, err);
    return copy_info(session->inputs, session->n_inputs, index, "input", info, err);
}

sonde_status sonde_session_output_info(const sonde_session *session, size_t index,
                                       sonde_type_info *info, sonde_error *err)
{
    SN_REQUIRE(session, err);
    SN_REQUIRE(info, err);
    return copy_info(session->outputs, session->n_outputs, index, "output", info, err);
}

/* ------------------------------------------------------------------ cancelling */
/* From libc's memory: it belongs to no context, and a program with contexts of its own should not
 * get the process default for it. */
struct sonde_cancel_token {
    _Atomic int refs;
    _Atomic int stop;
};

sonde_status sonde_cancel_token_create(sonde_cancel_token **token, sonde_error *err)
{
    SN_REQUIRE(token, err);
    *token = NULL;
    sonde_cancel_token *t = calloc(1, sizeof *t);
    if (!t)
        return sn_fail_memory(err, sizeof *t);
    atomic_init(&t->refs, 1);
    *token = t;
    return SONDE_OK;
}

void sonde_cancel_token_release(sonde_cancel_token *t)
{
    if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
        free(t);
}

void sonde_cancel(sonde_cancel_token *t)
{
    if (t)
        atomic_store_explicit(&t->stop, 1, memory_order_relaxed);
}

bool sn_api_cancelled(const sonde_cancel_token *t)
{
    return atomic_load_explicit((_Atomic int *)(uintptr_t)&t->stop, memory_order_relaxed) != 0;
}

void sonde_cancel_reset(sonde_cancel_token *t)
{
    if (t)
        atomic_store_explicit(&t->stop, 0, memory_order_relaxed);
}

/* ------------------------------------------------------------------ running */
static void print_stderr(void *user, const char *text, size_t n)
{
    (void)user;
    (void)fwrite(text, 1, n, stderr);
}

enum { FEW = 16 }; /* inputs or outputs that need no memory beyond the stack */

typedef struct run_ports {
    const sn_slot *few_in[FEW], **in;
    sn_slot few_out[FEW], *out;
    sn_slot *clean; /* copies of inputs, where some were needed; else NULL */
    size_t n_in, n_out;
} run_ports;

static sonde_status ports_init(run_ports *p, sonde_context *c, size_t n_in, size_t n_out,
                               sonde_error *err)
{
    p->n_in = n_in;
    p->n_out = n_out;
    p->clean = NULL;
    p->in = n_in <= FEW ? p->few_in : sn_alloc(&c->alloc, n_in * sizeof *p->in);
    p->out = n_out <= FEW ? p->few_out : sn_alloc(&c->alloc, n_out * sizeof *p->out);
    if (!p->in || !p->out)
        return sn_fail_memory(err, (n_in + n_out) * sizeof *p->out);
    return SONDE_OK;
}

static void ports_free(run_ports *p, sonde_context *c)
{
    for (size_t i = 0; p->clean && i < p->n_in; i++)
        sn_slot_clear(&p->clean[i]);
    if (p->clean)
        sn_free(&c->alloc, p->clean, p->n_in * sizeof *p->clean);
    if (p->in != p->few_in)
        sn_free(&c->alloc, p->in, p->n_in * sizeof *p->in);
    if (p->out != p->few_out)
        sn_free(&c->alloc, p->out, p->n_out * sizeof *p->out);
}

/* The profile of one run that was recorded; NULL where it cannot be made: the run itself is fine.
 */
static void give_profile(sonde_context *c, uint64_t since, uint32_t run, sonde_profile **profile)
{
    const sn_records_request request = {.since = since, .only_run = run, .level = 1, .brief = true};
    sn_profile *core = NULL;
    if (sn_records_profile_of(&c->records, &request, &core, NULL) == SONDE_OK)
        (void)sn_api_profile(c, core, profile, NULL);
}

/* The run itself, and its timing table where one is wanted. A warm-up run has none, and neither has
 * one that was cancelled: both are left out of tables. */
static sonde_status run_core(sonde_session *s, const sonde_run_options *o,
                             const char *const *input_names, const run_ports *p,
                             const char *const *output_names, sonde_error *err)
{
    sonde_context *c = s->model->context;
    const bool warmup = o->warmup != 0 || sn_api_in_warmup();
    const bool timing = !warmup && (o->timing || sn_api_env()->timing);
    sn_run_config cfg = {.cancel = o->cancel ? &o->cancel->stop : NULL,
                         .interrupt = o->interrupt,
                         .interrupt_user = o->interrupt_user,
                         .warmup = warmup,
                         .record = timing || o->profile,
                         .verbose = o->verbose ? print_stderr : NULL};
    sn_observer reader;
    sn_run_watch watch;
    const bool watched = sn_api_is_watched(c, o), reads = timing || o->profile;
    if (reads) { /* nobody forgets what the table is made of */
        pthread_mutex_lock(&c->records.lock);
        sn_exec_measure_cost(&c->core);
        sn_records_read_begin(&c->records, &reader, sn_ticks());
        pthread_mutex_unlock(&c->records.lock);
    }
    sn_records_enter(&c->records);
    if (watched)
        sn_api_watch_begin(&watch, s, o, &cfg);
    const sonde_status st = sn_session_run(s->core, &cfg, input_names, p->in, p->n_in, output_names,
                                           p->out, p->n_out, err);
    if (watched)
        sn_api_watch_end(&watch, s, &cfg, st);
    sn_records_leave(&c->records);
    if (timing && cfg.run_id && st != SONDE_CANCELLED) {
        const sn_table_options table = {.sort_by_name = o->timing_sort_by_name != 0,
                                        .by_shape = o->timing_by_shape != 0,
                                        .filter_op = o->timing_filter};
        sn_api_print_timing(c, reader.since, cfg.run_id, o->timing ? &table : NULL);
    }
    if (o->profile && cfg.run_id && st == SONDE_OK)
        give_profile(c, reader.since, cfg.run_id, o->profile);
    if (reads)
        sn_records_read_end(&c->records, &reader);
    return st;
}

static sonde_status check_counts(const sonde_session *s, const char *const *input_names,
                                 sonde_value *const *inputs, size_t input_count, sonde_error *err)
{
    if (input_count > 0)
        SN_REQUIRE(inputs, err);
    if (!input_names && input_count > s->n_inputs)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%zu inputs given, the model has %zu",
                       input_count, s->n_inputs);
    for (size_t i = 0; i < input_count; i++) {
        if (input_names && !input_names[i])
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the name of input %zu is NULL", i);
        if (!inputs[i])
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "input '%s' is NULL",
                           input_names ? input_names[i] : s->input_names[i]);
    }
    return SONDE_OK;
}

sonde_status sonde_session_run(sonde_session *session, const sonde_run_options *options,
                               const char *const *input_names, sonde_value *const *inputs,
                               size_t input_count, const char *const *output_names,
                               sonde_value **outputs, size_t output_count, sonde_error *err)
{
    SN_REQUIRE(session, err);
    sonde_run_options o;
    SN_OPTIONS(o, options, err);
    if (o.profile)
        *o.profile = NULL;
    SN_TRY(check_counts(session, input_names, inputs, input_count, err));
    if (output_count > 0)
        SN_REQUIRE(outputs, err);
    if (!output_names && output_count > session->n_outputs)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%zu outputs requested, the model has %zu",
                       output_count, session->n_outputs);
    if (!input_names && (session->has_defaults || input_count != session->n_inputs))
        input_names = session->input_names;
    if (!output_names && output_count != session->n_outputs)
        output_names = session->output_names;

    sonde_context *c = session->model->context;
    run_ports p;
    sonde_status st = ports_init(&p, c, input_count, output_count, err);
    if (st != SONDE_OK) {
        ports_free(&p, c);
        return st;
    }
    bool truth = false;
    for (size_t i = 0; i < input_count; i++) {
        p.in[i] = &inputs[i]->slot;
        truth |= p.in[i]->kind != SN_KIND_TENSOR || p.in[i]->t.dtype == SONDE_DTYPE_BOOL;
    }
    if (truth)
        st = sn_api_clean_truth(p.in, input_count, &c->alloc, &p.clean, err);
    /* The caller's tensors are views here: what exec puts into the other slots is ours to wrap. */
    for (size_t i = 0; i < output_count; i++) {
        if (outputs[i])
            p.out[i] = outputs[i]->slot;
        else
            p.out[i] = (sn_slot){.kind = SN_KIND_NONE};
        p.out[i].t.owner = NULL;
        if (outputs[i] && (outputs[i]->slot.kind != SN_KIND_TENSOR ||
                           outputs[i]->slot.t.dtype == SONDE_DTYPE_STRING))
            st = sn_fail(err, SONDE_INVALID_ARGUMENT,
                         "output %zu cannot be written to: it is not a numeric tensor", i);
    }
    if (st == SONDE_OK)
        st = run_core(session, &o, input_names, &p, output_names, err);
    for (size_t i = 0; i < output_count; i++) {
        if (outputs[i])
            continue;
        if (st == SONDE_OK)
            st = sn_api_value(c, &p.out[i], &outputs[i], err);
        if (st != SONDE_OK)
            sn_slot_clear(&p.out[i]);
    }
    /* All or nothing: what was wrapped left its slot empty. */
    for (size_t i = 0; st != SONDE_OK && i < output_count; i++)
        if (outputs[i] && p.out[i].kind == SN_KIND_NONE) {
            sonde_value_release(outputs[i]);
            outputs[i] = NULL;
        }
    ports_free(&p, c);
    return st;
}

sonde_status sonde_session_partial_run(sonde_session *session, const sonde_run_options *options,
                                       const char *const *input_names, sonde_value *const *inputs,
                                       size_t input_count, sonde_value_set **set, sonde_error *err)
{
    SN_REQUIRE(session, err);
    SN_REQUIRE(set, err);
    *set = NULL;
    SN_TRY(check_counts(session, input_names, inputs, input_count, err));
    sonde_context *c = session->model->context;
    sonde_value_set *made = NULL;
    SN_TRY(sn_api_set_new(c, &made, err));
    if (!input_names)
        input_names = session->input_names;
    const char **names = NULL;
    size_t n = 0;
    sn_records_enter(&c->records);
    sonde_status st =
        sn_session_frontier(session->core, input_names, input_count, &made->arena, &names, &n, err);
    sn_records_leave(&c->records);
    sonde_value **outputs = NULL;
    if (st == SONDE_OK && n > 0) {
        outputs = SN_NEW_N(&made->arena, sonde_value *, n);
        st = outputs ? sonde_session_run(session, options, input_names, inputs, input_count,
                                         (const char *const *)names, outputs, n, err)
                     : sn_fail_memory(err, n * sizeof *outputs);
    }
    for (size_t i = 0; outputs && i < n; i++) {
        if (st == SONDE_OK)
            st = sn_api_set_add(made, names[i], outputs[i], err);
        if (st != SONDE_OK)
            sonde_value_release(outputs[i]);
    }
    if (st != SONDE_OK) {
        sonde_value_set_release(made);
        return st;
    }
    *set = made;
    return SONDE_OK;
}
