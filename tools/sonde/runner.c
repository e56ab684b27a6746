/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds the measuring loop of instances.c: inputs, outputs, checking them, telling about
 * them. */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/compare.h"
#include "sonde/experimental/tensor_file.h"

/* The name of output k in files and messages. */
static char *output_name(const runner *r, size_t k)
{
    const char *name = sonde_session_output_name(r->model.session, k % r->outputs);
    if (!r->images.n)
        return text_of("%s", name);
    const char *image = r->images.items[k / r->outputs], *slash = strrchr(image, '/');
    return text_of("%s/%s", slash ? slash + 1 : image, name);
}

static int make_sets(runner *r, const run_setup *s)
{
    int code = image_folder(s, &r->images);
    const size_t n = r->images.n ? r->images.n : 1;
    r->in = need(calloc(n, sizeof *r->in));
    for (size_t i = 0; i < n && !code; i++) {
        run_setup one = *s;
        if (r->images.n)
            one.inputs.inputs = (list){.items = &r->images.items[i], .n = 1};
        one.common.quiet |= i > 0; /* said once */
        one.inputs.one_of_many = r->images.n > 0;
        one.inputs.skip_silently = s->common.quiet;
        code = feeds_make(&r->in[r->sets++], &r->model, &one);
        if (code == FEEDS_UNREADABLE) {
            feeds_free(&r->in[--r->sets]);
            r->skipped++;
            code = EXIT_OK;
        } else if (r->images.n) { /* those that can be read move to the front */
            const char *image = r->images.items[i];
            r->images.items[i] = r->images.items[r->sets - 1];
            r->images.items[r->sets - 1] = image;
        }
    }
    if (!code && !r->sets)
        return none_readable(n, "images", s->inputs.inputs.items[0]);
    return code;
}

int runner_open(runner *r, const run_setup *s, const char *model)
{
    *r = (runner){.least = 10};
    int code = load(&r->model, s, model, LOAD_TO_RUN);
    if (!code)
        code = make_sets(r, s);
    if (code)
        return code;
    r->outputs = sonde_session_output_count(r->model.session);
    const size_t n = r->sets * r->outputs;
    r->names = need(calloc(n + 1, sizeof *r->names));
    r->out = need(calloc(n * r->model.n_sessions + 1, sizeof *r->out));
    for (size_t i = 0; i < n; i++)
        r->names[i] = output_name(r, i);
    return EXIT_OK;
}

void runner_close(runner *r)
{
    if (r->out)
        values_drop(r->out, r->sets * r->outputs * r->model.n_sessions);
    for (size_t i = 0; r->names && r->names[i]; i++)
        free(r->names[i]);
    free(r->names);
    free(r->out);
    free(r->ms);
    for (size_t set = 0; set < r->sets; set++)
        feeds_free(&r->in[set]);
    free(r->in);
    list_free_texts(&r->images);
    unload(&r->model);
}

void runner_print(const runner *r, const value_options *o)
{
    for (size_t i = 0; i < r->n_out; i++) {
        if (r->images.n && i % r->outputs == 0)
            printf("%s%s\n", i ? "\n" : "", r->images.items[i / r->outputs]);
        print_value(sonde_session_output_name(r->model.session, i % r->outputs), r->out[i], o);
    }
    if (r->skipped)
        printf("\n");
    print_skipped(r->skipped, r->images.n, "images");
}

static void write_stdout(void *user, const char *s, size_t n)
{
    (void)user;
    fwrite(s, 1, n, stdout);
}

int runner_table(const runner *r, bool by_shape)
{
    sonde_profile *profile = NULL;
    sonde_error err;
    if (sonde_profiler_stop(r->model.context, &profile, &err))
        return fail("%s", err.message);
    sonde_table_options table = SONDE_INIT(sonde_table_options);
    table.by_shape = by_shape;
    printf("\n");
    const sonde_status st = sonde_profile_table(profile, &table, write_stdout, NULL, &err);
    sonde_profile_release(profile);
    return st ? fail("%s", err.message) : EXIT_OK;
}

/* ------------------------------------------------------------------ comparing */
static int compare(const runner *r, const tolerances *t, size_t k, const sonde_value *expected)
{
    sonde_error err;
    for (size_t i = 0; i < r->model.n_sessions; i++) {
        const sonde_value *got = r->out[i * r->sets * r->outputs + k];
        if (!got || /* this instance has not come to that image */
            sonde_value_compare(got, expected, t->rtol, t->atol, &err) == SONDE_OK)
            continue;
        char *who = i ? text_of(" of instance %zu", i) : text_of("%s", "");
        (void)fail("output '%s'%s: %s", r->names[k], who, err.message);
        free(who);
        return EXIT_MISMATCH;
    }
    return EXIT_OK;
}

static int check_folder(const runner *r, const tolerances *t, const char *path, size_t *compared)
{
    int code = EXIT_OK;
    for (size_t k = 0; k < r->n_out && code != EXIT_ERROR; k++) {
        char *file = text_of("%s/output_%zu.pb", path, k);
        sonde_value *expected = NULL;
        sonde_error err;
        if (is_file(file)) {
            const char *name = sonde_session_output_name(r->model.session, k % r->outputs);
            if (sonde_value_load_for_with(r->model.session, name, file, &unmapped, &expected, &err))
                code = fail("%s", err.message);
            else if (compare(r, t, k, expected))
                code = EXIT_MISMATCH;
            ++*compared;
        }
        sonde_value_release(expected);
        free(file);
    }
    return code;
}

/* Which of the outputs a name is; r->n_out: none. */
static size_t find_output(const runner *r, const char *name)
{
    size_t k = 0;
    while (*name && k < r->n_out && strcmp(r->names[k], name) != 0)
        k++;
    return *name ? k : r->n_out;
}

/* What an archive expects is held against the outputs before any of it is unpacked. */
typedef struct expecting {
    const runner *r;
    const char *path;
    bool unknown, differs;
} expecting;

static int is_output(void *user, const char *name, const int64_t *dims, size_t rank)
{
    expecting *e = user;
    const size_t k = e->unknown ? e->r->n_out : find_output(e->r, name);
    if (k == e->r->n_out) {
        if (!e->unknown)
            (void)fail("'%s' contains output '%s', which the model does not have", e->path, name);
        e->unknown = true;
        return 0;
    }
    const sonde_value *got = e->r->out[k]; /* of the first instance; NULL: not come to that image */
    bool same =
        !got || sonde_value_kind(got) != SONDE_KIND_TENSOR || sonde_tensor_rank(got) == rank;
    for (size_t d = 0; got && same && sonde_value_kind(got) == SONDE_KIND_TENSOR && d < rank; d++)
        same = sonde_tensor_dims(got)[d] == dims[d];
    if (!same) {
        text have = {.n = 0}, want = {.n = 0};
        text_add_shape(&have, sonde_tensor_dims(got), sonde_tensor_rank(got));
        text_add_shape(&want, dims, rank);
        (void)fail("output '%s': got the shape %s, expected %s", name, have.data, want.data);
        text_free(&have);
        text_free(&want);
        e->differs = true;
    }
    return same;
}

static int check_file(const runner *r, const tolerances *t, const char *path, size_t *compared)
{
    sonde_value_set *set = NULL;
    sonde_error err;
    expecting e = {.r = r, .path = path};
    sonde_load_options how = unmapped;
    how.wants = is_output;
    how.wants_user = &e;
    if (sonde_values_load_with(r->model.context, path, &how, &set, &err))
        return fail("%s", err.message);
    int code = e.unknown ? EXIT_ERROR : e.differs ? EXIT_MISMATCH : EXIT_OK;
    for (size_t i = 0; i < sonde_value_set_count(set) && code != EXIT_ERROR; i++) {
        const char *name = sonde_value_set_name(set, i);
        const size_t k = find_output(r, name);
        if (k == r->n_out) { /* a single array without a name */
            code = fail("'%s' contains output '%s', which the model does not have", path, name);
            break;
        }
        if (compare(r, t, k, sonde_value_set_value(set, i)))
            code = EXIT_MISMATCH;
        ++*compared;
    }
    sonde_value_set_release(set);
    return code;
}

int runner_check(const runner *r, const tolerances *t, bool quiet, const char *path)
{
    size_t compared = 0;
    int code =
        is_folder(path) ? check_folder(r, t, path, &compared) : check_file(r, t, path, &compared);
    if (!code && !compared)
        code = fail("'%s' contains no expected outputs", path);
    if (!code && !quiet)
        printf("check: %zu %s as expected\n", compared,
               compared == 1 ? "output is" : "outputs are");
    return code;
}

/* ------------------------------------------------------------------ JSON */
void runner_json(const runner *r, text *t)
{
    double *sorted = need(malloc((r->runs + 1) * sizeof *sorted));
    if (r->runs)
        memcpy(sorted, r->ms, r->runs * sizeof *sorted);
    latency l;
    latency_of(sorted, r->runs, &l);
    free(sorted);
    text_add(t, "\"threads\":%d,\"cpu\":", sonde_context_threads(r->model.context));
    text_json(t, sonde_context_cpu(r->model.context));
    text_add(t, ",\"load_ms\":%.3f,\"prepare_ms\":%.3f,\"iterations\":%zu", r->model.load_ms,
             r->model.prepare_ms, r->runs);
    text_add(t, ",\"instances\":%zu,\"throughput_per_s\":%.3f", r->model.n_sessions,
             runner_throughput(r));
    if (r->images.n)
        text_add(t, ",\"images\":%zu,\"skipped\":%zu", r->sets, r->skipped);
    if (!r->runs) {
        text_add(t, ",\"latency_ms\":null");
        return;
    }
    text_add(t,
             ",\"latency_ms\":{\"min\":%.6f,\"mean\":%.6f,\"p50\":%.6f,\"p95\":%.6f,\"p99\":%.6f,"
             "\"max\":%.6f}",
             l.min, l.mean, l.p50, l.p95, l.p99, l.max);
}
