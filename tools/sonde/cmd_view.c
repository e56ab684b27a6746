/* SPDX-License-Identifier: Apache-2.0 */
/* sonde view: the report page in the browser, served to this machine alone. One thread serves; the
 * main thread measures the model, or watches the file, and then waits for Ctrl-C, which is how this
 * verb ends and therefore no failure. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "view/parts.h"

static const char details[] =
    "\n"
    "FILE is a profile that 'sonde report' reads. A .pftrace that another process is writing\n"
    "(SONDE_TRACE, sonde_profiler_stream) is shown as it grows. MODEL is run as by 'sonde\n"
    "profile', and the page shows the first and the latest runs so far, and all of them when the\n"
    "model has run. With two files, the page compares them.\n"
    "\n"
    "The page is served at 127.0.0.1 and only to those who have the whole address, which holds\n"
    "a random token. The browser is opened where there is a desktop. Ctrl-C ends it.\n"
    "\n"
    "Making pages takes up to a tenth of the time while somebody looks and a model runs: for\n"
    "figures to compare, use 'sonde profile MODEL -o report.html'.\n"
    "\n"
    "  sonde view trace.pftrace\n"
    "  sonde view zoo:regnet_x_400mf --duration 20\n"
    "  sonde view old.pftrace new.pftrace\n"
    "  sonde view trace.pftrace --no-open --port 8123\n";

typedef struct view_options {
    run_setup setup;
    const char *host;
    int64_t port, level; /* level -1: not given */
    bool no_open, once, memory;
} view_options;

#define AT(field) offsetof(view_options, field)

static const option_row serving_rows[] = {
    {0, "port", OPT_INT, AT(port), "N", "port to serve at (default: 0, one that is free)"},
    {0, "host", OPT_TEXT, AT(host), "ADDRESS",
     "127.0.0.1 or ::1, the addresses of this machine alone (default: 127.0.0.1)"},
    {0, "no-open", OPT_FLAG, AT(no_open), NULL, "only print the address; do not open the browser"},
    {0, "once", OPT_FLAG, AT(once), NULL,
     "end when the whole profile was fetched once, in the page or as its data; for scripts"},
    {0}};

static int check_serving(void *values)
{
    view_options *o = values;
    if (o->port > 65535)
        return fail_usage("--port %lld is not a port; ports go up to 65535", (long long)o->port);
    if (!o->host)
        o->host = "127.0.0.1";
    if (strcmp(o->host, "127.0.0.1") != 0 && strcmp(o->host, "::1") != 0)
        return fail_usage("--host %s: profiles are served to this machine alone, at 127.0.0.1 or "
                          "::1; for others, save the page with 'sonde report FILE -o report.html'",
                          o->host);
    return -1;
}

static const option_row recording_rows[] = {
    {0, "level", OPT_INT, AT(level), "N",
     "1: operators; 2: also loading, passes, packing; 3: also each worker thread (default: 2)"},
    {0, "counters", OPT_FLAG, AT(setup.counters), NULL,
     "read hardware counters for every operator, and the system's counters"},
    {0, "memory", OPT_FLAG, AT(memory), NULL, "record used and allocated bytes after every step"},
    {0}};

static int check_recording(void *values)
{
    const view_options *o = values;
    if (o->level == 0 || o->level > 3)
        return fail_usage("--level %lld: the profiler has levels 1 to 3", (long long)o->level);
    if (o->setup.counters && o->setup.measuring.instances > 1)
        return fail_usage("--counters cannot be combined with --instances: they count the whole "
                          "process");
    if (o->setup.measuring.iterations == 0)
        return fail_usage("--iterations 0: nothing would be measured");
    return -1;
}

static const option_group groups[] = {
    {"Serving", serving_rows, 0, check_serving}, MEASURING_OPTIONS(view_options, setup.measuring),
    INPUT_OPTIONS(view_options, setup.inputs),   {"Recording", recording_rows, 0, check_recording},
    MODEL_OPTIONS(view_options, setup.model),    {0}};

/* ------------------------------------------------------------------ what is shown */
typedef enum source { A_MODEL, A_FILE, TWO_FILES } source;

typedef struct view {
    view_options *o;
    shown s;
    http_server *server;
    pthread_t thread;
    source source;
    view_run run;
    watched *file;
} view;

/* A model or a profile? The usual suffixes say so; of others the content is asked. */
static bool is_model(const char *what, int64_t max_memory)
{
    if (is_zoo(what) || ends_with(what, ".onnx"))
        return true;
    if (ends_with(what, ".pftrace") || ends_with(what, ".json"))
        return false;
    return !source_is_profile(what, max_memory);
}

/* Options that would have no effect are refused. */
static int refuse_running(const view_options *o, const char *file)
{
    const measuring_options *m = &o->setup.measuring;
    const bool any = m->iterations >= 0 || m->warmup >= 0 || m->duration_s >= 0 ||
                     m->instances >= 0 || o->setup.inputs.inputs.n || o->level > 0 || o->memory ||
                     o->setup.counters;
    return any ? fail_usage("'%s' is a saved profile: options that say how a model is run and "
                            "recorded have no effect on it",
                            file)
               : -1;
}

static int choose(view *v)
{
    view_options *o = v->o;
    const list *rest = &o->setup.common.rest;
    const int64_t max_memory = o->setup.model.max_memory;
    if (rest->n == 0 || rest->n > 2)
        return fail_usage("view takes a FILE or a MODEL, or two FILEs; see 'sonde view --help'");
    const bool model = rest->n == 1 && is_model(rest->items[0], max_memory);
    v->source = rest->n == 2 ? TWO_FILES : model ? A_MODEL : A_FILE;
    if (v->source != A_MODEL)
        return refuse_running(o, rest->items[0]);
    o->setup.record_level = o->level > 0 ? (int)o->level : 2;
    v->run.setup = &o->setup;
    v->run.memory = o->memory;
    return -1;
}

static int open_source(view *v)
{
    const common_options *common = &v->o->setup.common;
    const char **what = common->rest.items;
    const int64_t max_memory = v->o->setup.model.max_memory;
    switch (v->source) {
    case A_MODEL:
        return source_open_model(&v->run, &v->s, what[0]);
    case A_FILE:
        return source_open_file(&v->file, &v->s, common, max_memory, what[0]);
    case TWO_FILES:
        return source_open_two(&v->s, common, max_memory, what[0], what[1]);
    }
    return EXIT_ERROR;
}

/* ------------------------------------------------------------------ signals */
static atomic_bool
    ending; /* lock-free: a handler may set it, and any thread be the one that does */

static void on_signal(int number)
{
    (void)number;
    ending = true;
    sonde_cancel(interrupt_token());
}

/* In place of interrupt.c's: there the end is one of the work, here it is what people wait for. The
 * second signal takes the default. Signals that are ignored stay so. */
static int end_on_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    if (interrupt_keep()) /* makes the token */
        return EXIT_ERROR;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, was;
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    return EXIT_OK;
}

/* ------------------------------------------------------------------ serving */
static bool is_over(void *user)
{
    shown *s = user;
    pthread_mutex_lock(&s->lock);
    const bool over = s->over;
    pthread_mutex_unlock(&s->lock);
    return over || ending;
}

static void *serve(void *arg)
{
    view *v = arg;
    const http_site site = shown_site(&v->s, is_over);
    http_serve(v->server, &site);
    shown_stop(&v->s); /* the main thread may be waiting */
    return NULL;
}

static void announce(const view *v)
{
    const view_options *o = v->o;
    const bool six = strchr(o->host, ':');
    char *address = text_of("http://%s%s%s:%d/?token=%s", six ? "[" : "", o->host, six ? "]" : "",
                            v->s.port, v->s.token);
    if (o->setup.common.quiet)
        printf("%s\n", address);
    else
        printf("The page is at %s\nCtrl-C ends it.\n", address);
    fflush(stdout);
    if (!o->no_open)
        (void)browser_open(address);
    free(address);
}

static int work(view *v)
{
    int code = EXIT_OK;
    if (v->source == A_MODEL) {
        code = source_run_model(&v->run, &v->s);
        source_close_model(&v->run);
        v->run = (view_run){0};
    }
    if (ending)
        return EXIT_OK;
    if (code)
        shown_stop(&v->s);
    else if (v->source == A_MODEL && !v->o->setup.common.quiet)
        printf("The run has ended; the page shows all of it.\n");
    fflush(stdout);
    if (v->source == A_FILE)
        source_watch_file(v->file, &v->s);
    return code;
}

static int view_it(view *v)
{
    int code = http_open(&v->server, v->o->host, (int)v->o->port);
    if (!code)
        code = open_source(v);
    if (!code)
        code = end_on_signals();
    if (code)
        return code;
    v->s.port = http_port(v->server);
    v->s.once = v->o->once;
    if (pthread_create(&v->thread, NULL, serve, v))
        return fail("cannot start a thread");
    announce(v);
    code = work(v);
    pthread_join(v->thread, NULL);
    return code;
}

int cmd_view(int argc, char **argv)
{
    static const verb_options verb = {"view", details, groups, help_passes};
    view_options o = {.setup = SETUP_DEFAULTS, .level = -1};
    view v = {.o = &o};
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0)
        code = choose(&v);
    if (code < 0) {
        code = shown_open(&v.s);
        if (!code)
            code = view_it(&v);
        http_close(v.server);
        source_close_file(v.file);
        source_close_model(&v.run);
        shown_close(&v.s);
    }
    options_free(&verb, &o.setup.common);
    return code;
}
