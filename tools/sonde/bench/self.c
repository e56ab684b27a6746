/* SPDX-License-Identifier: Apache-2.0 */
/* sonde as one of the runtimes that are compared: the hidden verb `bench-driver`, which speaks the
 * protocol of docs/benchmarking.md like every other driver, in a process of its own. Only the
 * inference is timed: the outputs of the run before are let go first, as their memory is what the
 * next run takes. */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"
#include "sonde/experimental/tensor_file.h"
#include "tool.h"

typedef struct feed {
    sonde_value_set *set;
    const char **names;
    sonde_value **values;
    size_t n;
} feed;

typedef struct driver {
    char *model, *cpu, *tune, *precision, *numa;
    list passes; /* to leave out */
    int threads, instances;
    bool no_optimize, no_prepack, no_mmap, flush_denormals;
    size_t max_memory;
    sonde_context *context;
    sonde_model *loaded;
    sonde_session **sessions;
    list inputs; /* files; feeds are read from them when the first run needs them */
    feed *feeds;
    size_t n_feeds;
    list images;
    bench_image image;
} driver;

/* ------------------------------------------------------------------ answers */
static void answer(const char *fmt, ...) SONDE_PRINTF(1, 2);
static void answer(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void answer_error(const sonde_error *err)
{
    char *sentence = printable(err->message);
    answer("%s %s", err->status == SONDE_UNSUPPORTED ? "unsupported" : "error", sentence);
    free(sentence);
}

/* ------------------------------------------------------------------ settings and loading */
static void set_option(driver *d, const char *option)
{
    if (strcmp(option, "no-optimize") == 0)
        d->no_optimize = true;
    else if (strcmp(option, "no-prepack") == 0)
        d->no_prepack = true;
    else if (strcmp(option, "no-mmap") == 0)
        d->no_mmap = true;
    else if (strcmp(option, "flush-denormals") == 0)
        d->flush_denormals = true;
    else if (strncmp(option, "max-memory=", 11) == 0)
        d->max_memory = strtoull(option + 11, NULL, 10);
    else if (strcmp(option, "tune") == 0)
        d->tune = text_of("%s", "");
    else if (strncmp(option, "tune=", 5) == 0)
        d->tune = text_of("%s", option + 5);
    else if (strncmp(option, "cpu=", 4) == 0)
        d->cpu = text_of("%s", option + 4);
    else if (strncmp(option, "numa=", 5) == 0)
        d->numa = text_of("%s", option + 5);
    else if (strncmp(option, "precision=", 10) == 0)
        d->precision = text_of("%s", option + 10);
    else if (strncmp(option, "disable-pass=", 13) == 0)
        list_add(&d->passes, text_of("%s", option + 13));
}

static sonde_status make_sessions(driver *d, sonde_error *err)
{
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.no_optimize = d->no_optimize;
    o.no_prepack = d->no_prepack;
    (void)precision_of(d->precision, &o.precision); /* checked by who asks */
    o.tune = d->tune;
    o.flush_denormals = d->flush_denormals;
    o.disabled_passes = d->passes.items;
    o.disabled_pass_count = d->passes.n;
    o.instances = d->instances;
    d->sessions = need(calloc((size_t)d->instances, sizeof(sonde_session *)));
    sonde_status st = SONDE_OK;
    for (int i = 0; i < d->instances && !st; i++) {
        o.instance = i;
        st = sonde_session_create(d->loaded, &o, &d->sessions[i], err);
    }
    return st;
}

static void load_it(driver *d)
{
    sonde_context_options c = SONDE_INIT(sonde_context_options);
    sonde_model_options m = SONDE_INIT(sonde_model_options);
    sonde_error err;
    c.threads = d->threads;
    c.cpu = d->cpu;
    c.numa = d->numa;
    c.max_memory = d->max_memory;
    m.no_mmap = d->no_mmap;
    const double start = now_ms();
    if (sonde_context_create(&c, &d->context, &err) ||
        sonde_model_load(d->context, d->model, &m, &d->loaded, &err) || make_sessions(d, &err))
        answer_error(&err);
    else
        answer("loaded %.0f %s", (now_ms() - start) * 1e6, sonde_version());
}

/* ------------------------------------------------------------------ inputs */
static void forget_feeds(driver *d)
{
    for (size_t i = 0; i < d->n_feeds; i++) {
        sonde_value_set_release(d->feeds[i].set);
        free((void *)d->feeds[i].names);
        free(d->feeds[i].values);
    }
    free(d->feeds);
    d->feeds = NULL;
    d->n_feeds = 0;
    list_free_texts(&d->inputs);
}

static sonde_status read_feeds(driver *d, sonde_error *err)
{
    while (d->n_feeds < d->inputs.n) {
        feed f = {.n = 0};
        const sonde_status st =
            sonde_values_load_with(d->context, d->inputs.items[d->n_feeds], &unmapped, &f.set, err);
        if (st)
            return st;
        f.n = sonde_value_set_count(f.set);
        f.names = need(calloc(f.n + 1, sizeof *f.names));
        f.values = need(calloc(f.n + 1, sizeof(sonde_value *)));
        for (size_t i = 0; i < f.n; i++) {
            f.names[i] = sonde_value_set_name(f.set, i);
            f.values[i] = sonde_value_set_value(f.set, i);
        }
        d->feeds = grow(d->feeds, d->n_feeds, sizeof *d->feeds);
        d->feeds[d->n_feeds++] = f;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ running */
typedef struct instance {
    const driver *d;
    sonde_session *session;
    sonde_value **out;
    size_t n_out;
    long runs;
    bool full; /* with what comes before the inference */
    double *ms;
    pthread_barrier_t *start;
    sonde_status status;
    sonde_error err;
} instance;

static void drop_outputs(instance *in)
{
    for (size_t i = 0; i < in->n_out; i++) {
        sonde_value_release(in->out[i]);
        in->out[i] = NULL;
    }
}

static sonde_status run_feed(instance *in, const feed *f)
{
    return sonde_session_run(in->session, NULL, f->names, f->values, f->n, NULL, in->out, in->n_out,
                             &in->err);
}

static sonde_dtype input_dtype(const sonde_session *s, const char *name)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    for (size_t i = 0; i < sonde_session_input_count(s); i++)
        if (strcmp(sonde_session_input_name(s, i), name) == 0 &&
            sonde_session_input_info(s, i, &info, NULL) == SONDE_OK)
            return info.dtype;
    return SONDE_DTYPE_UNDEFINED;
}

/* Decode, resize, normalise, infer: everything between a file and its answer. */
static sonde_status run_image(instance *in, const char *path)
{
    const bench_image *image = &in->d->image;
    sonde_image_options o = SONDE_INIT(sonde_image_options);
    o.width = image->width;
    o.height = image->height;
    o.resize = image->resize;
    o.nhwc = image->nhwc;
    o.bgr = image->bgr;
    o.dtype = input_dtype(in->session, image->input);
    o.scale = o.dtype == SONDE_DTYPE_F32 ? 0 : 1 / 255.0F; /* as the line means it for any type */
    o.mean = image->mean;
    o.deviation = image->deviation;
    o.no_mmap = unmapped.no_mmap;
    sonde_value *value = NULL;
    const sonde_status st = sonde_image_load(in->d->context, path, &o, &value, &in->err);
    if (st)
        return st;
    const char *name = image->input;
    const feed f = {.names = &name, .values = &value, .n = 1};
    const sonde_status ran = run_feed(in, &f);
    sonde_value_release(value);
    return ran;
}

static void *run_instance(void *argument)
{
    instance *in = argument;
    const driver *d = in->d;
    pthread_barrier_wait(in->start);
    for (long i = 0; i < in->runs && !in->status; i++) {
        drop_outputs(in);
        const double start = now_ms();
        in->status = in->full ? run_image(in, d->images.items[(size_t)i % d->images.n])
                              : run_feed(in, &d->feeds[(size_t)i % d->n_feeds]);
        in->ms[i] = now_ms() - start;
    }
    return NULL;
}

static void instance_open(instance *in, const driver *d, int number, long runs, bool full,
                          pthread_barrier_t *start)
{
    *in = (instance){
        .d = d, .session = d->sessions[number], .runs = runs, .full = full, .start = start};
    in->n_out = sonde_session_output_count(in->session);
    in->out = need(calloc(in->n_out + 1, sizeof(sonde_value *)));
    in->ms = need(calloc((size_t)runs + 1, sizeof *in->ms));
}

static void instance_close(instance *in)
{
    drop_outputs(in);
    free(in->out);
    free(in->ms);
}

static void run_all(driver *d, long runs, bool full)
{
    const int n = d->instances;
    instance *all = need(calloc((size_t)n, sizeof *all));
    pthread_t *threads = need(calloc((size_t)n, sizeof *threads));
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        instance_open(&all[i], d, i, runs, full, &start);
    const double begin = now_ms();
    for (int i = 1; i < n; i++)
        if (pthread_create(&threads[i], NULL, run_instance, &all[i])) {
            answer("error cannot start %d threads", n);
            exit(EXIT_ERROR);
        }
    run_instance(&all[0]);
    for (int i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    const double wall_ms = now_ms() - begin;
    const instance *bad = NULL;
    for (int i = 0; i < n; i++)
        bad = all[i].status && !bad ? &all[i] : bad;
    if (bad) {
        answer_error(&bad->err);
    } else {
        printf("times");
        for (int i = 0; i < n; i++)
            for (long k = 0; k < runs; k++)
                printf(" %.0f", all[i].ms[k] * 1e6);
        answer(" wall %.0f", wall_ms * 1e6);
    }
    for (int i = 0; i < n; i++)
        instance_close(&all[i]);
    pthread_barrier_destroy(&start);
    free(threads);
    free(all);
}

static void save_outputs(driver *d, const char *path)
{
    instance in;
    pthread_barrier_t unused;
    sonde_error err;
    instance_open(&in, d, 0, 1, false, &unused);
    const char **names = need(calloc(in.n_out + 1, sizeof *names));
    for (size_t i = 0; i < in.n_out; i++)
        names[i] = sonde_session_output_name(in.session, i);
    if (run_feed(&in, &d->feeds[0]))
        answer_error(&in.err);
    else if (sonde_values_save(path, names, in.out, in.n_out, &err))
        answer("outputs none: %s", err.message);
    else
        answer("outputs saved");
    free((void *)names);
    instance_close(&in);
}

/* The program people would type. */
static void tell_program(const driver *d)
{
    char *self = bench_self();
    printf("program %s\trun\t%s\t-i\t%s\t-t\t%d\t--top\t1", self, d->model, d->inputs.items[0],
           d->threads);
    free(self);
    if (d->no_optimize)
        printf("\t--no-optimize");
    if (d->no_prepack)
        printf("\t--no-prepack");
    if (d->no_mmap)
        printf("\t--no-mmap");
    if (d->flush_denormals)
        printf("\t--flush-denormals");
    if (d->max_memory)
        printf("\t--max-memory\t%zu", d->max_memory);
    if (d->tune)
        printf("\t--tune%s%s", *d->tune ? "=" : "", d->tune);
    if (d->cpu)
        printf("\t--cpu\t%s", d->cpu);
    if (d->precision)
        printf("\t--precision\t%s", d->precision);
    if (d->numa)
        printf("\t--numa\t%s", d->numa);
    for (size_t i = 0; i < d->passes.n; i++)
        printf("\t--disable-pass\t%s", d->passes.items[i]);
    answer("%s", "");
}

/* ------------------------------------------------------------------ commands */
/* A command that is not answered. */
static bool setting(driver *d, const char *word, const char *value)
{
    if (strcmp(word, "model") == 0)
        d->model = text_of("%s", value);
    else if (strcmp(word, "inputs") == 0)
        list_add(&d->inputs, text_of("%s", value));
    else if (strcmp(word, "forget") == 0)
        forget_feeds(d);
    else if (strcmp(word, "threads") == 0)
        d->threads = atoi(value);
    else if (strcmp(word, "instances") == 0)
        d->instances = atoi(value) > 0 ? atoi(value) : 1;
    else if (strcmp(word, "option") == 0)
        set_option(d, value);
    else if (strcmp(word, "image") == 0)
        list_add(&d->images, text_of("%s", value));
    else if (strcmp(word, "preprocess") == 0)
        return bench_image_parse(&d->image, value);
    else
        return strcmp(word, "label") == 0 || strcmp(word, "reference") == 0;
    return true;
}

static void obey(driver *d, const char *word, const char *value)
{
    sonde_error err;
    const long n = strtol(value, NULL, 10);
    const bool many = n > 0 && n < 1 << 24;
    const bool runs = strcmp(word, "run") == 0 || strcmp(word, "warmup") == 0;
    if (strcmp(word, "load") == 0 && !d->context)
        load_it(d);
    else if (!d->sessions)
        answer("error no model is loaded");
    else if (read_feeds(d, &err))
        answer_error(&err);
    else if (strcmp(word, "full") == 0 && many && d->images.n)
        run_all(d, n, true);
    else if (runs && many && d->n_feeds)
        run_all(d, n, false);
    else if (strcmp(word, "outputs") == 0 && d->n_feeds)
        save_outputs(d, value);
    else if (strcmp(word, "program") == 0 && d->n_feeds)
        tell_program(d);
    else
        answer("error unknown command '%s %s'", word, value);
}

static void driver_close(driver *d)
{
    forget_feeds(d);
    for (int i = 0; d->sessions && i < d->instances; i++)
        sonde_session_release(d->sessions[i]);
    free(d->sessions);
    sonde_model_release(d->loaded);
    sonde_context_release(d->context);
    list_free_texts(&d->passes);
    list_free_texts(&d->images);
    bench_image_free(&d->image);
    free(d->model);
    free(d->cpu);
    free(d->precision);
    free(d->numa);
    free(d->tune);
}

int bench_driver(void)
{
    driver d = {.threads = 0, .instances = 1};
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        char *value = line + strcspn(line, " ");
        if (*value)
            *value++ = 0;
        if (strcmp(line, "quit") == 0)
            break;
        if (!setting(&d, line, value))
            obey(&d, line, value);
    }
    free(line);
    driver_close(&d);
    return EXIT_OK;
}
