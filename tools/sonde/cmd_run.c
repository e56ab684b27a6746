/* SPDX-License-Identifier: Apache-2.0 */
/* sonde run: run a model and show what comes out. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/tensor_file.h"

static const char details[] =
    "\n"
    "MODEL is the path of a model file or zoo:NAME. Inputs without an -i option are\n"
    "generated: random numbers from 0 to 1 for floats, small indices for integers, ones for\n"
    "masks. With -i FOLDER the model runs on every image of the folder; -n and --duration\n"
    "repeat the images in turn. The exit status is 3 if --check finds a difference.\n"
    "\n"
    "  sonde run model.onnx -i image=cat.jpg --top 5 --labels labels.txt\n"
    "  sonde run model.onnx -i photos/ --top 1\n"
    "  sonde run model.onnx -s batch=8 -n 20 -o out.npz\n"
    "  sonde run model.onnx -i test_data_set_0 --check test_data_set_0\n";

typedef struct run_options {
    run_setup setup;
    list outputs;
    const char *check, *json;
    tolerances tolerances;
    value_options values;
    int profile;
} run_options;

#define AT(field) offsetof(run_options, field)

static const option_row result_rows[] = {
    OUTPUT_ROW(run_options, outputs),
    {0, "check", OPT_TEXT, AT(check), "FILE", "compare the outputs with those in a file or folder"},
    RTOL_ROW(run_options, tolerances),
    ATOL_ROW(run_options, tolerances),
    TOP_ROW(run_options, values),
    LABELS_ROW(run_options, values),
    {0, "print", OPT_FLAG, AT(values.print), NULL, "print every element of the outputs"},
    PROFILE_ROW(run_options, profile),
    JSON_ROW(run_options, json),
    {0}};

static int check_results(void *values)
{
    const run_options *o = values;
    sonde_error err;
    for (size_t i = 0; i < o->outputs.n; i++)
        if (sonde_values_can_save(o->outputs.items[i], &err))
            return fail_usage("%s", err.message);
    return -1;
}

static const option_group groups[] = {MEASURING_OPTIONS(run_options, setup.measuring),
                                      INPUT_OPTIONS(run_options, setup.inputs),
                                      {"Results", result_rows, 0, check_results},
                                      MODEL_OPTIONS(run_options, setup.model),
                                      {0}};

static void json_value(text *t, const char *name, const sonde_value *v)
{
    text_add(t, "{\"name\":");
    text_json(t, name);
    char *type = value_type_text(v);
    text_add(t, ",\"type\":");
    text_json(t, type);
    free(type);
    if (sonde_value_kind(v) == SONDE_KIND_TENSOR) {
        text_add(t, ",\"dtype\":\"%s\",\"shape\":[", sonde_dtype_text(sonde_tensor_dtype(v)));
        for (size_t i = 0; i < sonde_tensor_rank(v); i++)
            text_add(t, "%s%lld", i ? "," : "", (long long)sonde_tensor_dims(v)[i]);
        text_add(t, "]");
        summary s;
        /* JSON has no infinity: such a tensor goes without figures. */
        if (summarize(v, &s) && s.max - s.min < 1e308)
            text_add(t, ",\"min\":%.9g,\"max\":%.9g,\"mean\":%.9g", s.min, s.max, s.mean);
    }
    text_add(t, "}");
}

static int write_json(const runner *r, const run_options *o)
{
    text t = {.n = 0};
    text_add(&t, "{\"schema\":\"sonde.run/1\",\"model\":");
    text_json(&t, sonde_model_name(r->model.model));
    text_add(&t, ",");
    runner_json(r, &t);
    text_add(&t, ",\"inputs\":[");
    for (size_t i = 0; i < r->in[0].n; i++) {
        text_add(&t, i ? "," : "");
        json_value(&t, r->in[0].names[i], r->in[0].values[i]);
    }
    text_add(&t, "],\"outputs\":[");
    for (size_t i = 0; i < r->n_out; i++) {
        text_add(&t, i ? "," : "");
        json_value(&t, r->names[i], r->out[i]);
    }
    text_add(&t, "]}\n");
    const int code = write_text(o->json, t.data, t.n);
    text_free(&t);
    return code;
}

/* What a run would take and give, where none was wanted. */
static void show_types(const runner *r)
{
    for (size_t i = 0; i < r->in[0].n; i++) {
        char *type = value_type_text(r->in[0].values[i]), *name = printable(r->in[0].names[i]);
        printf("input %s: %s\n", name, type);
        free(name);
        free(type);
    }
    for (size_t i = 0; i < r->outputs; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (sonde_session_output_info(r->model.session, i, &info, NULL))
            continue;
        char *name = printable(info.name), *type = printable(info.text);
        printf("output %s: %s\n", name, type);
        free(type);
        free(name);
    }
    printf("the model was not run\n");
}

static void show(runner *r, const run_options *o)
{
    if (o->json && strcmp(o->json, "-") == 0)
        return; /* the terminal belongs to the JSON */
    const bool quiet = o->setup.common.quiet;
    if (!quiet || o->values.print || o->values.top)
        runner_print(r, &o->values);
    if (!r->runs && !quiet)
        show_types(r);
    if (r->runs > r->sets && !quiet) {
        latency l;
        double *sorted = need(malloc(r->runs * sizeof *sorted));
        memcpy(sorted, r->ms, r->runs * sizeof *sorted);
        latency_of(sorted, r->runs, &l);
        free(sorted);
        const shown_unit u = unit_of_ms(l.mean);
        const int k = u.decimals;
        const double one = u.divisor;
        printf("\n%zu runs: mean %.*f %s, median %.*f, p95 %.*f, min %.*f, max %.*f\n", l.n, k,
               l.mean / one, u.name, k, l.p50 / one, k, l.p95 / one, k, l.min / one, k,
               l.max / one);
        runner_print_instances(r);
    }
}

/* Once, -n times, or for --duration; a folder of images: each of them once. */
static int run(runner *r, const run_options *o)
{
    const measuring_options *m = &o->setup.measuring;
    const bool for_a_while = m->iterations < 0 && m->duration_s >= 0;
    const int64_t once = for_a_while ? -1 : (int64_t)r->sets;
    const int64_t iterations = m->iterations >= 0 ? m->iterations : once;
    const bool measures = m->iterations > 0 || for_a_while || o->profile || o->json;
    int64_t warmup = m->iterations == 0 ? 0
                     : m->warmup >= 0   ? m->warmup
                                        : m->iterations > 0 || for_a_while;
    if (o->setup.common.verbose && measures && !warmup && iterations)
        warmup = 1; /* the run that prints is not measured */
    sonde_error err;
    r->least = 1;
    int code = runner_run(r, &o->setup, warmup, iterations, SIZE_MAX);
    if (code)
        return code;
    show(r, o);
    if (o->profile)
        code = runner_table(r, o->profile > 1);
    if (r->cut) /* the outputs went with the run */
        return code;
    if (!code && o->json)
        code = write_json(r, o);
    for (size_t i = 0; i < o->outputs.n && !code; i++)
        if (sonde_values_save(o->outputs.items[i], (const char *const *)r->names, r->out, r->n_out,
                              &err))
            code = fail("%s", err.message);
    if (!code && o->check)
        code = runner_check(r, &o->tolerances, o->setup.common.quiet, o->check);
    return code;
}

int cmd_run(int argc, char **argv)
{
    static const verb_options verb = {"run", details, groups, help_passes};
    run_options o = {.setup = SETUP_DEFAULTS, .tolerances = TOLERANCES_DEFAULTS};
    const list *rest = &o.setup.common.rest;
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0 && rest->n != 1)
        code = rest->n ? fail_usage("run takes one MODEL, not %zu", rest->n)
                       : fail_usage("run needs a MODEL; see 'sonde run --help'");
    if (code < 0 && o.setup.measuring.iterations == 0 && (o.outputs.n || o.check))
        code = fail_usage("--iterations 0 runs nothing: there is nothing to %s",
                          o.outputs.n ? "save" : "compare");
    if (code < 0)
        code = labels_open(&o.values, o.setup.model.max_memory);
    if (code < 0) {
        o.setup.record_level = o.profile ? 1 : 0;
        runner r;
        code = runner_open(&r, &o.setup, rest->items[0]);
        if (!code)
            code = run(&r, &o);
        runner_close(&r);
    }
    labels_close(&o.values);
    options_free(&verb, &o.setup.common);
    return code;
}
