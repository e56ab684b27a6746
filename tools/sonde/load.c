/* SPDX-License-Identifier: Apache-2.0 */
/* From what people type to a session: contexts, models, session options. */
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/zoo.h"
#include "tool.h"

enum { LOG_ERRORS = 1, LOG_WARNINGS, LOG_INFO }; /* of sonde_context_options */

static void show_log(void *user, int level, const char *line)
{
    (void)user;
    if (level <= LOG_WARNINGS)
        warn("%s", line);
    else
        fprintf(stderr, "sonde: %s\n", line);
}

void show_warnings(sonde_context_options *c, const common_options *o)
{
    if (getenv("SONDE_LOG") || o->quiet)
        return; /* the library says what was asked for */
    c->log = show_log;
    c->log_level = o->verbose > 0 ? LOG_INFO : o->quiet ? LOG_ERRORS : LOG_WARNINGS;
}

sonde_context_options context_options(const model_options *m)
{
    sonde_context_options c = SONDE_INIT(sonde_context_options);
    c.threads = (int)m->threads;
    c.max_memory = (size_t)m->max_memory;
    c.cpu = m->cpu;
    c.numa = m->numa;
    return c;
}

static int make_context(loaded *l, const run_setup *s)
{
    sonde_context_options c = context_options(&s->model);
    show_warnings(&c, &s->common);
    sonde_error err;
    if (sonde_context_create(&c, &l->context, &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* The library's message, unless a name is close to what was typed. */
static int no_zoo_model(const char *model, const sonde_error *err)
{
    const char *names[256];
    size_t n = 0;
    for (; n < 255 && sonde_zoo_name(n); n++)
        names[n] = sonde_zoo_name(n);
    names[n] = NULL;
    char *name = text_of("%.*s", (int)strcspn(model + 4, "?"), model + 4);
    const char *near = err->status == SONDE_NOT_FOUND ? closest(name, names) : NULL;
    const int code = near ? fail("unknown built-in model '%s'; did you mean 'zoo:%s'?", name, near)
                     : err->status == SONDE_INVALID_ARGUMENT ? fail_usage("%s", err->message)
                                                             : fail("%s", err->message);
    free(name);
    return code;
}

static int load_model(loaded *l, const run_setup *s, const char *model)
{
    const double start = now_ms();
    sonde_model_options m = SONDE_INIT(sonde_model_options);
    m.no_mmap = s->model.no_mmap;
    sonde_error err;
    if (is_zoo(model)) {
        if (sonde_zoo_build(l->context, model, (uint64_t)s->inputs.seed, &l->model, &err))
            return no_zoo_model(model, &err);
    } else if (sonde_model_load(l->context, model, &m, &l->model, &err)) {
        return fail("%s", err.message);
    }
    l->load_ms = now_ms() - start;
    return EXIT_OK;
}

static sonde_status make_plan(loaded *l, const model_options *m, load_for what,
                              sonde_session_options *o, sonde_error *err)
{
    list disabled = {0};
    o->plan_only = 1;
    for (size_t i = 0; i < m->disabled_passes.n; i++)
        list_add(&disabled, m->disabled_passes.items[i]);
    for (size_t i = 0; what == LOAD_TO_KNOW_PORTS && sonde_pass_name(i); i++)
        if (sonde_pass_reads_weights(i))
            list_add(&disabled, sonde_pass_name(i));
    o->disabled_passes = disabled.items;
    o->disabled_pass_count = disabled.n;
    if (what == LOAD_TO_KNOW_PORTS)
        o->precision = SONDE_PRECISION_FILE; /* another one looks whether weights fit */
    const sonde_status st = sonde_session_create(l->model, o, &l->session, err);
    list_free(&disabled);
    return st;
}

/* One for every instance. They share the threads, and the weights unless --numa puts them on nodes
 * of their own. */
static sonde_status make_sessions(loaded *l, int64_t instances, sonde_session_options *o,
                                  sonde_error *err)
{
    const size_t n = instances > 1 ? (size_t)instances : 1;
    l->sessions = need(calloc(n, sizeof(sonde_session *)));
    o->instances = (int)n;
    for (; l->n_sessions < n; l->n_sessions++) {
        o->instance = (int)l->n_sessions;
        const sonde_status st = sonde_session_create(l->model, o, &l->sessions[l->n_sessions], err);
        if (st)
            return st;
    }
    l->session = l->sessions[0];
    return SONDE_OK;
}

sonde_session_options session_options(const model_options *m)
{
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.no_optimize = m->no_optimize;
    o.no_prepack = m->no_prepack;
    (void)precision_of(m->precision, &o.precision); /* checked with the options */
    o.weights_cache = m->weights_cache;
    o.tune = m->tune;
    o.flush_denormals = m->flush_denormals;
    o.disabled_passes = m->disabled_passes.items;
    o.disabled_pass_count = m->disabled_passes.n;
    return o;
}

static int start_recording(const loaded *l, const run_setup *s)
{
    sonde_profiler_options how = SONDE_INIT(sonde_profiler_options);
    sonde_error err;
    const size_t n = s->labels.n;
    sonde_label *labels = need(calloc(n + 1, sizeof *labels));
    list keys = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        const char *said = s->labels.items[i], *equals = strchr(said, '=');
        list_add(&keys, text_of("%.*s", (int)(equals - said), said));
        labels[i] = (sonde_label){.key = keys.items[i], .value = equals + 1};
    }
    how.level = s->record_level;
    how.labels = labels;
    how.label_count = n;
    const sonde_status st = sonde_profiler_start_with(l->context, &how, &err);
    list_free_texts(&keys);
    free(labels);
    return st ? fail("%s", err.message) : EXIT_OK;
}

int load(loaded *l, const run_setup *s, const char *model, load_for what)
{
    *l = (loaded){.load_ms = 0};
    int code = make_context(l, s);
    sonde_error err;
    if (!code && s->record_level)
        code = start_recording(l, s);
    if (!code)
        code = load_model(l, s, model);
    if (code || what == LOAD_MODEL)
        return code;
    for (size_t i = 0; i < s->inputs.sizes.n; i++)
        list_add(&l->sizes, text_of("%s", s->inputs.sizes.items[i]));
    sonde_session_options o = session_options(&s->model);
    if (what == LOAD_TO_RUN && (code = memory_check(l, s, model)))
        return code;
    const double start = now_ms();
    if (what != LOAD_TO_RUN) { /* a model that cannot run can still be looked at */
        if (make_plan(l, &s->model, what, &o, &err))
            warn("%s", err.message);
    } else if (make_sessions(l, s->measuring.instances, &o, &err)) {
        return fail("%s", err.message);
    }
    l->prepare_ms = now_ms() - start;
    return EXIT_OK;
}

sonde_context *reading_context(int64_t max_memory)
{
    sonde_context_options c = SONDE_INIT(sonde_context_options);
    sonde_context *context = NULL;
    sonde_error err;
    c.threads = 1;
    c.max_memory = (size_t)max_memory;
    if (sonde_context_create(&c, &context, &err))
        (void)fail("%s", err.message);
    return context;
}

int load_profile(const common_options *o, int64_t max_memory, const char *path,
                 sonde_profile **profile)
{
    sonde_profile_summary facts = SONDE_INIT(sonde_profile_summary);
    sonde_context *context = reading_context(max_memory);
    sonde_error err;
    if (!context)
        return EXIT_ERROR;
    sonde_status st = sonde_profile_load_with(context, path, &unmapped, profile, &err);
    if (!st)
        st = sonde_profile_summary_get(*profile, &facts, &err);
    if (!st && *facts.note && !o->quiet)
        warn("%s: %s", path, facts.note);
    sonde_context_release(context); /* the profile keeps it */
    return st ? fail("%s", err.message) : EXIT_OK;
}

void unload(loaded *l)
{
    list_free_texts(&l->sizes);
    if (!l->n_sessions)
        sonde_session_release(l->session);
    for (size_t i = 0; i < l->n_sessions; i++)
        sonde_session_release(l->sessions[i]);
    free(l->sessions);
    sonde_model_release(l->model);
    sonde_context_release(l->context);
}
