/* SPDX-License-Identifier: Apache-2.0 */
/* sonde bench: how fast a model runs, here and in other runtimes, each in its own process, on the
 * same bytes and the same cores. docs/benchmarking.md tells the method. */
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

static const char details[] =
    "\n"
    "MODEL is a path or zoo:NAME; several make a table each. Three warm-up runs, then as many as "
    "fit\n"
    "into two seconds over five rounds, at least 10, unless -w, --duration, --rounds or -n say\n"
    "otherwise. Whole programs are timed after that, from process start to result.\n"
    "\n"
    "  sonde bench zoo:regnet_x_400mf --against onnxruntime,openvino,rten\n"
    "  sonde bench model.onnx -s batch=4 -t 1,2 -o bench.csv -o bench.md --json bench.json\n"
    "  sonde bench model.onnx --against sonde:no-optimize,onnxruntime:opt=off,onnxruntime\n"
    "  sonde bench zoo:regnet_x_400mf -i photos/ --workload T\n";

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
    options *o;
    runtimes all;
    numbers threads, batches;
    bool accuracy;
} request;

static int check_words(const options *o, bool *accuracy)
{
    if (o->workload && strcmp(o->workload, "L") != 0 && strcmp(o->workload, "T") != 0)
        return fail_usage("--workload is L (latency) or T (throughput), not '%s'", o->workload);
    if (o->mode && strcmp(o->mode, "performance") != 0 && strcmp(o->mode, "accuracy") != 0)
        return fail_usage("--mode is performance or accuracy, not '%s'", o->mode);
    *accuracy = o->mode && strcmp(o->mode, "accuracy") == 0;
    if (*accuracy && !o->dataset)
        return fail_usage("--mode accuracy needs --dataset DIR");
    if (o->dataset && !is_folder(o->dataset))
        return fail_usage("--dataset '%s' is no folder", o->dataset);
    if (o->iterations == 0)
        return fail_usage("--iterations 0: nothing would be measured");
    if (o->rounds < 1 || o->rounds > 1000)
        return fail_usage("--rounds %lld: from 1 to 1000", (long long)o->rounds);
    if (o->min_runs < 1 || o->min_runs > 100000)
        return fail_usage("--min-runs %lld: from 1 to 100000", (long long)o->min_runs);
    if (!(o->timeout_s > 0 && o->timeout_s <= 1e6))
        return fail_usage("--timeout takes a number of seconds above 0");
    if (o->no_program && o->no_inference)
        return fail_usage("with --no-program and --no-inference nothing is left to measure");
    return -1;
}

static int check_files(const options *o)
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

static int understand(request *r, options *o)
{
    *r = (request){.o = o};
    int code = o->rest.n ? -1 : fail_usage("bench needs a MODEL; see 'sonde bench --help'");
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
    if (code < 0 && o->dataset && !r->accuracy && !o->inputs.n)
        list_add(&o->inputs, o->dataset);
    return code;
}

/* ------------------------------------------------------------------ measuring */
static int instances_of(const options *o, int threads)
{
    if (o->instances)
        return (int)o->instances;
    return o->workload && strcmp(o->workload, "T") == 0 ? threads : 1;
}

/* One table: one model in one configuration, in all runtimes. */
static int measure_table(const request *q, bench_results *out, const bench_model *model,
                         int threads)
{
    const options *o = q->o;
    const size_t from = out->n, n = q->all.n;
    char *cores = o->no_pin ? text_of("%s", "") : bench_cores(threads);
    bench_plan p = {.o = o,
                    .all = &q->all,
                    .model = model,
                    .cores = cores,
                    .threads = threads,
                    .instances = instances_of(o, threads),
                    .rounds = o->iterations > 0 && o->iterations < o->rounds ? (int)o->iterations
                                                                             : (int)o->rounds};
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
        options o = *q->o;
        o.batch_size = q->batches.items[b];
        o.quiet |= b > 0; /* said once */
        code = bench_prepare(&model, &o, name);
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
            code = bench_answers(&o, &model);
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

static int write_files(const bench_results *r, const options *o)
{
    int code = o->json ? write_results(r, o->json, ".json") : EXIT_OK;
    for (size_t i = 0; i < o->outputs.n; i++) {
        const int wrote = write_results(r, o->outputs.items[i], strrchr(o->outputs.items[i], '.'));
        code = code ? code : wrote;
    }
    return code;
}

/* A bench of which nothing worked has failed; one that has a figure has not. */
static int outcome(const bench_results *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!r->items[i].state)
            return EXIT_OK;
    return EXIT_ERROR;
}

/* A model that cannot be measured does not keep the others from it; wrong usage does. */
static int measure_models(const request *q, bench_results *results)
{
    const options *o = q->o;
    const bool on_terminal = !o->quiet && !(o->json && strcmp(o->json, "-") == 0);
    int worst = EXIT_OK;
    for (size_t i = 0; i < o->rest.n && worst != EXIT_USAGE && !interrupted(); i++) {
        const int code = measure_model(q, results, o->rest.items[i], on_terminal);
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
        code = fail(results.n ? "interrupted; the tables that were whole are kept"
                              : "interrupted before the first table was whole");
    if (results.n && code != EXIT_USAGE) {
        const int wrote = write_files(&results, q->o);
        code = code ? code : wrote ? wrote : outcome(&results);
    }
    bench_results_free(&results);
    return code;
}

int cmd_bench(int argc, char **argv)
{
    options o;
    request q = {.o = &o};
    text help = {.n = 0};
    text_add(&help, "%s", details);
    runtimes_help(&help);
    int code = options_parse(&o, "bench", OPT_BENCH | OPT_FILES | OPT_RUN | OPT_MODEL | OPT_INPUT,
                             help.data, argc, argv);
    text_free(&help);
    if (code < 0)
        code = understand(&q, &o);
    if (code < 0 && !scratch_open())
        code = EXIT_ERROR;
    if (code < 0)
        code = runtimes_make(&q.all, &o);
    if (code < 0)
        code = measure_all(&q);
    runtimes_free(&q.all);
    options_free(&o);
    return code;
}
