/* SPDX-License-Identifier: Apache-2.0 */
/* sonde compare: how far two models, two precisions or two runtimes are apart, tensor by tensor. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/parts.h"

static const char details[] =
    "\n"
    "Runs A and B on the same inputs and compares every tensor that both have, by name. A is\n"
    "the reference. With one MODEL, B is the same model in another precision (--precision) or\n"
    "in another runtime (--against). A BOUND is a ratio of signal to error (30dB), a largest\n"
    "absolute difference (0.001) or a relative error (1%). Of a quantised B it names the\n"
    "layers that are better left in float; 'sonde quantize --except @FILE' takes the file that\n"
    "--json writes.\n"
    "\n"
    "  sonde compare model.onnx model_int8.onnx -i images/ --json compare.json\n"
    "  sonde compare model.onnx --precision f32,bf16 --bound 40dB\n"
    "  sonde compare model.onnx --against onnxruntime --fail-above 60dB\n"
    "  sonde compare model.onnx --against sonde:no-optimize\n";

typedef struct compare_options {
    run_setup setup;
    const char *precisions, *against, *python, *json, *csv, *bound, *fail_above;
    list peers;
    int64_t samples, top, group_bytes;
    double timeout_s;
    bool all, no_local, no_layers;
} compare_options;

#define AT(field) offsetof(compare_options, field)

static const option_row comparing_rows[] = {
    {0, "precision", OPT_TEXT, AT(precisions), "P[,P]",
     "file, f32, bf16, f16 or auto, as for sonde run: of both, or of A and B"},
    {0, "against", OPT_TEXT, AT(against), "RUNTIME[:VARIANT]",
     "runtime that runs B, one of those of sonde bench: onnxruntime, openvino, torch, rten, or "
     "sonde with a variant"},
    {0, "peer", OPT_LIST, AT(peers), "NAME=FILE",
     "add a runtime: a program that implements the protocol of docs/benchmarking.md"},
    {0, "python", OPT_TEXT, AT(python), "FILE",
     "interpreter for Python runtimes (default: $SONDE_BENCH_PYTHON, else python3)"},
    {0, "timeout", OPT_REAL, AT(timeout_s), "S",
     "stop if the other runtime does not answer for S seconds (default: 300)"},
    {0, "samples", OPT_INT, AT(samples), "N",
     "use at most N samples of what -i gives; without -i, N random ones (default: all, or 1 "
     "random one)"},
    {0, "bound", OPT_TEXT, AT(bound), "BOUND",
     "error from which on a tensor is reported (default: 30dB)"},
    {0, "fail-above", OPT_TEXT, AT(fail_above), "BOUND",
     "exit with status 3 if an output differs by more than this"},
    {0, "no-local", OPT_FLAG, AT(no_local), NULL,
     "do not run B's operators on A's tensors to find the error of each alone"},
    {0, "no-layers", OPT_FLAG, AT(no_layers), NULL,
     "do not try the layers of a quantised B one at a time"},
    {0, "group-bytes", OPT_SIZE, AT(group_bytes), "BYTES",
     "memory for the tensors that are compared at a time (default: 256M)"},
    {0}};

static const option_row result_rows[] = {
    {0, "top", OPT_INT, AT(top), "K", "operators to show that add most error (default: 10)"},
    {0, "all", OPT_FLAG, AT(all), NULL, "show every tensor, not only the outputs"},
    JSON_ROW(compare_options, json),
    {0, "csv", OPT_FILE, AT(csv), "FILE", "write a row for each tensor as CSV"},
    {0}};

static const option_group groups[] = {{"Comparison", comparing_rows, 0, NULL},
                                      INPUT_OPTIONS(compare_options, setup.inputs),
                                      {"Results", result_rows, 0, NULL},
                                      MODEL_OPTIONS(compare_options, setup.model),
                                      {0}};

typedef struct comparison {
    compare_options *o;
    const char *paths[2];
    run_setup setups[2];
    loaded models[2];
    char *labels[2];
    peer *peer;
    samples samples;
    sonde_accuracy *accuracy;
    sonde_accuracy_bound bound, limit;
    char *precisions; /* what --precision says, cut into words */
} comparison;

/* ------------------------------------------------------------------ what was asked for */
static int parse_bound(const char *option, const char *said, sonde_accuracy_bound *b)
{
    char *end = NULL;
    const double x = said ? strtod(said, &end) : 0;
    if (!said)
        return -1;
    end += *end == ' ';
    const bool number = *said && end != said && x > 0 && isfinite(x);
    if (number && strcmp(end, "dB") == 0)
        b->sqnr_db = x;
    else if (number && strcmp(end, "%") == 0)
        b->relative = x / 100;
    else if (number && !*end)
        b->max_abs = x;
    else
        return fail_usage("--%s takes 30dB (a ratio of signal to error), 0.001 (a difference) or "
                          "1%% (a relative error), not '%s'",
                          option, said);
    return -1;
}

static int parse_precisions(comparison *c)
{
    if (!c->o->precisions)
        return -1;
    c->precisions = text_of("%s", c->o->precisions);
    char *comma = strchr(c->precisions, ',');
    if (comma)
        *comma++ = 0;
    const char *said[2] = {c->precisions, comma ? comma : c->precisions};
    for (int k = 0; k < 2; k++) {
        sonde_precision precision;
        if (!precision_of(said[k], &precision))
            return fail_usage("--precision '%s': '%s' is not one of file, f32, bf16, f16, auto",
                              c->o->precisions, said[k]);
        c->setups[k].model.precision = said[k];
    }
    return -1;
}

static int parse(comparison *c)
{
    compare_options *o = c->o;
    const list *rest = &o->setup.common.rest;
    if (rest->n < 1 || rest->n > 2)
        return fail_usage("compare takes two models, A and B, or one; see 'sonde compare --help'");
    if (o->samples == 0)
        return fail_usage("--samples 0: nothing would be compared");
    const bool two = o->precisions && strchr(o->precisions, ',');
    if (rest->n == 1 && !two && !o->against)
        return fail_usage("compare needs a second model, or two precisions (--precision f32,bf16), "
                          "or another runtime (--against onnxruntime)");
    for (int k = 0; k < 2; k++) {
        c->paths[k] = rest->items[rest->n == 2 ? k : 0];
        c->setups[k] = o->setup;
        c->setups[k].measuring.instances = 1;
    }
    c->setups[1].model.disabled_passes = (list){.n = 0};
    for (size_t i = 0; i < o->setup.model.disabled_passes.n; i++)
        list_add(&c->setups[1].model.disabled_passes, o->setup.model.disabled_passes.items[i]);
    int code = parse_precisions(c);
    if (code < 0)
        code = parse_bound("bound", o->bound, &c->bound);
    if (code < 0)
        code = parse_bound("fail-above", o->fail_above, &c->limit);
    if (code < 0 && o->against) {
        const peer_options p = {.against = o->against,
                                .python = o->python,
                                .peers = o->peers,
                                .timeout_s = o->timeout_s,
                                .setup = &o->setup};
        code = peer_open(&c->peer, &p, &c->setups[1].model);
    }
    return code;
}

/* "model.onnx, bf16" */
static char *label_of(const comparison *c, int k)
{
    const char *precision = c->setups[k].model.precision;
    const char *runtime = k == 1 ? c->o->against : NULL;
    return text_of("%s%s%s%s%s", c->paths[k], precision ? ", " : "", precision ? precision : "",
                   runtime ? ", " : "", runtime ? runtime : "");
}

/* ------------------------------------------------------------------ working */
static int load_both(comparison *c)
{
    for (int k = 0; k < 2; k++) {
        int code = load(&c->models[k], &c->setups[k], c->paths[k], LOAD_TO_KNOW_PORTS);
        if (!code && !c->models[k].session)
            code = fail("'%s' cannot be run", c->paths[k]);
        if (code)
            return code;
        c->labels[k] = label_of(c, k);
    }
    return EXIT_OK;
}

/* What an interrupt does is said later. */
static int failed(const comparison *c, const sonde_error *err)
{
    return interrupted() ? EXIT_ERROR : fail_with_sizes(&c->models[0], &c->setups[0], err->message);
}

static int create(comparison *c, const feeds *f)
{
    const sonde_session_options sessions[2] = {session_options(&c->setups[0].model),
                                               session_options(&c->setups[1].model)};
    sonde_accuracy_side sides[2] = {SONDE_INIT(sonde_accuracy_side),
                                    SONDE_INIT(sonde_accuracy_side)};
    sonde_accuracy_options o = SONDE_INIT(sonde_accuracy_options);
    sonde_error err;
    for (int k = 0; k < 2; k++) {
        sides[k].label = c->labels[k];
        sides[k].model = c->models[k].model;
        sides[k].session = &sessions[k];
    }
    if (peer_is_other(c->peer)) {
        sides[1].run = peer_run;
        sides[1].user = c->peer;
    }
    o.bound = c->bound;
    o.group_bytes = (size_t)c->o->group_bytes;
    o.no_local = c->o->no_local;
    o.no_layers = c->o->no_layers;
    o.cancel = interrupt_token();
    return sonde_accuracy_create(&sides[0], &sides[1], &o, f->names, f->values, f->n, &c->accuracy,
                                 &err)
               ? failed(c, &err)
               : EXIT_OK;
}

static int add(comparison *c, size_t pass, size_t index)
{
    feeds f;
    sonde_error err;
    int code = samples_get(&c->samples, index, &f);
    if (!code && !c->accuracy)
        code = create(c, &f);
    if (!code && sonde_accuracy_add(c->accuracy, pass, f.names, f.values, f.n, &err))
        code = failed(c, &err);
    feeds_free(&f);
    return code;
}

static int compare_all(comparison *c)
{
    const size_t n = c->samples.n;
    int code = EXIT_OK;
    for (size_t pass = 0; !code && (!pass || pass < sonde_accuracy_pass_count(c->accuracy)); pass++)
        for (size_t i = 0; i < n && !code; i++) {
            const size_t passes = sonde_accuracy_pass_count(c->accuracy);
            progress(&c->o->setup.common, "comparing",
                     (double)(pass * n + i) / (double)((passes ? passes : 3) * n));
            code = add(c, pass, i);
        }
    progress_end();
    return code;
}

/* ------------------------------------------------------------------ results */
static void collect(void *user, const char *data, size_t size)
{
    text_add(user, "%.*s", (int)size, data);
}

static int save(const comparison *c, const char *path, const char *format)
{
    text t = {.n = 0};
    sonde_error err;
    int code = EXIT_OK;
    if (sonde_accuracy_write(c->accuracy, format, collect, &t, &err))
        code = fail("%s", err.message);
    else
        code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}

/* Outputs that could not be judged. */
static int judge_missing(const comparison *c)
{
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    (void)sonde_accuracy_summary_get(c->accuracy, &s, NULL);
    for (size_t i = 0; i < s.shared; i++) {
        sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
        (void)sonde_accuracy_tensor_get(c->accuracy, i, &t, NULL);
        if (t.output && t.missing)
            warn("output '%s' is not judged: the other runtime does not return it", t.name);
    }
    if (s.outputs == s.outputs_a)
        return EXIT_OK;
    (void)fail("%zu of the %zu outputs of A are not in B", s.outputs_a - s.outputs, s.outputs_a);
    return EXIT_MISMATCH;
}

static int judge(const comparison *c)
{
    size_t index = 0;
    if (!c->o->fail_above)
        return EXIT_OK;
    if (!sonde_accuracy_fails(c->accuracy, &c->limit, &index))
        return judge_missing(c);
    sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
    (void)sonde_accuracy_tensor_get(c->accuracy, index, &t, NULL);
    char *name = printable(t.name);
    fflush(stdout);
    if (t.different)
        (void)fail("output '%s' is %s in A and %s in B", name, t.type_a, t.type_b);
    else if (t.exact)
        (void)fail("output '%s' differs in %llu of %llu elements", name,
                   (unsigned long long)t.error.mismatches, (unsigned long long)t.error.elements);
    else if (t.error.not_finite)
        (void)fail("output '%s' has %llu elements that are NaN or infinite on one side only", name,
                   (unsigned long long)t.error.not_finite);
    else
        (void)fail("output '%s' has an SQNR of %.1f dB, a largest difference of %.3g and a "
                   "relative error of %.3g; the limit is %s",
                   name, t.error.sqnr_db, t.error.max_abs, t.error.relative, c->o->fail_above);
    free(name);
    return EXIT_MISMATCH;
}

static int show(const comparison *c)
{
    const compare_options *o = c->o;
    const bool taken =
        (o->json && strcmp(o->json, "-") == 0) || (o->csv && strcmp(o->csv, "-") == 0);
    const table_of table = {.accuracy = c->accuracy, .top = (size_t)o->top, .all = o->all};
    const bool prints = !taken && !o->setup.common.quiet;
    int code = prints ? compare_table(&table) : EXIT_OK;
    if (prints)
        print_skipped(c->samples.skipped, c->samples.files.n, "files");
    if (!code && o->json)
        code = save(c, o->json, ".json");
    if (!code && o->csv)
        code = save(c, o->csv, ".csv");
    return code;
}

/* Why no element was compared. */
static const char *why_nothing(const comparison *c, const sonde_accuracy_summary *s)
{
    if (!s->samples)
        return "there are no samples";
    for (size_t i = 0; i < s->shared; i++) {
        sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
        if (!sonde_accuracy_tensor_get(c->accuracy, i, &t, NULL) && (t.output || !s->outputs) &&
            t.error.elements)
            return "every element of the outputs is NaN or infinite in A and in B";
    }
    return "the outputs have no elements, or B does not return them";
}

/* Outputs without a single element, or without a number, pass every test and prove nothing. */
static int check_any(const comparison *c)
{
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    sonde_error err;
    if (sonde_accuracy_summary_get(c->accuracy, &s, &err))
        return fail("%s", err.message);
    if (s.compared)
        return EXIT_OK;
    return fail("nothing was compared: %s", why_nothing(c, &s));
}

/* As far as it came. */
static int end_early(const comparison *c)
{
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    if (sonde_accuracy_summary_get(c->accuracy, &s, NULL) || !s.samples)
        return fail("interrupted before anything was compared");
    const int code = show(c);
    return code ? code : fail("interrupted; these are the results so far");
}

static int run(comparison *c)
{
    int code = load_both(c);
    if (!code)
        code = samples_open(&c->samples, &c->models[0], &c->setups[0], c->o->samples);
    if (!code)
        code = interrupt_keep();
    if (!code)
        code = compare_all(c);
    if (code)
        return interrupted() ? end_early(c) : code;
    code = check_any(c);
    if (!code)
        code = show(c);
    return code ? code : judge(c);
}

int cmd_compare(int argc, char **argv)
{
    static const verb_options verb = {"compare", details, groups, help_passes};
    compare_options o = {.setup = SETUP_DEFAULTS, .top = 10, .timeout_s = 300, .samples = -1};
    comparison c = {.o = &o};
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    const bool parsed = code < 0;
    if (code < 0)
        code = parse(&c);
    if (code < 0)
        code = run(&c);
    sonde_accuracy_release(c.accuracy);
    samples_close(&c.samples);
    for (int k = 0; k < 2; k++) {
        unload(&c.models[k]);
        free(c.labels[k]);
    }
    peer_close(c.peer);
    if (parsed)
        list_free(&c.setups[1].model.disabled_passes);
    free(c.precisions);
    options_free(&verb, &o.setup.common);
    return code;
}
