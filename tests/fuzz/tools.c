/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool writes is a model again: it must load, whatever the model was that it is made of. */
#include "fuzz/tools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/place.h"
#include "fuzz/values.h"
#include "sonde/experimental/accuracy.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/quantize.h"
#include "sonde/experimental/sparsify.h"
#include "sonde/experimental/whatif.h"

enum { TOOL_MS = 250 };

/* ---- statistics ---- */

enum { MOST_TOOLS = 8 };
static struct {
    const char *name;
    unsigned long tried, done;
} counts[MOST_TOOLS];
static bool reasons;

static void print_counts(void)
{
    for (int k = 0; k < MOST_TOOLS && counts[k].name; k++)
        fprintf(stderr, "%s: %lu of %lu\n", counts[k].name, counts[k].done, counts[k].tried);
}

static void start(void)
{
    const char *text = getenv("SONDE_FUZZ_STATS");
    reasons = text && *text == '2';
    if (text)
        atexit(print_counts);
}

void tools_count(const char *tool, sonde_status st)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    int k = 0;
    while (k + 1 < MOST_TOOLS && counts[k].name && strcmp(counts[k].name, tool) != 0)
        k++;
    counts[k].name = tool;
    counts[k].tried++;
    counts[k].done += st == SONDE_OK;
}

static bool ended(const char *tool, sonde_status st, const sonde_error *err)
{
    fuzz_check(st, err);
    tools_count(tool, st);
    if (st != SONDE_OK && reasons)
        fprintf(stderr, "%s: %s: %s\n", tool, sonde_status_text(st), err->message);
    return st == SONDE_OK;
}

/* ---- the subject ---- */

bool subject_open(subject *s, sonde_context *c, sonde_model *model, uint64_t *random)
{
    *s = (subject){.context = c, .model = model, .random = random};
    if (sonde_session_create(model, NULL, &s->session, NULL) != SONDE_OK)
        return false;
    const size_t n = sonde_session_input_count(s->session);
    for (size_t i = 0; i < n && n <= TOOL_PORTS; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (sonde_session_input_info(s->session, i, &info, NULL) != SONDE_OK)
            break;
        s->names[i] = info.name;
        s->values[i] = fuzz_value(c, &info, random);
        if (!s->values[i])
            break;
        s->n++;
    }
    return s->n == n;
}

void subject_close(subject *s)
{
    for (size_t i = 0; i < TOOL_PORTS; i++)
        sonde_value_release(s->values[i]);
    sonde_session_release(s->session);
}

/* ---- what several tools share ---- */

static void discard(void *user, const char *text, size_t size)
{
    (void)text;
    *(size_t *)user += size;
}

/* One file for the whole process: it is deleted after each use. */
static const char *file_name(void)
{
    static char path[300];
    const char *folder = getenv("TMPDIR");
    if (!*path)
        snprintf(path, sizeof path, "%s/sonde_fuzz_%ld.onnx", folder && *folder ? folder : "/tmp",
                 (long)getpid());
    return path;
}

/* Loads what was saved; NULL where memory did not suffice. */
static sonde_model *load_again(subject *s, const char *tool)
{
    sonde_model *again = NULL;
    sonde_error err;
    sonde_model_options o = SONDE_INIT(sonde_model_options);
    o.no_mmap = 1;
    const sonde_status st = sonde_model_load(s->context, file_name(), &o, &again, &err);
    unlink(file_name());
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY && st != SONDE_LIMIT && st != SONDE_CANCELLED)
        fuzz_fail(tool, err.message);
    return again;
}

/* Names of nodes as users give them: patterns, and what does not exist. */
static size_t draw_names(subject *s, const char *const **names)
{
    static const char *const lists[][2] = {{"*"}, {"*a*,*1*"}, {"nothing"}, {"y", "*w*"}};
    const uint32_t k = fuzz_below(s->random, 16);
    *names = k < 4 ? lists[k] : NULL;
    return k < 4 ? 1 + (k == 3) : 0;
}

/* ---- inspect ---- */

static void look(sonde_inspection *i, const char *suffix)
{
    sonde_inspection_totals totals = SONDE_INIT(sonde_inspection_totals);
    sonde_error err;
    uint64_t count;
    int64_t version;
    char path[320];
    fuzz_check(sonde_inspection_totals_get(i, &totals, &err), &err);
    (void)sonde_inspection_note(i);
    for (size_t k = 0; k < sonde_inspection_node_count(i); k++) {
        sonde_node_info node = SONDE_INIT(sonde_node_info);
        fuzz_check(sonde_inspection_node(i, k, &node, &err), &err);
    }
    for (size_t k = 0; sonde_inspection_operator(i, k, &count); k++)
        ;
    for (size_t k = 0; sonde_inspection_opset(i, k, &version); k++)
        ;
    if (!suffix)
        return;
    snprintf(path, sizeof path, "%s%s", file_name(), suffix);
    fuzz_check(sonde_inspection_save(i, path, &err), &err);
    unlink(path);
}

void tool_inspect(subject *s)
{
    static const char *const suffixes[] = {".dot", ".onnx", ".html", NULL, NULL, NULL};
    const char *suffix = suffixes[fuzz_below(s->random, 6)];
    sonde_inspection *i = NULL;
    sonde_error err;
    sonde_status st = sonde_inspect_model(s->model, &i, &err);
    if (ended("inspect", st, &err))
        look(i, suffix);
    sonde_inspection_release(i);
    i = NULL;
    if (!s->session)
        return;
    const bool bound = fuzz_below(s->random, 2);
    st = sonde_inspect_session(s->session, s->names, s->values, bound ? s->n : 0, &i, &err);
    fuzz_check(st, &err);
    if (st == SONDE_OK)
        look(i, suffix);
    sonde_inspection_release(i);
}

/* ---- sparsify ---- */

void tool_sparsify(subject *s)
{
    static const char *const patterns[] = {NULL, "1x16", "16x4", "2:4", "1x1", "3x7", "x"};
    sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
    sonde_sparsified *made = NULL;
    sonde_error err;
    o.pattern = patterns[fuzz_below(s->random, 7)];
    o.ratio = o.pattern && strcmp(o.pattern, "2:4") == 0 ? 0 : fuzz_below(s->random, 11) / 10.0;
    o.global = fuzz_below(s->random, 4) == 1;
    o.sparse_initializers = fuzz_below(s->random, 2) == 1;
    o.only_count = draw_names(s, &o.only);
    o.except_count = draw_names(s, &o.except);
    if (!ended("sparsify", sonde_sparsify(s->model, &o, &made, &err), &err))
        return;
    for (size_t k = 0; k < sonde_sparsified_count(made); k++) {
        sonde_sparse_weight w = SONDE_INIT(sonde_sparse_weight);
        fuzz_check(sonde_sparsified_weight(made, k, &w, &err), &err);
        if (w.zeros_after > w.elements || w.zeros_after < w.zeros_before)
            fuzz_fail("sparsify counts wrongly", w.weight);
    }
    if (fuzz_below(s->random, 4) == 1 &&
        sonde_sparsified_save(made, file_name(), NULL, &err) == SONDE_OK)
        sonde_model_release(load_again(s, "what sparsify wrote is not read"));
    sonde_sparsified_release(made);
}

/* ---- quantize ---- */

static void draw_quantize_options(subject *s, sonde_quantize_options *o)
{
    static const int bits[] = {0, 4, 8}, blocks[] = {0, 16, 64};
    o->kind = (sonde_quantize_kind)fuzz_below(s->random, 3);
    o->method = (sonde_calibration)fuzz_below(s->random, SONDE_CALIBRATION_MSE + 1);
    o->per_tensor = fuzz_below(s->random, 3) == 1;
    o->signed_activations = fuzz_below(s->random, 3) == 1;
    o->bits = bits[fuzz_below(s->random, 3)];
    o->block_size = blocks[fuzz_below(s->random, 3)];
    o->equalize = fuzz_below(s->random, 3) == 1;
    o->no_bias_correction = fuzz_below(s->random, 3) == 1;
    o->goal_db = o->kind == SONDE_QUANTIZE_STATIC && fuzz_below(s->random, 6) == 1 ? 25 : 0;
    o->force = fuzz_below(s->random, 2) == 1;
    o->group_bytes = fuzz_below(s->random, 3) == 1;
    o->only_count = draw_names(s, &o->only);
    o->except_count = draw_names(s, &o->except);
}

/* What is the matter of the caller's: the file it was saved in, or NULL. */
static sonde_model *quantized(subject *s, bool save)
{
    sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
    sonde_samples *samples = NULL;
    sonde_quantized *made = NULL;
    sonde_model *again = NULL;
    sonde_error err;
    draw_quantize_options(s, &o);
    if (s->session && sonde_samples_create(s->model, &samples, &err) == SONDE_OK)
        fuzz_check(sonde_samples_add(samples, s->names, s->values, s->n, &err), &err);
    o.cancel = watch_begin(TOOL_MS);
    const sonde_status st = sonde_quantize(s->model, samples, &o, &made, &err);
    watch_end();
    sonde_samples_release(samples);
    if (!ended("quantize", st, &err))
        return NULL;
    sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
    fuzz_check(sonde_quantized_info_get(made, &info, &err), &err);
    for (size_t k = 0; k < sonde_quantized_count(made); k++) {
        sonde_quantized_row row = SONDE_INIT(sonde_quantized_row);
        fuzz_check(sonde_quantized_row_get(made, k, &row, &err), &err);
    }
    if (save && sonde_quantized_save(made, file_name(), NULL, &err) == SONDE_OK)
        again = load_again(s, "what quantize wrote is not read");
    sonde_quantized_release(made);
    return again;
}

void tool_quantize(subject *s)
{
    sonde_model_release(quantized(s, fuzz_below(s->random, 4) == 1));
}

/* ---- compare ---- */

static void read_comparison(const sonde_accuracy *a)
{
    sonde_error err;
    size_t bytes = 0;
    sonde_accuracy_summary summary = SONDE_INIT(sonde_accuracy_summary);
    fuzz_check(sonde_accuracy_summary_get(a, &summary, &err), &err);
    for (size_t k = 0; k < sonde_accuracy_tensor_count(a); k++) {
        sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
        fuzz_check(sonde_accuracy_tensor_get(a, k, &t, &err), &err);
    }
    for (size_t k = 0; k < sonde_accuracy_weight_count(a); k++) {
        sonde_accuracy_weight w = SONDE_INIT(sonde_accuracy_weight);
        fuzz_check(sonde_accuracy_weight_get(a, k, &w, &err), &err);
    }
    fuzz_check(sonde_accuracy_write(a, ".json", discard, &bytes, &err), &err);
    fuzz_check(sonde_accuracy_write(a, ".csv", discard, &bytes, &err), &err);
}

void tool_compare(subject *s)
{
    sonde_session_options how = SONDE_INIT(sonde_session_options);
    sonde_accuracy_side a = SONDE_INIT(sonde_accuracy_side), b = SONDE_INIT(sonde_accuracy_side);
    sonde_accuracy_options o = SONDE_INIT(sonde_accuracy_options);
    sonde_accuracy *made = NULL;
    sonde_error err;
    const uint32_t kind = fuzz_below(s->random, 4);
    sonde_model *other = kind < 2 ? quantized(s, true) : NULL;
    a.model = s->model;
    b.model = other ? other : s->model;
    how.precision = kind == 2 ? SONDE_PRECISION_BF16 : SONDE_PRECISION_F32;
    how.no_optimize = kind == 3;
    b.session = other ? NULL : &how;
    o.no_local = fuzz_below(s->random, 4) == 1;
    o.no_layers = fuzz_below(s->random, 4) == 1;
    o.group_bytes = fuzz_below(s->random, 3) == 1 ? 64 : 0;
    o.cancel = watch_begin(TOOL_MS);
    sonde_status st =
        s->session ? sonde_accuracy_create(&a, &b, &o, s->names, s->values, s->n, &made, &err)
                   : SONDE_CANCELLED;
    const size_t passes = made ? sonde_accuracy_pass_count(made) : 0;
    for (size_t pass = 0; pass < passes && st == SONDE_OK; pass++)
        st = sonde_accuracy_add(made, pass, s->names, s->values, s->n, &err);
    watch_end();
    (void)ended("compare", st, &err);
    if (made)
        read_comparison(made);
    sonde_accuracy_release(made);
    sonde_model_release(other);
}

/* ---- what-if ---- */

void tool_whatif(subject *s)
{
    static const char *const scenarios[] = {
        "sparse90", "int8",         "sparse90+int8", "int8-dynamic",  "int4",
        "bf16",     "batch=2,bf16", "f16",           "sparse80,int8", "int8,int4,sparse70"};
    static const char *const formats[] = {".csv", ".json", ".xlsx"};
    sonde_whatif_options o = SONDE_INIT(sonde_whatif_options);
    sonde_whatif *made = NULL;
    sonde_error err;
    size_t bytes = 0;
    o.scenarios = scenarios[fuzz_below(s->random, 10)];
    o.only_count = draw_names(s, &o.only);
    o.threads = 1;
    o.input_names = s->names;
    o.values = s->values;
    o.value_count = s->n;
    o.warmup = -1;
    o.runs = 1;
    o.no_mix = fuzz_below(s->random, 2) == 1;
    o.no_cache = 1;
    o.cancel = watch_begin(TOOL_MS);
    const sonde_status st = sonde_whatif_measure(s->model, &o, &made, &err);
    watch_end();
    (void)ended("whatif", st, &err);
    for (size_t k = 0; made && k < sonde_whatif_scenario_count(made); k++) {
        sonde_whatif_scenario one = SONDE_INIT(sonde_whatif_scenario);
        fuzz_check(sonde_whatif_scenario_get(made, k, &one, &err), &err);
    }
    for (sonde_by by = SONDE_BY_OP; made && by <= SONDE_BY_SHAPE; by++)
        for (size_t k = 0; k < sonde_whatif_row_count(made, by); k++) {
            sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
            fuzz_check(sonde_whatif_row_get(made, by, k, &row, &err), &err);
        }
    if (made)
        fuzz_check(
            sonde_whatif_write(made, formats[fuzz_below(s->random, 3)], discard, &bytes, &err),
            &err);
    sonde_whatif_release(made);
    sonde_whatif_cache_reset(s->context);
}
