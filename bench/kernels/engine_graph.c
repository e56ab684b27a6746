/* SPDX-License-Identifier: Apache-2.0 */
/* A small graph as a session runs it: passes, packed weights, steps, in a context of its own. */
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "bench.h"
#include "graphs.h"
#include "plan/binding.h"

enum { MOST_VALUES = 4 };

typedef struct work {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    sonde_value *in[MOST_VALUES], *out[MOST_VALUES];
    size_t n_in, n_out;
} work;

static sonde_status try_run(work *w, sonde_error *err)
{
    return sonde_session_run(w->session, NULL, NULL, w->in, w->n_in, NULL, w->out, w->n_out, err);
}

/* It has run before. */
static void run(void *state)
{
    sonde_error err;
    if (try_run(state, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
}

static void release(void *state)
{
    work *w = state;
    for (size_t i = 0; i < w->n_in; i++)
        sonde_value_release(w->in[i]);
    for (size_t i = 0; i < w->n_out; i++)
        sonde_value_release(w->out[i]);
    sonde_session_release(w->session);
    sonde_model_release(w->model);
    sonde_context_release(w->context);
    free(w);
}

static sonde_status make_model(work *w, const bench_graph *g, sonde_error *err)
{
    sn_model *m = NULL;
    sn_builder b;
    SN_TRY(sn_model_new(&m, &w->context->core, err));
    sn_b_init(&b, m, 17, 1, err);
    g->build(&b, g);
    sonde_status st = *b.status;
    if (st == SONDE_OK)
        st = sn_model_finish(m, err);
    if (st != SONDE_OK) {
        sn_model_unref(m);
        return st;
    }
    return sn_api_model(w->context, m, g->layer, &w->model, err);
}

static sonde_status make_inputs(work *w, sonde_error *err)
{
    w->n_in = sonde_session_input_count(w->session);
    w->n_out = sonde_session_output_count(w->session);
    if (w->n_in > MOST_VALUES || w->n_out > MOST_VALUES)
        return sn_fail(err, SONDE_LIMIT, "too many inputs or outputs");
    for (size_t i = 0; i < w->n_in; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        SN_TRY(sonde_session_input_info(w->session, i, &info, err));
        size_t bytes = sizeof(float);
        for (size_t k = 0; k < (size_t)info.rank; k++)
            bytes *= (size_t)info.dims[k];
        float *data = bench_floats(bytes);
        const sonde_status st = sonde_tensor_create(w->context, SONDE_DTYPE_F32, info.dims,
                                                    (size_t)info.rank, data, bytes, &w->in[i], err);
        free(data);
        SN_TRY(st);
    }
    return SONDE_OK;
}

/* What the steps do, and the kernel of the one that does most. */
static sonde_status describe(const work *w, const bench_graph *g, bench_runner *out,
                             sonde_error *err)
{
    sn_binding *bound = NULL;
    SN_TRY(sn_api_bind(w->session, NULL, w->in, w->n_in, &bound, err));
    uint64_t most = 0;
    const char *kernel = "";
    out->flops = g->loop_flops;
    for (uint32_t i = 0; i < bound->n_steps; i++) {
        const sn_step_info *info = &bound->info[i];
        out->flops += (double)info->flops;
        out->bytes += (double)info->bytes;
        if (info->flops < most || !info->kernel)
            continue;
        most = info->flops;
        kernel = info->kernel;
        out->arithmetic = info->arithmetic;
    }
    snprintf(out->plan, sizeof out->plan, "%u step%s%s%.40s", bound->n_steps,
             bound->n_steps == 1 ? "" : "s", *kernel ? ", " : "", kernel);
    sn_binding_unref(bound);
    return SONDE_OK;
}

static sonde_status make(work *w, const bench_setup *s, int slot, const char *cpu,
                         const bench_graph *g, bench_runner *out, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_session_options options = SONDE_INIT(sonde_session_options);
    o.threads = s->threads[slot];
    o.cpu = cpu;
    options.precision = s->type == SONDE_DTYPE_BF16 ? SONDE_PRECISION_BF16 : SONDE_PRECISION_F32;
    SN_TRY(sonde_context_create(&o, &w->context, err));
    SN_TRY(make_model(w, g, err));
    SN_TRY(sonde_session_create(w->model, &options, &w->session, err));
    SN_TRY(make_inputs(w, err));
    SN_TRY(describe(w, g, out, err));
    return try_run(w, err);
}

bool bench_session(const bench_setup *s, int slot, uint32_t flags, const bench_case *c,
                   bench_runner *out)
{
    sonde_error err;
    if (s->type == SONDE_DTYPE_I8)
        return false;
    work *w = bench_alloc(sizeof *w);
    if (make(w, s, slot, flags ? s->level : "baseline", c->graph, out, &err)) {
        fprintf(stderr, "%s: %s\n", c->name, err.message);
        release(w);
        return false;
    }
    out->by = flags ? "sonde" : "reference";
    out->threads = s->threads[slot];
    out->run = run;
    out->free = release;
    out->state = w;
    return true;
}
