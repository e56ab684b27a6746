/* SPDX-License-Identifier: Apache-2.0 */
/* Another runtime as one side of a comparison. It is one of those that `sonde bench` measures, with
 * the same driver and the same protocol: each model it is to run becomes a file, its inputs are an
 * .npz, and so are the outputs it saves. One process loads one model after the other. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/parts.h"
#include "compare/parts.h"
#include "sonde/experimental/inspect.h"

struct peer {
    bench_options bench; /* what runtimes.c reads of it */
    runtimes all;
    const runtime *runtime;
    talk talk;
    bool other; /* not sonde itself */
    bool talking;
    char *loaded; /* name of the model it has */
    char *model, *inputs, *outputs;
    bench_model files;
};

/* ------------------------------------------------------------------ variants of sonde */
static void set_variant(model_options *m, const char *option)
{
    if (strcmp(option, "no-optimize") == 0)
        m->no_optimize = true;
    else if (strcmp(option, "no-prepack") == 0)
        m->no_prepack = true;
    else if (strcmp(option, "no-mmap") == 0)
        m->no_mmap = true;
    else if (strcmp(option, "flush-denormals") == 0)
        m->flush_denormals = true;
    else if (strncmp(option, "tune", 4) == 0)
        m->tune = option[4] ? option + 5 : "";
    else if (strncmp(option, "cpu=", 4) == 0)
        m->cpu = option + 4;
    else if (strncmp(option, "precision=", 10) == 0)
        m->precision = option + 10;
    else if (strncmp(option, "disable-pass=", 13) == 0)
        list_add(&m->disabled_passes, option + 13);
}

/* ------------------------------------------------------------------ life */
int peer_open(peer **out, const peer_options *o, model_options *model)
{
    *out = NULL;
    if (!scratch_open())
        return EXIT_ERROR;
    peer *p = need(calloc(1, sizeof *p));
    *out = p;
    p->bench.python = o->python;
    p->bench.peers = o->peers;
    p->bench.timeout_s = o->timeout_s;
    list_add(&p->bench.against, o->against);
    int code = runtimes_make(&p->all, &p->bench);
    if (code >= 0)
        return code;
    if (strpbrk(o->against, ", "))
        return fail_usage("--against takes one runtime, not '%s'", o->against);
    p->runtime = &p->all.items[p->all.n - 1];
    if (strcmp(p->runtime->name, "sonde") == 0 && !p->runtime->file) {
        for (size_t i = 0; i < p->runtime->options.n; i++)
            set_variant(model, p->runtime->options.items[i]);
        return -1;
    }
    p->other = true;
    p->bench.setup.common.verbose = o->setup->common.verbose;
    p->bench.setup.model.threads = o->setup->model.threads;
    p->model = scratch_path("compare.onnx");
    p->inputs = scratch_path("compare_inputs.npz");
    p->outputs = scratch_path("compare_outputs.npz");
    code = runtimes_unpack();
    return code ? code : -1;
}

bool peer_is_other(const peer *p)
{
    return p && p->other;
}

void peer_close(peer *p)
{
    if (!p)
        return;
    if (p->talking)
        talk_end(&p->talk);
    runtimes_free(&p->all);
    list_free(&p->bench.against);
    free(p->loaded);
    free(p->model);
    free(p->inputs);
    free(p->outputs);
    free(p);
}

/* ------------------------------------------------------------------ talking */
static sonde_status said(sonde_error *err, sonde_status status, const char *message)
{
    err->status = status;
    snprintf(err->message, sizeof err->message, "%.800s", message);
    return status;
}

/* Why the last question got no answer. */
static sonde_status refused(peer *p, sonde_error *err)
{
    if (p->talk.stopped)
        return said(err, SONDE_CANCELLED, "interrupted");
    char *message = p->talk.state == BENCH_MISSING
                        ? text_of("not installed: %s", p->talk.message)
                        : text_of("%s", p->talk.message ? p->talk.message : "no answer");
    const sonde_status st = said(err, SONDE_RUNTIME, message);
    free(message);
    char *forgiven = talk_forgive(&p->talk);
    if (!forgiven) { /* it is gone: another one is started if it is needed */
        talk_end(&p->talk);
        p->talking = false;
    }
    free(forgiven);
    free(p->loaded);
    p->loaded = NULL;
    return st;
}

static sonde_status start(peer *p, sonde_error *err)
{
    char name[] = "compare", none[] = "";
    p->files = (bench_model){.label = name, .path = p->model, .preprocess = none};
    const int64_t threads = p->bench.setup.model.threads;
    const bench_setting s = {.all = &p->all,
                             .runtime = p->runtime,
                             .model = &p->files,
                             .cores = "",
                             .threads = threads ? (int)threads : sonde_context_threads(NULL),
                             .instances = 1,
                             .verbose = p->bench.setup.common.verbose > 0,
                             .timeout_s = p->bench.timeout_s};
    p->talking = talk_start(&p->talk, &s);
    return p->talking ? SONDE_OK : refused(p, err);
}

static sonde_status load_model(peer *p, sonde_model *model, sonde_error *err)
{
    const char *name = sonde_model_name(model);
    char *rest = NULL;
    if (p->loaded && strcmp(p->loaded, name) == 0)
        return SONDE_OK;
    free(p->loaded);
    p->loaded = NULL;
    if (sonde_model_save(model, p->model, err))
        return err->status;
    if (!p->talking && start(p, err))
        return err->status;
    if (!talk_ask(&p->talk, "load", "loaded", &rest))
        return refused(p, err);
    p->loaded = text_of("%s", name);
    return SONDE_OK;
}

/* Outputs are called sonde_tap_0, sonde_tap_1 …; one that is no tensor is not among them. */
static sonde_status read_outputs(const peer *p, sonde_value **outputs, size_t count,
                                 sonde_error *err)
{
    sonde_value_set *set = NULL;
    const sonde_status st = sonde_values_load_with(NULL, p->outputs, &unmapped, &set, err);
    unlink(p->outputs);
    for (size_t i = 0; !st && i < sonde_value_set_count(set); i++) {
        size_t k;
        if (sscanf(sonde_value_set_name(set, i), "sonde_tap_%zu", &k) == 1 && k < count &&
            !outputs[k])
            outputs[k] = sonde_value_retain(sonde_value_set_value(set, i));
    }
    sonde_value_set_release(set);
    return st;
}

sonde_status peer_run(void *user, sonde_model *model, const char *const *input_names,
                      sonde_value *const *inputs, size_t input_count, sonde_value **outputs,
                      size_t output_count, sonde_error *err)
{
    peer *p = user;
    char *rest = NULL;
    sonde_error own;
    err = err ? err : &own;
    sonde_status st = load_model(p, model, err);
    if (!st)
        st = sonde_values_save(p->inputs, input_names, inputs, input_count, err);
    if (st)
        return st;
    (void)child_send(&p->talk.process, "forget");
    (void)child_send(&p->talk.process, "inputs %s", p->inputs);
    char *line = text_of("outputs %s", p->outputs);
    const bool answered = talk_ask(&p->talk, line, "outputs", &rest);
    free(line);
    return answered ? read_outputs(p, outputs, output_count, err) : refused(p, err);
}
