/* SPDX-License-Identifier: Apache-2.0 */
/* sonde sparsify: prunes the weights of a model by magnitude, and says what that cost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "sonde/experimental/sparsify.h"
#include "tool.h"

static const char details[] =
    "\n"
    "Makes the blocks of weights with the smallest norm zero and saves the model as standard\n"
    "ONNX. Weights are constant inputs of MatMul, Gemm, Conv, ConvTranspose and their quantised\n"
    "forms. A pattern is OUTPUTSxK: 4x1 is 4 neighbouring outputs at one k, 1x16 is 16\n"
    "neighbouring k of one output, 1x1 is no structure at all. Of a convolution, neighbours\n"
    "along k are input channels at the same tap. 2:4 makes two of four neighbours along k\n"
    "zero. The ratio counts blocks that are zero already. Without -o, nothing is written:\n"
    "--ratio 0 shows how sparse a model is. Weights of depthwise convolutions are left as they\n"
    "are unless --only names them. Pruning costs accuracy: compare the results, and train the\n"
    "model on if it lost too much.\n"
    "\n"
    "  sonde sparsify model.onnx --ratio 0.9 --pattern 4x1 -o sparse.onnx\n"
    "  sonde sparsify model.onnx --pattern 2:4 --except 'head*' -o sparse.onnx\n"
    "  sonde sparsify model.onnx --ratio 0\n";

typedef struct sparsify_options {
    run_setup setup;
    const char *ratio, *pattern, *output, *json;
    list only, except;
    bool global, sparse_initializers;
    saving_options saving;
} sparsify_options;

#define AT(field) offsetof(sparsify_options, field)

static const option_row pruning_rows[] = {
    {0, "ratio", OPT_TEXT, AT(ratio), "R",
     "share of the blocks that become zero, 0 to 1 (default: 0.9; with 2:4 it is 0.5)"},
    {0, "pattern", OPT_TEXT, AT(pattern), "PATTERN",
     "blocks as OUTPUTSxK (4x1, 1x16, 16x1, 16x4, 1x1, ...) or 2:4 (default: 4x1)"},
    {0, "only", OPT_LIST, AT(only), "NODES",
     "prune only the weights of these nodes: names with commas between them; * and ? are "
     "wildcards, @FILE takes names from a file; may be repeated"},
    {0, "except", OPT_LIST, AT(except), "NODES", "leave the weights of these nodes as they are"},
    {0, "global", OPT_FLAG, AT(global), NULL,
     "take the smallest blocks of all weights together instead of those of each weight"},
    {0}};

static const option_row output_rows[] = {
    {'o', "output", OPT_MODEL, AT(output), "FILE", "save the model to FILE (.onnx)"},
    {0, "sparse-initializers", OPT_FLAG, AT(sparse_initializers), NULL,
     "save pruned weights as sparse_initializer where that takes less room"},
    JSON_ROW(sparsify_options, json),
    {0}};

static const option_row model_rows[] = {
    SEED_ROW(sparsify_options, setup.inputs.seed),
    PROFILES_MEMORY_ROW(sparsify_options, setup.model.max_memory),
    {0}};

static const option_group groups[] = {{"Pruning", pruning_rows, 0, NULL},
                                      {"Output", output_rows, 0, NULL},
                                      SAVING_OPTIONS(sparsify_options, saving),
                                      {"Model", model_rows, 0, NULL},
                                      {0}};

/* ------------------------------------------------------------------ the table */
static double share(uint64_t part, uint64_t of)
{
    return of ? (double)part * 100 / (double)of : 0;
}

typedef struct table {
    sonde_sparse_weight *rows;
    size_t n;
    sonde_sparse_weight total;
} table;

static int read_table(const sonde_sparsified *r, table *t)
{
    sonde_error err;
    *t = (table){.n = sonde_sparsified_count(r), .total = SONDE_INIT(sonde_sparse_weight)};
    t->rows = need(calloc(t->n + 1, sizeof *t->rows));
    if (sonde_sparsified_total(r, &t->total, &err))
        return fail("%s", err.message);
    for (size_t i = 0; i < t->n; i++) {
        t->rows[i].struct_size = sizeof t->rows[i];
        if (sonde_sparsified_weight(r, i, &t->rows[i], &err))
            return fail("%s", err.message);
    }
    return EXIT_OK;
}

static int wider(int width, const char *s)
{
    const int w = display_width(s);
    return w > width ? w : width;
}

static void put_cell(const char *s, int width)
{
    char *shown = cell(s, width);
    printf("%s", shown);
    free(shown);
}

static void print_figures(const sonde_sparse_weight *w)
{
    printf("  %-7s  %7.2f %%  %7.2f %%  ", w->pattern, share(w->zeros_before, w->elements),
           share(w->zeros_after, w->elements));
    if (isfinite(w->norm_kept))
        printf("%7.2f %%\n", w->norm_kept * 100);
    else
        printf("%9s\n", "-");
}

static void print_table(const table *t)
{
    size_t left_out = 0;
    int node = 5, weight = 6, shape = 5;
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].selected) {
            node = wider(node, t->rows[i].node);
            weight = wider(weight, t->rows[i].weight);
            shape = wider(shape, t->rows[i].shape);
        }
    const int figures = 47 + shape;
    node = column_width(node < 60 ? node : 60, figures + (weight < 40 ? weight : 40));
    weight = column_width(weight < 40 ? weight : 40, figures + node);
    put_cell("node", node);
    printf("  ");
    put_cell("weight", weight);
    printf("  %-*s  %-7s  %9s  %9s  %9s\n", shape, "shape", "pattern", "zeros", "after",
           "norm kept");
    for (size_t i = 0; i < t->n; i++) {
        const sonde_sparse_weight *w = &t->rows[i];
        left_out += !w->selected;
        if (!w->selected)
            continue;
        put_cell(w->node, node);
        printf("  ");
        put_cell(w->weight, weight);
        printf("  %-*s", shape, w->shape);
        if (*w->skipped) {
            char *why = printable(w->skipped);
            printf("  left as it is: %s\n", why);
            free(why);
        } else {
            print_figures(w);
        }
    }
    put_cell("total", node);
    printf("  ");
    put_cell("", weight);
    printf("  %-*s", shape, "");
    print_figures(&t->total);
    printf("\n%s of %s weights are zero%s", grouped(t->total.zeros_after),
           grouped(t->total.elements), left_out ? "" : "\n");
    if (left_out)
        printf("; %zu tensor%s not selected\n", left_out, left_out == 1 ? " is" : "s are");
}

/* ------------------------------------------------------------------ JSON */
static void add_row(text *t, const sonde_sparse_weight *w)
{
    text_add(t, "{\"node\": ");
    text_json(t, w->node);
    text_add(t, ", \"op\": ");
    text_json(t, w->op_type);
    text_add(t, ", \"weight\": ");
    text_json(t, w->weight);
    text_add(t, ", \"shape\": ");
    text_json(t, w->shape);
    text_add(t, ", \"dtype\": \"%s\", \"pattern\": ", w->dtype);
    text_json(t, w->pattern);
    text_add(t, ", \"elements\": %llu", (unsigned long long)w->elements);
    if (*w->skipped) {
        text_add(t, ", \"skipped\": ");
        text_json(t, w->skipped);
    } else {
        text_add(t, ", \"zeros_before\": %llu, \"zeros_after\": %llu, \"norm_kept\": ",
                 (unsigned long long)w->zeros_before, (unsigned long long)w->zeros_after);
        text_add(t, isfinite(w->norm_kept) ? "%.9g" : "null", w->norm_kept);
    }
    text_add(t, "}");
}

static int save_json(const table *rows, const sparsify_options *o, const char *model)
{
    text t = {.n = 0};
    text_add(&t, "{\"schema\": \"sonde.sparsify/1\", \"model\": ");
    text_json(&t, model);
    text_add(&t, ", \"output\": ");
    if (o->output)
        text_json(&t, o->output);
    else
        text_add(&t, "null");
    text_add(&t, ",\n \"total\": ");
    add_row(&t, &rows->total);
    text_add(&t, ",\n \"weights\": [");
    for (size_t i = 0; i < rows->n; i++) {
        text_add(&t, i ? ",\n  " : "\n  ");
        add_row(&t, &rows->rows[i]);
    }
    text_add(&t, "]}\n");
    const int code = write_text(o->json, t.data, t.n);
    text_free(&t);
    return code;
}

/* ------------------------------------------------------------------ the verb */
static int show_progress(void *user, double done)
{
    progress(user, "pruning", done);
    return 0;
}

static int make_options(const sparsify_options *o, sonde_sparsify_options *s)
{
    *s = (sonde_sparsify_options)SONDE_INIT(sonde_sparsify_options);
    s->pattern = o->pattern ? o->pattern : "4x1";
    s->ratio = strcmp(s->pattern, "2:4") == 0 ? 0.5 : 0.9;
    if (o->ratio) {
        char *end;
        s->ratio = strtod(o->ratio, &end);
        if (*end == '%') {
            s->ratio /= 100;
            end++;
        }
        if (!*o->ratio || *end || !(s->ratio >= 0 && s->ratio <= 1))
            return fail_usage("--ratio is a share from 0 to 1, such as 0.9 or 90%%, not '%s'",
                              o->ratio);
        if (s->ratio != 0.5 && strcmp(s->pattern, "2:4") == 0)
            return fail_usage("--pattern 2:4 makes half of the weights zero; leave out --ratio or "
                              "say 0.5, not '%s'",
                              o->ratio);
    }
    s->only = o->only.items;
    s->only_count = o->only.n;
    s->except = o->except.items;
    s->except_count = o->except.n;
    s->global = o->global;
    s->sparse_initializers = o->sparse_initializers;
    s->progress = show_progress;
    s->user = (void *)(uintptr_t)&o->setup.common;
    return -1;
}

static int sparsify(const loaded *l, const sparsify_options *o, const sonde_sparsify_options *how)
{
    sonde_sparsified *r = NULL;
    sonde_error err;
    table t = {.n = 0};
    const sonde_status st = sonde_sparsify(l->model, how, &r, &err);
    progress_end();
    if (st)
        return st == SONDE_INVALID_ARGUMENT ? fail_usage("%s", err.message)
                                            : fail("%s", err.message);
    int code = read_table(r, &t);
    const sonde_save_options save = save_options(&o->saving);
    if (!code && o->output && sonde_sparsified_save(r, o->output, &save, &err))
        code = fail("%s", err.message);
    if (!code && !o->setup.common.quiet && !(o->json && strcmp(o->json, "-") == 0))
        print_table(&t);
    if (!code && o->json)
        code = save_json(&t, o, sonde_model_name(l->model));
    free(t.rows);
    sonde_sparsified_release(r);
    return code;
}

static int check(const sparsify_options *o)
{
    const size_t n = o->setup.common.rest.n;
    if (n != 1)
        return n ? fail_usage("sparsify takes one MODEL, not %zu", n)
                 : fail_usage("sparsify needs a MODEL; see 'sonde sparsify --help'");
    if (o->output && !ends_with(o->output, ".onnx"))
        return fail_usage("cannot save a model as '%s': the suffix must be .onnx", o->output);
    if (o->sparse_initializers && !o->output)
        return fail_usage("--sparse-initializers says how a model is saved and needs -o FILE");
    return saving_check(&o->saving, o->output != NULL, "-o FILE");
}

int cmd_sparsify(int argc, char **argv)
{
    static const verb_options verb = {"sparsify", details, groups, NULL};
    sparsify_options o = {.setup = SETUP_DEFAULTS};
    sonde_sparsify_options how;
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0)
        code = check(&o);
    if (code < 0)
        code = make_options(&o, &how);
    if (code < 0) {
        loaded l;
        code = load(&l, &o.setup, o.setup.common.rest.items[0], LOAD_MODEL);
        if (!code)
            code = sparsify(&l, &o, &how);
        unload(&l);
    }
    options_free(&verb, &o.setup.common);
    return code;
}
