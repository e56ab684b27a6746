/* SPDX-License-Identifier: Apache-2.0 */
/* sonde check: ONNX's test-data folders, model.onnx beside test_data_set_*, each with input_k.pb
 * and output_k.pb. Tolerances are those of ONNX's own runner. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/compare.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/tensor_file.h"
#include "tool.h"

static const char details[] =
    "\n"
    "DIR is a folder with model.onnx and test_data_set_* folders, or a folder of such\n"
    "folders. A file NAME.onnx next to a NAME_output_0.pb is also a test; its inputs are\n"
    "evenly spaced numbers from 0 to 1. Each failure is printed with its reason. The last\n"
    "line has the numbers of passed and failed tests. Models that use features this build\n"
    "does not support are skipped; the line before the last counts them. For models with\n"
    "random operators only dtypes and shapes are compared. The exit status is 3 if a\n"
    "comparison fails.\n"
    "\n"
    "  sonde check onnx/backend/test/data/node\n"
    "  sonde check --filter conv --rtol 1e-5 onnx/backend/test/data/node\n";

typedef struct check_options {
    common_options common;
    tolerances tolerances;
    const char *filter;
    bool strict;
    model_options model;
} check_options;

#define AT(field) offsetof(check_options, field)

static const option_row rows[] = {
    RTOL_ROW(check_options, tolerances),
    ATOL_ROW(check_options, tolerances),
    {0, "strict", OPT_FLAG, AT(strict), NULL, "count tests of unsupported features as failed"},
    {0, "filter", OPT_TEXT, AT(filter), "TEXT", "run only folders whose name contains TEXT"},
    {0}};

static const option_group groups[] = {
    {"Comparing", rows, 0, NULL}, MODEL_OPTIONS(check_options, model), {0}};

typedef struct tally {
    size_t passed, failed, skipped;
} tally;

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

/* ------------------------------------------------------------------ folders */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of the entries of a folder, sorted; they and the list are the caller's. */
static bool entries(const char *path, list *out)
{
    DIR *d = opendir(path);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            list_add(out, text_of("%s/%s", path, e->d_name));
    closedir(d);
    if (out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_text);
    return true;
}

static void free_entries(list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free((void *)(uintptr_t)l->items[i]);
    list_free(l);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static bool has_model(const char *folder)
{
    char *path = text_of("%s/model.onnx", folder);
    const bool found = is_file(path);
    free(path);
    return found;
}

/* NAME.onnx with NAME_output_0.pb beside it? Then *stem is NAME, to be freed. */
static bool has_output(const char *path, char **stem)
{
    const size_t n = strlen(path);
    *stem = NULL;
    if (n < 6 || strcmp(path + n - 5, ".onnx") != 0)
        return false;
    *stem = text_of("%.*s", (int)(n - 5), path);
    char *output = text_of("%s_output_0.pb", *stem);
    const bool found = is_file(output);
    free(output);
    if (!found) {
        free(*stem);
        *stem = NULL;
    }
    return found;
}

/* ------------------------------------------------------------------ one data set */
/* Files PREFIX_0.pb … as values; fewer than `most` when they end. */
static sonde_status load_values(const sonde_session *s, const char *prefix, bool inputs,
                                size_t most, sonde_value **values, size_t *n, sonde_error *err)
{
    sonde_status st = SONDE_OK;
    for (*n = 0; *n < most && st == SONDE_OK;) {
        char *path = text_of("%s_%zu.pb", prefix, *n);
        const bool there = is_file(path);
        const char *name =
            inputs ? sonde_session_input_name(s, *n) : sonde_session_output_name(s, *n);
        if (there)
            st = sonde_value_load_for_with(s, name, path, &unmapped, &values[*n], err);
        free(path);
        if (!there)
            break;
        *n += st == SONDE_OK;
    }
    return st;
}

/* Inputs that count up from 0 to 1, as the ONNX project makes them for models that come without. */
static sonde_status make_inputs(sonde_context *c, const sonde_session *s, size_t n,
                                sonde_value **values, sonde_error *err)
{
    for (size_t i = 0; i < n; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        sonde_status st = sonde_session_input_info(s, i, &info, err);
        if (st)
            return st;
        int64_t dims[64], count = 1;
        if (info.kind != SONDE_KIND_TENSOR || info.dtype != SONDE_DTYPE_F32 || info.rank < 0 ||
            info.rank > 64) {
            snprintf(err->message, sizeof err->message, "input '%s' is not a float tensor",
                     sonde_session_input_name(s, i));
            return SONDE_UNSUPPORTED;
        }
        for (int d = 0; d < info.rank; d++) {
            dims[d] = info.dims[d] < 0 ? 1 : info.dims[d];
            count *= dims[d];
        }
        float *x = need(malloc((size_t)count * sizeof *x + 1));
        for (int64_t k = 0; k < count; k++)
            x[k] = (float)((double)k / (double)count);
        st = sonde_tensor_create(c, SONDE_DTYPE_F32, dims, (size_t)info.rank, x,
                                 (size_t)count * sizeof *x, &values[i], err);
        free(x);
        if (st)
            return st;
    }
    return SONDE_OK;
}

static void release_all(sonde_value **values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sonde_value_release(values[i]);
    free(values);
}

/* Whether the model draws random numbers: then only types and shapes can be expected. */
static bool is_random(sonde_model *model)
{
    static const char *const types[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                        "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    sonde_inspection *look = NULL;
    if (sonde_inspect_model(model, &look, NULL))
        return false;
    bool found = false;
    const char *name;
    for (size_t i = 0; (name = sonde_inspection_operator(look, i, NULL)); i++)
        for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
            found |= strcmp(name, types[k]) == 0;
    sonde_inspection_release(look);
    return found;
}

static sonde_status compare_types(const sonde_value *got, const sonde_value *want, sonde_error *err)
{
    char *a = value_type_text(got), *b = value_type_text(want);
    const bool same = strcmp(a, b) == 0;
    if (!same)
        snprintf(err->message, sizeof err->message, "got %s, expected %s", a, b);
    free(a);
    free(b);
    return same ? SONDE_OK : SONDE_RUNTIME;
}

typedef struct test_case {
    sonde_context *context;
    const char *folder;
    sonde_session *session;
    bool random;
} test_case;

/* Files INPUT_0.pb … and OUTPUT_0.pb …; without an INPUT prefix inputs are made here. */
static sonde_status run_set(const test_case *c, const char *input, const char *output,
                            const check_options *o, sonde_error *err)
{
    sonde_session *s = c->session;
    const size_t most_in = sonde_session_input_count(s), most_out = sonde_session_output_count(s);
    sonde_value **in = need(calloc(most_in + 1, sizeof *in));
    sonde_value **want = need(calloc(most_out + 1, sizeof *want));
    sonde_value **got = need(calloc(most_out + 1, sizeof *got));
    size_t n_in = 0, n_out = 0;
    sonde_status st;
    if (input) {
        st = load_values(s, input, true, most_in, in, &n_in, err);
    } else {
        st = make_inputs(c->context, s, most_in, in, err);
        n_in = most_in;
    }
    if (st == SONDE_OK)
        st = load_values(s, output, false, most_out, want, &n_out, err);
    sonde_run_options run = SONDE_INIT(sonde_run_options);
    run.cancel = interrupt_token();
    if (st == SONDE_OK)
        st = sonde_session_run(s, &run, NULL, in, n_in, NULL, got, most_out, err);
    for (size_t k = 0; k < n_out && st == SONDE_OK; k++) {
        st = c->random ? compare_types(got[k], want[k], err)
                       : sonde_value_compare(got[k], want[k], o->tolerances.rtol,
                                             o->tolerances.atol, err);
        if (st != SONDE_OK) {
            char *message =
                text_of("output '%s': %s", sonde_session_output_name(s, k), err->message);
            snprintf(err->message, sizeof err->message, "%s", message);
            free(message);
        }
    }
    release_all(in, most_in);
    release_all(want, most_out);
    release_all(got, most_out);
    return st;
}

/* ------------------------------------------------------------------ one folder */
static verdict judge(sonde_status st)
{
    return st == SONDE_OK ? PASSED : st == SONDE_UNSUPPORTED ? SKIPPED : FAILED;
}

static sonde_status run_sets(const test_case *c, const check_options *o, sonde_error *err)
{
    list sets = {.n = 0};
    (void)entries(c->folder, &sets);
    sonde_status st = SONDE_OK;
    size_t found = 0;
    for (size_t i = 0; i < sets.n && st == SONDE_OK; i++)
        if (strncmp(base_name(sets.items[i]), "test_data_set_", 14) == 0 &&
            is_folder(sets.items[i])) {
            char *input = text_of("%s/input", sets.items[i]);
            char *output = text_of("%s/output", sets.items[i]);
            st = run_set(c, input, output, o, err);
            free(input);
            free(output);
            found++;
        }
    if (st == SONDE_OK && !found) {
        st = SONDE_NOT_FOUND;
        snprintf(err->message, sizeof err->message, "there is no test_data_set_* folder");
    }
    free_entries(&sets);
    return st;
}

/* `place`: a folder with model.onnx, or, when `output` is given, a model file whose outputs are in
 * files of that prefix. */
static void check_one(sonde_context *c, const char *place, const char *output,
                      const check_options *o, tally *t)
{
    if (interrupted() || (o->filter && !strstr(base_name(place), o->filter)))
        return;
    char *path = output ? text_of("%s", place) : text_of("%s/model.onnx", place);
    sonde_model_options mo = SONDE_INIT(sonde_model_options);
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    mo.no_mmap = o->model.no_mmap;
    so.no_optimize = o->model.no_optimize;
    so.no_prepack = o->model.no_prepack;
    (void)precision_of(o->model.precision, &so.precision);
    so.disabled_passes = o->model.disabled_passes.items;
    so.disabled_pass_count = o->model.disabled_passes.n;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_error err = {.status = SONDE_OK};
    sonde_status st = sonde_model_load(c, path, &mo, &model, &err);
    if (st == SONDE_OK)
        st = sonde_session_create(model, &so, &session, &err);
    if (st == SONDE_OK) {
        const test_case test = {c, place, session, is_random(model)};
        st = output ? run_set(&test, NULL, output, o, &err) : run_sets(&test, o, &err);
    }
    sonde_session_release(session);
    sonde_model_release(model);
    free(path);

    if (st == SONDE_CANCELLED)
        return;
    const verdict v = judge(st);
    t->passed += v == PASSED;
    t->failed += v == FAILED || (v == SKIPPED && o->strict);
    t->skipped += v == SKIPPED && !o->strict;
    progress_end();
    if (v == PASSED ? o->common.verbose : !o->common.quiet) {
        char *why = printable(v == PASSED ? "" : err.message);
        printf("%s %s%s%s\n",
               v == PASSED   ? "passed "
               : v == FAILED ? "FAILED "
                             : "skipped",
               base_name(place), v == PASSED ? "" : ": ", why);
        free(why);
    }
}

/* Folders of folders, as deep as ONNX keeps them. */
static bool check_tree(sonde_context *c, const char *path, const check_options *o, int depth,
                       tally *t)
{
    if (has_model(path)) {
        check_one(c, path, NULL, o, t);
        return true;
    }
    list inside = {.n = 0};
    bool found = false;
    if (depth > 0 && entries(path, &inside))
        for (size_t i = 0; i < inside.n; i++) {
            char *stem;
            progress(&o->common, "checking", (double)i / (double)inside.n);
            if (is_folder(inside.items[i])) {
                found |= check_tree(c, inside.items[i], o, depth - 1, t);
            } else if (has_output(inside.items[i], &stem)) {
                char *output = text_of("%s_output", stem);
                check_one(c, inside.items[i], output, o, t);
                free(output);
                free(stem);
                found = true;
            }
        }
    free_entries(&inside);
    return found;
}

static int check(const check_options *o)
{
    const sonde_context_options co = context_options(&o->model);
    sonde_context *c = NULL;
    sonde_error err;
    if (sonde_context_create(&co, &c, &err))
        return fail("%s", err.message);
    tally t = {.passed = 0};
    int code = interrupt_keep();
    for (size_t i = 0; i < o->common.rest.n && !code && !interrupted(); i++) {
        char *path = text_of("%s", o->common.rest.items[i]);
        for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
            path[n - 1] = 0;
        if (!is_folder(path))
            code = fail("'%s' is not a folder", path);
        else if (!check_tree(c, path, o, 3, &t) && !interrupted())
            code = fail("there is no model.onnx in or below '%s'", path);
        free(path);
    }
    sonde_context_release(c);
    if (code)
        return code;
    if (interrupted()) {
        progress_end();
        fprintf(stderr, "sonde: interrupted; these are the results so far\n");
    }
    if (t.skipped)
        printf("%zu skipped: not supported\n", t.skipped);
    printf("%zu passed, %zu failed\n", t.passed, t.failed);
    return t.failed ? EXIT_MISMATCH : EXIT_OK;
}

int cmd_check(int argc, char **argv)
{
    static const verb_options verb = {"check", details, groups, help_passes};
    check_options o = {.tolerances = TOLERANCES_DEFAULTS};
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0 && o.common.rest.n == 0)
        code = fail_usage("check needs a DIR; see 'sonde check --help'");
    if (code < 0)
        code = check(&o);
    options_free(&verb, &o.common);
    return code;
}
