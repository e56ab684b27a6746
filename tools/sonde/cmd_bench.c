/* SPDX-License-Identifier: Apache-2.0 */
/* sonde bench: how fast a model runs, here and in other runtimes, each in its own process, on the
 * same bytes and the same cores. docs/benchmarking.md tells the method. */
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

static const char details[] =
    "\n"
    "MODEL is the path of a model file or zoo:NAME; several models give one table each. By\n"
    "default there are 3 warm-up runs, then measured runs for 2 seconds, spread over 5\n"
    "rounds of 10 turns, and at least 10 of them; -w, --duration, --rounds, --turns and -n\n"
    "change this. After that whole programs are timed, from process start to result.\n"
    "\n"
    "  sonde bench zoo:regnet_x_400mf --against onnxruntime,openvino,rten\n"
    "  sonde bench model.onnx -s batch=4 -t 1,2 -o bench.csv -o bench.md --json bench.json\n"
    "  sonde bench model.onnx --against sonde:no-optimize,onnxruntime:opt=off,onnxruntime\n"
    "  sonde bench zoo:regnet_x_400mf -i photos/ --workload T\n";

#define AT(field) offsetof(bench_options, field)

static const option_row compared_rows[] = {
    {0, "against", OPT_LIST, AT(against), "A,B:VARIANT", "other runtimes to compare with"},
    {0, "peer", OPT_LIST, AT(peers), "NAME=FILE",
     "add a runtime: a program that implements the protocol of docs/benchmarking.md"},
    {0, "python", OPT_TEXT, AT(python), "FILE",
     "interpreter for Python runtimes (default: $SONDE_BENCH_PYTHON, else python3)"},
    {0, "precision", OPT_TEXT, AT(precision_list), "P,P",
     "file, f32, bf16, f16 or auto, as for sonde run, or a list to measure each; other runtimes "
     "that have such a variant are asked for the same"},
    {'t', "threads", OPT_TEXT, AT(thread_list), "N,N",
     "number of threads, or a list to measure each; 0 = all cores that the CPU quota allows "
     "(default: 0)"},
    {0, "batch-size", OPT_TEXT, AT(batch_list), "N,N",
     "size of the batch dimension, or a list to measure each; also --batch"},
    {0, "batch_size", OPT_TEXT, AT(batch_list), "N,N", NULL},
    {0, "batch", OPT_TEXT, AT(batch_list), "N,N", NULL},
    {0, "instances", OPT_INT, AT(setup.measuring.instances), "N",
     "sessions that run in parallel in one process and share the cores (default: 1); also "
     "--workers"},
    {0, "workers", OPT_INT, AT(setup.measuring.instances), "N", NULL},
    {0, "workload", OPT_TEXT, AT(workload), "L|T",
     "L: latency, one instance; T: throughput, one instance per thread (default: L)"},
    {0, "mode", OPT_TEXT, AT(mode), "performance|accuracy",
     "measure speed, or top-1 and top-5 accuracy on --dataset (default: performance)"},
    {0, "dataset", OPT_TEXT, AT(dataset), "DIR",
     "one folder of images per class, or .npz files with an array 'label'"},
    {0, "scores", OPT_TEXT, AT(scores), "OUTPUT",
     "output with the scores of --mode accuracy (default: the first with one score per class)"},
    {0, "rounds", OPT_INT, AT(rounds), "N",
     "number of times each runtime is restarted, in rotated order (default: 5)"},
    {0, "turns", OPT_INT, AT(turns), "N",
     "number of times a round goes through the runtimes, which stay alive meanwhile; 1: each is "
     "alone (default: 10)"},
    {0, "min-runs", OPT_INT, AT(min_runs), "N", "runs of each whole program (default: 10)"},
    {0, "timeout", OPT_REAL, AT(timeout_s), "S",
     "kill a runtime that does not answer for S seconds (default: 60)"},
    {0, "no-program", OPT_FLAG, AT(no_program), NULL,
     "do not time whole programs (from process start to result)"},
    {0, "no-inference", OPT_FLAG, AT(no_inference), NULL, "time only whole programs"},
    {0, "no-pin", OPT_FLAG, AT(no_pin), NULL, "do not pin threads to cores"},
    {0, "queries", OPT_INT, AT(setup.measuring.iterations), "N", "the same as --iterations"},
    {0}};

static const option_row result_rows[] = {
    OUTPUT_ROW(bench_options, outputs),  RTOL_ROW(bench_options, tolerances),
    ATOL_ROW(bench_options, tolerances), TOP_ROW(bench_options, values),
    LABELS_ROW(bench_options, values),   PROFILE_ROW(bench_options, profile),
    JSON_ROW(bench_options, json),       {0}};

static const option_group groups[] = {{"Comparison", compared_rows, 0, NULL},
                                      MEASURING_OPTIONS(bench_options, setup.measuring),
                                      INPUT_OPTIONS(bench_options, setup.inputs),
                                      {"Results", result_rows, 0, NULL},
                                      KEEP_OPTIONS(bench_options, keep),
                                      MODEL_OPTIONS(bench_options, setup.model),
                                      {0}};

enum { MOST_NUMBERS = 64 };

typedef struct numbers {
    int64_t items[MOST_NUMBERS];
    size_t n;
} numbers;

static int parse_numbers(const char *option, const char *list_text, int64_t least, int64_t most,
                         numbers *out)
{
    *out = (numbers){.n = 0};
    for (const char *p = list_text; p;) {
        char *end = NULL;
        const long long x = strtoll(p, &end, 10);
        if (end == p || (*end && *end != ',') || x < least || x > most || out->n == MOST_NUMBERS)
            return fail_usage("--%s takes a number from %lld to %lld or several, such as 1,2, not "
                              "'%s'",
                              option, (long long)least, (long long)most, list_text);
        out->items[out->n++] = x;
        p = *end ? end + 1 : NULL;
    }
    return -1;
}

/* ------------------------------------------------------------------ what was asked for */
typedef struct request {
    bench_options *o;
    runtimes all;
    numbers threads, batches;
    bool accuracy;
} request;

static int check_words(const bench_options *o, bool *accuracy)
{
    if (o->workload && strcmp(o->workload, "L") != 0 && strcmp(o->workload, "T") != 0)
        return fail_usage("--workload is L (latency) or T (throughput), not '%s'", o->workload);
    if (o->mode && strcmp(o->mode, "performance") != 0 && strcmp(o->mode, "accuracy") != 0)
        return fail_usage("--mode is performance or accuracy, not '%s'", o->mode);
    *accuracy = o->mode && strcmp(o->mode, "accuracy") == 0;
    if (*accuracy && !o->dataset)
        return fail_usage("--mode accuracy needs --dataset DIR");
    if (o->dataset && !is_folder(o->dataset))
        return fail_usage("--dataset '%s' is not a folder", o->dataset);
    if (o->setup.measuring.iterations == 0)
        return fail_usage("--iterations 0: nothing would be measured");
    if (o->rounds < 1 || o->rounds > 1000)
        return fail_usage("--rounds %lld is out of range; use 1 to 1000", (long long)o->rounds);
    if (o->turns < 1 || o->turns > 1000)
        return fail_usage("--turns %lld is out of range; use 1 to 1000", (long long)o->turns);
    if (o->min_runs < 1 || o->min_runs > 100000)
        return fail_usage("--min-runs %lld is out of range; use 1 to 100000",
                          (long long)o->min_runs);
    if (!(o->timeout_s > 0 && o->timeout_s <= 1e6))
        return fail_usage("--timeout takes a number of seconds above 0");
    if (o->no_program && o->no_inference)
        return fail_usage("--no-program and --no-inference together leave nothing to measure");
    return -1;
}

static int check_files(const bench_options *o)
{
    static const char *const suffixes[] = {".json", ".csv", ".md", ".svg", ".png"};
    for (size_t i = 0; i < o->outputs.n; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof suffixes / sizeof suffixes[0]; k++)
            known |= ends_with(o->outputs.items[i], suffixes[k]);
        if (!known)
            return fail_usage("'%s': bench writes .json, .csv, .md, .svg and .png",
                              o->outputs.items[i]);
    }
    return -1;
}

static int understand(request *r, bench_options *o)
{
    *r = (request){.o = o};
    int code =
        o->setup.common.rest.n ? -1 : fail_usage("bench needs a MODEL; see 'sonde bench --help'");
    if (code < 0)
        code = check_words(o, &r->accuracy);
    if (code < 0)
        code = check_files(o);
    if (code < 0)
        code =
            parse_numbers("threads", o->thread_list ? o->thread_list : "0", 0, 4096, &r->threads);
    if (code < 0)
        code = parse_numbers("batch-size", o->batch_list ? o->batch_list : "0",
                             o->batch_list ? 1 : 0, INT32_MAX, &r->batches);
    if (code < 0 && o->dataset && !r->accuracy && !o->setup.inputs.inputs.n)
        list_add(&o->setup.inputs.inputs, o->dataset);
    return code;
}

/* ------------------------------------------------------------------ measuring */
static int instances_of(const bench_options *o, int threads)
{
    if (o->setup.measuring.instances > 0)
        return (int)o->setup.measuring.instances;
    return o->workload && strcmp(o->workload, "T") == 0 ? threads : 1;
}

/* One table: one model in one configuration, in all runtimes. */
static int measure_table(const request *q, bench_results *out, const bench_model *model,
                         int threads)
{
    const bench_options *o = q->o;
    const int64_t iterations = o->setup.measuring.iterations;
    const size_t from = out->n, n = q->all.n;
    char *cores = o->no_pin ? text_of("%s", "") : bench_cores(threads);
    bench_plan p = {.o = o,
                    .all = &q->all,
                    .model = model,
                    .cores = cores,
                    .threads = threads,
                    .instances = instances_of(o, threads),
                    .rounds =
                        (int)(iterations > 0 && iterations < o->rounds ? iterations : o->rounds),
                    .turns = (int)o->turns};
    out->items = need(realloc(out->items, (from + n) * sizeof *out->items));
    p.results = out->items + from;
    for (size_t i = 0; i < n; i++)
        bench_result_open(&p.results[i], &p, &q->all.items[i]);
    out->n += n;
    bool whole = q->accuracy ? bench_accuracies(&p) : bench_measure(&p);
    if (whole && !q->accuracy) {
        bench_agree(&p);
        if (!o->no_program)
            whole = bench_programs(&p);
    }
    const bench_result *first = NULL;
    for (size_t i = 0; i < n; i++) {
        first = !first && !p.results[i].state ? &p.results[i] : first;
        bench_result_finish(&p.results[i], first);
    }
    free(out->machine.pinned);
    out->machine.pinned = cores;
    if (!whole) /* half a table compares nothing */
        bench_results_cut(out, from);
    return whole ? EXIT_OK : EXIT_ERROR;
}

static int measure_model(const request *q, bench_results *out, const char *name, bool on_terminal)
{
    int code = EXIT_OK;
    for (size_t b = 0; b < q->batches.n && !code; b++) {
        bench_model model;
        run_setup s = q->o->setup;
        s.inputs.batch_size = q->batches.items[b];
        s.common.quiet |= b > 0; /* said once */
        s.hashes = q->o->keep.save != NULL;
        for (size_t i = 0; i < q->all.n; i++)
            s.others |= q->all.items[i].file != NULL;
        code = bench_prepare(&model, &s, name);
        for (size_t t = 0; t < q->threads.n && !code; t++) {
            const int threads =
                q->threads.items[t] ? (int)q->threads.items[t] : out->machine.usable_cores;
            const size_t from = out->n;
            code = measure_table(q, out, &model, threads);
            if (!code && on_terminal)
                bench_table(out, from, out->n);
            fflush(stdout);
        }
        if (!code && on_terminal && !q->accuracy)
            code = bench_answers(q->o, &s, &model);
        bench_model_free(&model);
    }
    return code;
}

/* ------------------------------------------------------------------ files */
static int write_results(const bench_results *r, const char *path, const char *suffix)
{
    text t = {.n = 0};
    if (strcmp(suffix, ".svg") == 0 || strcmp(suffix, ".png") == 0)
        return bench_plot(r, path);
    if (strcmp(suffix, ".csv") == 0)
        bench_csv(r, &t);
    else if (strcmp(suffix, ".md") == 0)
        bench_markdown(r, &t);
    else
        bench_json(r, &t);
    const int code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}

static int write_files(const bench_results *r, const bench_options *o)
{
    int code = o->json ? write_results(r, o->json, ".json") : EXIT_OK;
    for (size_t i = 0; i < o->outputs.n; i++) {
        const int wrote = write_results(r, o->outputs.items[i], strrchr(o->outputs.items[i], '.'));
        code = code ? code : wrote;
    }
    return code;
}

/* A bench of which nothing worked has failed; one that has a figure has not. `silent`: no table
 * said why. */
static int outcome(const bench_results *r, bool silent)
{
    for (size_t i = 0; i < r->n; i++)
        if (!r->items[i].state)
            return EXIT_OK;
    for (size_t i = 0; i < r->n && silent; i++)
        (void)fail("%s, %s: %s", r->items[i].model, r->items[i].runtime,
                   r->items[i].message ? r->items[i].message : "there are no figures");
    return EXIT_ERROR;
}

/* A model that cannot be measured does not keep the others from it; wrong usage does. */
static int measure_models(const request *q, bench_results *results)
{
    const bench_options *o = q->o;
    const bool on_terminal = !o->setup.common.quiet && !(o->json && strcmp(o->json, "-") == 0);
    const list *rest = &o->setup.common.rest;
    int worst = EXIT_OK;
    for (size_t i = 0; i < rest->n && worst != EXIT_USAGE && !interrupted(); i++) {
        const int code = measure_model(q, results, rest->items[i], on_terminal);
        worst = code > worst ? code : worst;
    }
    return worst;
}

static int measure_all(const request *q)
{
    bench_results results = {.n = 0};
    int code = runtimes_unpack();
    if (!code)
        code = bench_machine_look(&results.machine);
    if (!code)
        code = measure_models(q, &results);
    if (interrupted())
        code = fail(results.n ? "interrupted; complete tables are kept"
                              : "interrupted before the first table was complete");
    if (results.n && code != EXIT_USAGE) {
        const int wrote = write_files(&results, q->o);
        const int kept = q->o->keep.save ? bench_keep(&results, q->o) : EXIT_OK;
        code = code ? code : wrote ? wrote : kept ? kept : outcome(&results, q->o->setup.common.quiet);
    }
    bench_results_free(&results);
    return code;
}

int cmd_bench(int argc, char **argv)
{
    bench_options o = {.setup = SETUP_DEFAULTS,
                       .rounds = 5,
                       .turns = 10,
                       .min_runs = 10,
                       .timeout_s = 60,
                       .tolerances = TOLERANCES_DEFAULTS};
    request q = {.o = &o};
    text help = {.n = 0};
    text_add(&help, "%s", details);
    runtimes_help(&help);
    const verb_options verb = {"bench", help.data, groups, help_passes};
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0)
        code = understand(&q, &o);
    if (code < 0)
        code = labels_open(&o.values, o.setup.model.max_memory);
    if (code < 0 && !scratch_open())
        code = EXIT_ERROR;
    if (code < 0)
        code = runtimes_make(&q.all, &o);
    if (code < 0)
        code = measure_all(&q);
    runtimes_free(&q.all);
    labels_close(&o.values);
    options_free(&verb, &o.setup.common);
    text_free(&help);
    return code;
}
