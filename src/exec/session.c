/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: which program serves a run. The graph's own inputs and outputs are served by one
 * program made at the start; asking for other feeds or outputs makes one more, which is kept for
 * some time. */
#include "exec/session.h"

#include <errno.h>
#include <string.h>

#include "base/affinity.h"
#include "base/fpmode.h"
#include "exec/other_programs.h"
#include "exec/run.h"
#include "plan/binding.h"
#include "plan/symbols.h"

struct sn_session {
    sn_context *ctx;
    sn_model *model;
    sn_session_config cfg;
    sn_arena arena; /* copies of option strings */
    sn_pool *pool;  /* own, or the context's */
    bool own_pool;
    const sn_seats *seats; /* of the pool; NULL: nothing is bound */
    sn_seats *own_seats;
    int threads;
    sn_program *declared; /* as the file has it */
    /* The same, until inputs give a name of a dimension two sizes: then one in which the names of
     * the inputs are told apart, for good. */
    _Atomic(sn_program *) program;
    sn_other_programs others;
};

static sonde_status copy_config(sn_session *s, const sn_session_config *cfg, sonde_error *err)
{
    s->cfg = *cfg;
    const char **names = SN_NEW_N(&s->arena, const char *, cfg->n_disabled);
    if (!names)
        return sn_fail_memory(err, cfg->n_disabled * sizeof *names);
    for (size_t i = 0; i < cfg->n_disabled; i++) {
        names[i] = sn_arena_strdup(&s->arena, cfg->disabled[i]);
        if (!names[i])
            return sn_fail_memory(err, strlen(cfg->disabled[i]));
    }
    s->cfg.disabled = names;
    if (cfg->weights_cache &&
        !(s->cfg.weights_cache = sn_arena_strdup(&s->arena, cfg->weights_cache)))
        return sn_fail_memory(err, strlen(cfg->weights_cache));
    if (cfg->tune && !(s->cfg.tune = sn_arena_strdup(&s->arena, cfg->tune)))
        return sn_fail_memory(err, strlen(cfg->tune));
    return SONDE_OK;
}

static sn_program_config program_config(const sn_session *s)
{
    return (sn_program_config){
        .no_optimize = s->cfg.no_optimize,
        .no_prepack = s->cfg.no_prepack,
        .precision = s->cfg.precision,
        .plan_only = s->cfg.plan_only,
        .disabled = s->cfg.disabled,
        .n_disabled = s->cfg.n_disabled,
        .weights_cache = s->cfg.weights_cache,
        .tune = s->cfg.tune,
        .apart = sn_session_program(s) != s->declared,
        .memory = s->seats && !sn_id_set_is_empty(&s->seats->memory) ? &s->seats->memory : NULL};
}

/* ------------------------------------------------------------------ threads */
/* Threads as they are asked for; 0: as many as there are cores where they are bound. */
static int wanted_threads(const sn_session *s)
{
    const int shares = s->cfg.instances > 1 ? (int)s->cfg.instances : 1;
    if (s->cfg.threads > 0)
        return s->cfg.threads;
    return s->ctx->threads / shares > 1 ? s->ctx->threads / shares : 1;
}

/* Whether the context's pool is just what this session would make. */
static bool shares_pool(const sn_session *s, const sn_numa *numa)
{
    const sn_context *ctx = s->ctx;
    if (s->cfg.threads > 0 && s->cfg.threads != ctx->threads)
        return false;
    return s->cfg.instances <= 1 && sn_numa_same(numa, &ctx->numa);
}

static sonde_status take_seats(sn_session *s, const sn_numa *numa, sonde_error *err)
{
    sn_context *ctx = s->ctx;
    const sn_topology *t;
    if (numa->mode == SN_NUMA_OFF)
        return SONDE_OK;
    SN_TRY(sn_topology_get(&ctx->topology, ctx->system_root, ctx->alloc, &t, err));
    const sn_seats_ask ask = {.numa = *numa,
                              .threads =
                                  s->cfg.threads > 0 || ctx->threads_given ? wanted_threads(s) : 0,
                              .instance = (int)s->cfg.instance,
                              .instances = (int)s->cfg.instances,
                              .here = sn_affinity_cpu(),
                              .quota_cores = ctx->cpu.quota_cores};
    SN_TRY(sn_seats_make(t, &ask, ctx->alloc, &s->own_seats, err));
    s->seats = s->own_seats;
    return SONDE_OK;
}

/* The pool of the context, or one of its own. */
static sonde_status find_pool(sn_session *s, sonde_error *err)
{
    sn_context *ctx = s->ctx;
    const sn_numa *numa = s->cfg.numa ? s->cfg.numa : &ctx->numa;
    s->pool = ctx->pool;
    s->threads = ctx->threads;
    s->seats = ctx->seats;
    if (shares_pool(s, numa))
        return SONDE_OK;
    s->seats = NULL;
    SN_TRY(take_seats(s, numa, err));
    s->threads = s->seats ? s->seats->n : wanted_threads(s);
    if (!s->seats && !ctx->seats && s->threads == ctx->threads)
        return SONDE_OK;
    s->pool = NULL;
    SN_TRY(sn_pool_create_seated(&s->pool, s->seats, s->threads, ctx->alloc, err));
    s->own_pool = true;
    sn_pool_set_trace(s->pool, ctx->trace);
    return SONDE_OK;
}

/* The calling thread is the pool's first while a session is made or run. */
static void sit(const sn_session *s, sn_sitting *sitting)
{
    sn_context *ctx = s->ctx;
    if (sn_sit(sitting, s->seats, 0))
        return;
    const int why = errno;
    int none = 0;
    if (atomic_compare_exchange_strong(&ctx->threads_refused, &none, why))
        sn_log_write(&ctx->log, SN_LOG_WARN,
                     "threads are not bound to CPUs, because the system refuses it: %s",
                     strerror(why));
}

sonde_status sn_session_create(sn_context *ctx, sn_model *model, const sn_session_config *cfg,
                               sn_session **session, sonde_error *err)
{
    static const sn_session_config defaults;
    sn_session *s = sn_alloc_zero(ctx->alloc, sizeof *s);
    if (!s)
        return sn_fail_memory(err, sizeof *s);
    sonde_status st;
    s->ctx = ctx;
    s->model = sn_model_ref(model);
    sn_other_programs_init(&s->others, ctx->alloc);
    sn_arena_init(&s->arena, ctx->alloc);
    SN_TRY_GOTO(st, copy_config(s, cfg ? cfg : &defaults, err));
    SN_TRY_GOTO(st, find_pool(s, err));
    s->cfg.numa = NULL; /* the caller's */
    sn_program_config pc = program_config(s);
    sn_sitting sitting;
    sit(s, &sitting);
    st = sn_program_get(ctx, model, &pc, s->pool, NULL, &s->declared, err);
    sn_stand_up(&sitting);
    if (st)
        goto fail;
    atomic_store_explicit(&s->program, s->declared, memory_order_release);
    *session = s;
    return SONDE_OK;
fail:
    sn_session_free(s);
    return st;
}

sonde_status sn_session_plan(const sn_session *s, sn_program **plan, sonde_error *err)
{
    sn_program_config pc = program_config(s);
    pc.plan_only = true;
    return sn_program_get(s->ctx, s->model, &pc, s->pool, NULL, plan, err);
}

void sn_session_free(sn_session *s)
{
    if (!s)
        return;
    sn_other_programs_free(&s->others);
    sn_program *program = sn_session_program(s);
    if (program != s->declared)
        sn_program_unref(program);
    sn_program_unref(s->declared);
    if (s->own_pool)
        sn_pool_free(s->pool);
    sn_seats_free(s->own_seats);
    sn_model_unref(s->model);
    sn_arena_free(&s->arena);
    sn_free(s->ctx->alloc, s, sizeof *s);
}

sn_model *sn_session_model(const sn_session *s)
{
    return s->model;
}
sn_program *sn_session_program(const sn_session *s)
{
    return atomic_load_explicit(&s->program, memory_order_acquire);
}
int sn_session_threads(const sn_session *s)
{
    return s->threads;
}
sn_pool *sn_session_pool(const sn_session *s)
{
    return s->pool;
}
const sn_seats *sn_session_seats(const sn_session *s)
{
    return s->seats;
}

/* ------------------------------------------------------------------ which program */

static bool same_names(const char *const *names, size_t n, sn_value *const *values, size_t n_values)
{
    if (!names)
        return true;
    if (n != n_values)
        return false;
    for (size_t i = 0; i < n; i++)
        if (names[i] != values[i]->name && strcmp(names[i], values[i]->name) != 0)
            return false;
    return true;
}

/* Feeds may come in any order and leave out inputs with defaults; NULL names mean the graph's
 * order. *other: the caller holds a reference to the program, until the run is over. */
static sonde_status choose_program(sn_session *s, sn_run_config *cfg, const char *const *in_names,
                                   size_t n_in, const char *const *out_names, size_t n_out,
                                   sn_program **program, bool *other, sonde_error *err)
{
    sn_program *own = sn_session_program(s);
    const sn_graph *g = own->graph;
    if (same_names(in_names, n_in, g->inputs.data, g->inputs.n) &&
        same_names(out_names, n_out, g->outputs.data, g->outputs.n)) {
        if (!in_names && n_in != g->inputs.n)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the model has %zu inputs but %zu were given", g->inputs.n, n_in);
        if (!out_names && n_out != g->outputs.n)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the model has %zu outputs but %zu were requested", g->outputs.n, n_out);
        *program = own;
        return SONDE_OK;
    }
    sn_stop stop;
    sn_program_config pc = program_config(s);
    pc.feeds = in_names;
    pc.n_feeds = n_in;
    pc.outputs = out_names;
    pc.n_outputs = n_out;
    SN_TRY(sn_other_programs_get(&s->others, s->ctx, s->model, &pc, s->pool,
                                 sn_run_stop(cfg, &stop), program, err));
    *other = true;
    return SONDE_OK;
}

/* When the names given are the graph's own inputs in another order, the default program serves:
 * says where each of its inputs stands among the names. False otherwise. */
static bool reorder_inputs(const sn_session *s, const char *const *names, const sn_slot *const *in,
                           size_t n_in, const sn_slot **ordered)
{
    const sn_graph *g = sn_session_program(s)->graph;
    if (!names || n_in != g->inputs.n)
        return false;
    for (size_t i = 0; i < n_in; i++) {
        ordered[i] = NULL;
        for (size_t k = 0; k < n_in && !ordered[i]; k++)
            if (strcmp(names[k], g->inputs.data[i]->name) == 0)
                ordered[i] = in[k];
        if (!ordered[i])
            return false;
    }
    return true;
}

/* `program` refused inputs because they give a name of a dimension two sizes: the session has
 * another program now, which does not mind. False: that is not what was wrong. */
static bool tell_apart(sn_session *s, const sn_program *program, const sn_slot *const *in,
                       sonde_error *err)
{
    sn_symbol_clash clash;
    if (program->apart || !sn_symbols_clash(program, in, &clash))
        return false;
    sn_program_config pc = program_config(s);
    pc.apart = true;
    sn_program *made = NULL, *declared = s->declared;
    if (sn_program_get(s->ctx, s->model, &pc, s->pool, NULL, &made, err))
        return false;
    if (err) { /* nothing is wrong any more */
        err->status = SONDE_OK;
        err->message[0] = 0;
    }
    if (!atomic_compare_exchange_strong(&s->program, &declared, made)) {
        sn_program_unref(made); /* another thread was faster */
        return true;
    }
    sn_log_write(&s->ctx->log, SN_LOG_WARN,
                 "input '%s' has dimension '%s' = %lld, but another dimension of that name has "
                 "%lld: from now on they are taken for different ones",
                 clash.input, clash.symbol, (long long)clash.size, (long long)clash.other);
    return true;
}

typedef struct request {
    sn_run_config *cfg;
    const char *const *in_names, *const *out_names;
    const sn_slot *const *in;
    sn_slot *results;
    size_t n_in, n_out;
} request;

/* *again: it failed, but would not now. */
static sonde_status serve(sn_session *s, const request *r, bool *again, sonde_error *err)
{
    sn_program *program = NULL;
    bool other = false;
    SN_TRY(choose_program(s, r->cfg, r->in_names, r->n_in, r->out_names, r->n_out, &program, &other,
                          err));
    sn_call call = {.program = program,
                    .in = r->in,
                    .out = r->results,
                    .pool = s->pool,
                    .threads = s->threads,
                    .instance = s->cfg.instance,
                    .cfg = r->cfg,
                    .err = err};
    sn_call_fn run = atomic_load_explicit(&s->ctx->call, memory_order_relaxed);
    if (r->cfg->record || r->cfg->verbose)
        run = sn_call_recorded;
    const uint32_t mode = s->cfg.flush_denormals ? sn_fp_get() : 0;
    if (s->cfg.flush_denormals)
        sn_fp_set(sn_fp_flushing(mode)); /* pool threads take over their caller's mode */
    const sonde_status st = run(&call);
    if (s->cfg.flush_denormals)
        sn_fp_set(mode);
    *again = st == SONDE_INVALID_ARGUMENT && tell_apart(s, program, r->in, err);
    if (other)
        sn_program_unref(program);
    return st;
}

sonde_status sn_session_run(sn_session *s, sn_run_config *cfg, const char *const *in_names,
                            const sn_slot *const *in, size_t n_in, const char *const *out_names,
                            sn_slot *out, size_t n_out, sonde_error *err)
{
    sn_run_config none = {0};
    const sn_slot *small[32], **ordered = small;
    sn_slot small_out[8], *results = small_out;
    if (s->cfg.plan_only)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "this session was created for inspection and cannot run");
    bool big_in = n_in > 32, big_out = n_out > 8;
    if (big_in)
        ordered = sn_alloc(s->ctx->alloc, n_in * sizeof *ordered);
    if (big_out)
        results = sn_alloc(s->ctx->alloc, n_out * sizeof *results);
    sn_sitting sitting;
    sit(s, &sitting);
    sonde_status st = ordered && results ? SONDE_OK : sn_fail_memory(err, n_out * sizeof *results);
    if (!st) {
        request r = {cfg ? cfg : &none, in_names, out_names, in, results, n_in, n_out};
        if (reorder_inputs(s, in_names, in, n_in, ordered)) {
            r.in = ordered;
            r.in_names = NULL;
        }
        bool again = true;
        while (again) {
            again = false;
            memcpy(results, out, n_out * sizeof *results);
            st = serve(s, &r, &again, err);
        }
        for (size_t o = 0; o < n_out; o++) {
            if (!st)
                out[o] = results[o];
            else if (out[o].kind == SN_KIND_NONE)
                sn_slot_clear(&results[o]);
        }
    }
    sn_stand_up(&sitting);
    if (big_in)
        sn_free(s->ctx->alloc, ordered, n_in * sizeof *ordered);
    if (big_out)
        sn_free(s->ctx->alloc, results, n_out * sizeof *results);
    return st;
}

sonde_status sn_session_bind(sn_session *s, const sn_slot *const *in, sn_binding **bound,
                             sonde_error *err)
{
    bool made, again = true;
    sonde_status st = SONDE_OK;
    while (again) {
        sn_program *program = sn_session_program(s);
        st = sn_binding_get(program, in, s->threads, s->pool, NULL, bound, &made, err);
        again = st == SONDE_INVALID_ARGUMENT && tell_apart(s, program, in, err);
    }
    return st;
}

/* ------------------------------------------------------------------ partial runs */

sonde_status sn_session_frontier(sn_session *s, const char *const *in_names, size_t n_in,
                                 sn_arena *arena, const char ***names, size_t *n, sonde_error *err)
{
    enum { NEEDS_MORE, FED, CONSTANT }; /* what a value depends on */
    const sn_graph *g = s->model->graph;
    sn_map fed;
    sn_map_init(&fed, s->ctx->alloc);
    uint8_t *state = SN_NEW_N(arena, uint8_t, g->values.n);
    uint8_t *given = SN_NEW_N(arena, uint8_t, g->values.n);
    *names = SN_NEW_N(arena, const char *, g->values.n);
    *n = 0;
    sonde_status st = state && given && *names ? SONDE_OK : sn_fail_memory(err, g->values.n);
    for (size_t i = 0; i < n_in && !st; i++)
        if (!sn_map_put(&fed, in_names[i], (void *)(uintptr_t)in_names[i], NULL))
            st = sn_fail_memory(err, sizeof(sn_map_entry));
    size_t found = 0;
    for (size_t i = 0; i < g->values.n && !st; i++) {
        const sn_value *v = g->values.data[i];
        if (*v->name && sn_map_get(&fed, v->name)) {
            state[i] = FED;
            given[i] = 1;
            found++;
        } else if (v->fact.data) {
            state[i] = CONSTANT;
        }
    }
    if (!st && found < n_in)
        st =
            sn_fail(err, SONDE_NOT_FOUND, "one of the %zu feeds is not a value of the model", n_in);
    for (const sn_node *node = st ? NULL : g->first; node; node = node->next) {
        uint8_t result = CONSTANT;
        for (uint32_t i = 0; i < node->n_in; i++)
            if (node->in[i].value && state[node->in[i].value->id] < result)
                result = state[node->in[i].value->id];
        for (uint32_t o = 0; o < node->n_out; o++)
            if (node->out[o] && !given[node->out[o]->id])
                state[node->out[o]->id] = result;
    }
    for (size_t i = 0; i < g->values.n && !st; i++) {
        const sn_value *v = g->values.data[i];
        if (state[i] != FED || !*v->name)
            continue; /* a feed that the rest reads too is handed on */
        bool needed = v->n_outputs > 0;
        for (const sn_edge *e = v->uses; e && !needed; e = e->next)
            for (uint32_t o = 0; o < e->node->n_out && !needed; o++)
                needed = e->node->out[o] && state[e->node->out[o]->id] == NEEDS_MORE;
        if (needed)
            (*names)[(*n)++] = v->name;
    }
    sn_map_free(&fed);
    return st;
}
