/* SPDX-License-Identifier: Apache-2.0 */
/* Model ► program: clone the graph, cut it at the feeds and outputs asked for, resolve, infer, run
 * the passes, and write the nodes down as steps over slots. A model remembers its live programs, so
 * that sessions with equal options share one (and with it one copy of the packed weights). The
 * model's lock guards that list only: a program is listed before it is made, its maker holds no
 * lock, and who wants the same one waits for it. */
#include "plan/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compute/packs.h"
#include "ops/framework/attributes.h"
#include "passes/pass.h"
#include "plan/binding.h"
#include "plan/cut.h"
#include "plan/memory_nodes.h"
#include "plan/symbols.h"
#include "plan/tuning.h"

/* ------------------------------------------------------------------ key */

static sonde_status append_text(sn_arena *arena, char **text, const char *part, sonde_error *err)
{
    *text = sn_arena_printf(arena, "%s%s", *text, part);
    return *text ? SONDE_OK : sn_fail_memory(err, strlen(part));
}

/* Names may hold any character: each is written with its length, so two lists never look alike. */
static sonde_status append_names(sn_arena *arena, char **text, const char *tag,
                                 const char *const *names, size_t n, sonde_error *err)
{
    if (!names)
        return SONDE_OK;
    SN_TRY(append_text(arena, text, tag, err));
    for (size_t i = 0; i < n; i++) {
        char *part = sn_arena_printf(arena, "%zu:%s;", strlen(names[i]), names[i]);
        if (!part)
            return sn_fail_memory(err, strlen(names[i]));
        SN_TRY(append_text(arena, text, part, err));
    }
    return SONDE_OK;
}

static sonde_status make_key(const sn_context *ctx, const sn_program_config *cfg, sn_arena *arena,
                             char **key, sonde_error *err)
{
    *key = sn_arena_printf(arena, "o%d p%d w%d l%d a%d c%x ", cfg->no_optimize, cfg->no_prepack,
                           (int)cfg->precision, cfg->plan_only, cfg->apart, ctx->cpu.flags);
    if (!*key)
        return sn_fail_memory(err, 32);
    SN_TRY(append_names(arena, key, "D", cfg->disabled, cfg->n_disabled, err));
    SN_TRY(append_names(arena, key, "T", cfg->tune ? &cfg->tune : NULL, 1, err));
    if (cfg->memory) { /* each node has weights of its own */
        char nodes[1024];
        const char *text = sn_id_set_text(cfg->memory, nodes, sizeof nodes);
        SN_TRY(append_names(arena, key, "N", &text, 1, err));
    }
    SN_TRY(append_names(arena, key, "F", cfg->feeds, cfg->n_feeds, err));
    return append_names(arena, key, "O", cfg->outputs, cfg->n_outputs, err);
}

/* ------------------------------------------------------------------ steps */

static sonde_status build(sn_program *root, sn_program *p, sonde_error *err);

static void init_locks(sn_program *p)
{
    p->process = getpid();
    sn_fork_lock_init(&p->lock);
    sn_stop_cond_init(&p->bind_done);
    sn_stop_cond_init(&p->made);
}

static sonde_status new_body(sn_program *root, sn_program *owner, sn_graph *g, sn_program **out,
                             sonde_error *err)
{
    sn_program *p = SN_NEW(&root->arena, sn_program);
    if (!p)
        return sn_fail_memory(err, sizeof *p);
    atomic_init(&p->refs, 1);
    p->ctx = root->ctx;
    p->model = root->model;
    p->parent = owner;
    p->unoptimized = root->unoptimized;
    p->precision = root->precision;
    p->memory = root->memory;
    p->plan_only = root->plan_only;
    p->tuning = root->tuning;
    p->graph = g;
    init_locks(p);
    *out = p; /* from here on the parent frees it */
    return build(root, p, err);
}

static uint32_t count_bodies(const sn_node *n)
{
    uint32_t k = 0;
    for (uint32_t a = 0; a < n->n_attrs; a++) {
        if (n->attrs[a].kind == SN_ATTR_GRAPH)
            k++;
        else if (n->attrs[a].kind == SN_ATTR_GRAPHS)
            k += (uint32_t)n->attrs[a].n;
    }
    return k;
}

static sonde_status build_step(sn_program *root, sn_program *p, sn_node *n, sn_step *s,
                               sonde_error *err)
{
    uint32_t *in = SN_NEW_N(&root->arena, uint32_t, n->n_in);
    uint32_t *out = SN_NEW_N(&root->arena, uint32_t, n->n_out);
    if (!in || !out)
        return sn_fail_memory(err, (n->n_in + n->n_out) * sizeof *in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i].value ? n->in[i].value->id : SN_NO_SLOT;
    for (uint32_t o = 0; o < n->n_out; o++)
        out[o] = n->out[o] ? n->out[o]->id : SN_NO_SLOT;
    s->op = n->op;
    s->node = n;
    s->params = n->params;
    s->run = n->op->run;
    s->in = in;
    s->out = out;
    s->n_in = n->n_in;
    s->n_out = n->n_out;
    uint32_t n_bodies = count_bodies(n);
    if (!n_bodies)
        return SONDE_OK;
    const void **handles = SN_NEW_N(&root->arena, const void *, n_bodies);
    if (!handles)
        return sn_fail_memory(err, n_bodies * sizeof *handles);
    s->bodies = handles;
    for (uint32_t a = 0; a < n->n_attrs; a++) {
        const sn_attr *attr = &n->attrs[a];
        size_t k = attr->kind == SN_ATTR_GRAPH ? 1 : attr->kind == SN_ATTR_GRAPHS ? attr->n : 0;
        for (size_t i = 0; i < k; i++) {
            sn_graph *g = attr->kind == SN_ATTR_GRAPH ? attr->graph : attr->graphs[i];
            sn_program **body = &p->bodies[p->n_bodies];
            sonde_status st = new_body(root, p, g, body, err);
            if (*body)
                p->n_bodies++;
            SN_TRY(st);
            handles[s->n_bodies++] = *body;
        }
    }
    return SONDE_OK;
}

/* Slots, steps and bodies of p->graph (passes are done). */
static sonde_status build(sn_program *root, sn_program *p, sonde_error *err)
{
    sn_graph *g = p->graph;
    uint32_t n_bodies = 0;
    sn_graph_drop_values(g); /* what the passes left behind would be a slot of every frame */
    for (const sn_node *n = g->first; n; n = n->next)
        n_bodies += count_bodies(n);
    p->n_slots = (uint32_t)g->values.n;
    p->n_inputs = (uint32_t)g->inputs.n;
    p->n_formal_inputs = g->n_formal_inputs;
    p->n_outputs = (uint32_t)g->outputs.n;
    p->steps = SN_NEW_N(&root->arena, sn_step, g->n_live_nodes);
    p->inputs = SN_NEW_N(&root->arena, uint32_t, p->n_inputs);
    p->outputs = SN_NEW_N(&root->arena, uint32_t, p->n_outputs);
    p->bodies = SN_NEW_N(&root->arena, sn_program *, n_bodies);
    if (!p->steps || !p->inputs || !p->outputs || !p->bodies)
        return sn_fail_memory(err, g->n_live_nodes * sizeof *p->steps);
    for (uint32_t i = 0; i < p->n_inputs; i++)
        p->inputs[i] = g->inputs.data[i]->id;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->outputs[i] = g->outputs.data[i]->id;
    for (sn_node *n = g->first; n; n = n->next) {
        sn_step *s = &p->steps[p->n_steps];
        s->index = p->n_steps++;
        SN_TRY(build_step(root, p, n, s, err));
    }
    return SONDE_OK;
}

/* Constant slots; sn_program_pack may add packed ones behind them. */
static sonde_status set_consts(sn_program *root, sn_program *p, sonde_error *err)
{
    p->consts = SN_NEW_N(&root->arena, sn_slot, p->n_slots);
    if (!p->consts)
        return sn_fail_memory(err, p->n_slots * sizeof *p->consts);
    for (size_t i = 0; i < p->graph->values.n; i++) {
        const sn_value *v = p->graph->values.data[i];
        if (!v->fact.data || v->is_input)
            continue;
        p->consts[i].kind = SN_KIND_TENSOR;
        p->consts[i].t = *v->fact.data;
        p->consts[i].t.owner = NULL;
    }
    for (uint32_t k = 0; k < p->n_bodies; k++)
        SN_TRY(set_consts(root, p->bodies[k], err));
    return SONDE_OK;
}

/* Steps may read the elements of every constant they see: what stays unpacked is aligned now. */
static sonde_status align_consts(sn_program *root, sn_program *p, sonde_error *err)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t j = 0; j < p->steps[i].n_in; j++) {
            uint32_t s = p->steps[i].in[j];
            if (s == SN_NO_SLOT || p->consts[s].kind != SN_KIND_TENSOR || p->consts[s].t.pack ||
                sn_tensor_is_readable(&p->consts[s].t) ||
                (j == 0 && (p->steps[i].op->flags & SN_OP_BYTES0) && !p->consts[s].t.scale))
                continue;
            sn_value *v = p->graph->values.data[s];
            SN_TRY(sn_value_make_readable(p->graph, v, &root->buffers, err));
            sn_model_release(root->model, &p->consts[s].t);
            p->consts[s].t = *v->fact.data;
            p->consts[s].t.owner = NULL;
        }
    for (uint32_t k = 0; k < p->n_bodies; k++)
        SN_TRY(align_consts(root, p->bodies[k], err));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ life */

void sn_program_adopt(sn_program *p)
{
    if (p->process == getpid())
        return;
    p->process = getpid();
    p->bind_jobs = NULL;
    sn_stop_cond_init(&p->bind_done);
    sn_stop_cond_init(&p->made);
}

static void free_tree(sn_program *p)
{
    sn_program_adopt(p);
    for (uint32_t k = 0; k < p->n_bodies; k++)
        free_tree(p->bodies[k]);
    while (p->bindings) {
        sn_binding *b = p->bindings;
        p->bindings = b->next;
        sn_binding_unref(b);
    }
    sn_fork_lock_destroy(&p->lock);
    pthread_cond_destroy(&p->bind_done);
    pthread_cond_destroy(&p->made);
}

static void program_free(sn_program *p)
{
    sn_allocator *alloc = p->ctx->alloc;
    free_tree(p);
    if (p->graph)
        sn_graph_free(p->graph);
    for (size_t i = 0; i < p->buffers.list.n; i++)
        sn_buffer_unref(p->buffers.list.data[i]);
    sn_vec_free(&p->buffers.list, alloc);
    if (p->packed)
        atomic_fetch_sub_explicit(&p->ctx->packed_bytes, p->packed_bytes, memory_order_relaxed);
    sn_program_unbind_buffer(p, p->packed);
    sn_buffer_unref(p->packed);
    sn_tuning_free(p->tuning);
    sn_arena_free(&p->arena);
    if (p->model)
        sn_model_unref(p->model);
    sn_free(alloc, p, sizeof *p);
}

sn_program *sn_program_ref(sn_program *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

/* With the model's lock held. */
static void unlist(sn_program *p)
{
    for (sn_program **q = (sn_program **)&p->model->programs; *q; q = &(*q)->next_shared)
        if (*q == p) {
            *q = p->next_shared;
            return;
        }
}

void sn_program_unref(sn_program *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    sn_fork_lock_take(&p->model->lock);
    unlist(p);
    sn_fork_lock_give(&p->model->lock);
    program_free(p);
}

/* Takes a reference unless the last one is already gone. */
static bool try_ref(sn_program *p)
{
    int n = atomic_load_explicit(&p->refs, memory_order_relaxed);
    while (n > 0)
        if (atomic_compare_exchange_weak(&p->refs, &n, n + 1))
            return true;
    return false;
}

static sonde_status program_new(sn_context *ctx, sn_model *model, const sn_program_config *cfg,
                                const char *key, sn_program **out, sonde_error *err)
{
    sn_program *p = sn_alloc_zero(ctx->alloc, sizeof *p);
    if (!p)
        return sn_fail_memory(err, sizeof *p);
    atomic_init(&p->refs, 1);
    p->ctx = ctx;
    p->model = sn_model_ref(model);
    p->plan_only = cfg->plan_only;
    p->apart = cfg->apart;
    p->unoptimized = cfg->no_optimize;
    p->precision = cfg->precision;
    init_locks(p);
    sn_arena_init(&p->arena, ctx->alloc);
    p->key = sn_arena_strdup(&p->arena, key);
    sn_id_set *memory = cfg->memory ? SN_NEW(&p->arena, sn_id_set) : NULL;
    if (!p->key || (cfg->memory && !memory)) {
        program_free(p);
        return sn_fail_memory(err, strlen(key));
    }
    if (memory)
        *memory = *cfg->memory;
    p->memory = memory;
    *out = p;
    return SONDE_OK;
}

static sonde_status program_make(sn_program *p, const sn_program_config *cfg, sn_pool *pool,
                                 sonde_error *err)
{
    sn_context *ctx = p->ctx;
    if (cfg->tune && !cfg->plan_only)
        SN_TRY(sn_tuning_open(ctx, cfg->tune, &p->tuning, err));
    uint64_t t = sn_span_begin(ctx->trace);
    SN_TRY(sn_graph_clone(p->model->graph, &p->arena, &p->graph, err));
    SN_TRY(sn_cut_graph(p->graph, p->model->graph, cfg, err));
    if (cfg->apart)
        SN_TRY(sn_symbols_part(p->graph, err));
    sn_span_end(ctx->trace, t, "clone", NULL);
    t = sn_span_begin(ctx->trace);
    SN_TRY(sn_ops_resolve(p->graph, err));
    SN_TRY(sn_ops_check_attributes(p->graph, &ctx->log, err));
    SN_TRY(sn_ops_infer(p->graph, err));
    sn_span_end(ctx->trace, t, "infer", NULL);
    sn_pass_env env = {.ctx = ctx,
                       .cpu_flags = ctx->cpu.flags,
                       .precision = cfg->no_prepack ? SONDE_PRECISION_F32 : cfg->precision,
                       .buffers = &p->buffers,
                       .err = err};
    SN_TRY(sn_passes_run(p->graph, &env, cfg->disabled, cfg->n_disabled, cfg->no_optimize));
    t = sn_span_begin(ctx->trace);
    SN_TRY(build(p, p, err));
    SN_TRY(set_consts(p, p, err));
    sn_span_end(ctx->trace, t, "build steps", NULL);
    if (!cfg->no_prepack) {
        t = sn_span_begin(ctx->trace);
        SN_TRY(sn_program_pack(p, p, pool, cfg->weights_cache, err));
        sn_span_end(ctx->trace, t, "pack weights", NULL);
    }
    return cfg->plan_only ? SONDE_OK : align_consts(p, p, err);
}

/* With the model's lock held: the listed program with this key and a reference to it, or NULL. One
 * that a process was making when this one was forked from it will never be ready here. */
static sn_program *find_listed(sn_model *model, const char *key)
{
    for (sn_program *p = model->programs, *next; p; p = next) {
        next = p->next_shared;
        if (p->state == SN_PROGRAM_BEING_MADE && p->process != getpid())
            unlist(p);
        else if (strcmp(p->key, key) == 0 && try_ref(p))
            return p;
    }
    return NULL;
}

/* The listed program, once it is ready. NULL: there is none; then `mine`, if not NULL, is listed.
 */
static sonde_status find_ready(sn_model *model, const char *key, const sn_stop *stop,
                               sn_program *mine, sn_program **found, sonde_error *err)
{
    for (;;) {
        sonde_status st = SONDE_OK;
        sn_fork_lock_take(&model->lock);
        sn_program *p = find_listed(model, key);
        while (p && !st && p->state == SN_PROGRAM_BEING_MADE)
            st = sn_stop_wait(stop, &p->made, &model->lock.mutex, err);
        if (!p && mine) {
            mine->next_shared = model->programs;
            model->programs = mine;
        }
        const bool done = !p || (!st && p->state == SN_PROGRAM_READY);
        sn_fork_lock_give(&model->lock);
        *found = done ? p : NULL;
        if (done)
            return SONDE_OK;
        sn_program_unref(p);
        if (st)
            return st;
    }
}

/* Makes a listed program; whoever waits for it is told how that ended. */
static sonde_status make_listed(sn_program *p, const sn_program_config *cfg, sn_pool *pool,
                                sonde_error *err)
{
    const uint64_t t = sn_span_begin(p->ctx->trace);
    const sonde_status st = program_make(p, cfg, pool, err);
    sn_span_end(p->ctx->trace, t, "compile", NULL);
    sn_fork_lock_take(&p->model->lock);
    p->state = st ? SN_PROGRAM_FAILED : SN_PROGRAM_READY;
    if (st)
        unlist(p);
    pthread_cond_broadcast(&p->made);
    sn_fork_lock_give(&p->model->lock);
    return st;
}

/* Only programs that may have a use for AMX ask the system for it; those with constants of f16 do
 * so when they are packed. */
static void ask_for_tiles(sn_context *ctx, const sn_model *model, sonde_precision precision)
{
    const bool halves = precision == SONDE_PRECISION_BF16 || precision == SONDE_PRECISION_F16;
    if ((ctx->cpu.flags & ctx->cpu.on_request) &&
        (halves || sn_ops_any(model->graph, SN_OP_TILES)) && !sn_cpu_request(&ctx->cpu))
        sn_log_write(&ctx->log, SN_LOG_WARN,
                     "the operating system refuses AMX to this process; it runs without");
}

/* What SONDE_PRECISION_AUTO is here. */
static sonde_precision fastest_precision(sn_context *ctx)
{
    if (ctx->cpu.flags & ctx->cpu.on_request)
        (void)sn_cpu_request(&ctx->cpu); /* one that is refused has no such flag afterwards */
    return sn_pack_has_fast_tiles(ctx->cpu.flags) ? SONDE_PRECISION_BF16 : SONDE_PRECISION_F32;
}

sonde_status sn_program_get(sn_context *ctx, sn_model *model, const sn_program_config *asked,
                            sn_pool *pool, const sn_stop *stop, sn_program **program,
                            sonde_error *err)
{
    sn_arena scratch;
    sn_program *mine = NULL, *found = NULL;
    char *key = NULL;
    sn_program_config own = *asked;
    const sn_program_config *cfg = &own;
    if (own.precision == SONDE_PRECISION_AUTO)
        own.precision = fastest_precision(ctx);
    ask_for_tiles(ctx, model, own.precision);
    sn_arena_init(&scratch, ctx->alloc);
    sonde_status st = make_key(ctx, cfg, &scratch, &key, err);
    if (!st)
        st = find_ready(model, key, stop, NULL, &found, err);
    if (!st && !found)
        st = program_new(ctx, model, cfg, key, &mine, err);
    if (mine)
        st = find_ready(model, key, stop, mine, &found, err);
    if (mine && !found && !st)
        st = make_listed(mine, cfg, pool, err);
    if (found || st)
        sn_program_unref(mine);
    if (!st)
        *program = found ? found : mine;
    sn_arena_free(&scratch);
    return st;
}
