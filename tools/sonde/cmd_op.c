/* SPDX-License-Identifier: Apache-2.0 */
/* sonde op: one operator alone. Described on the command line it is shown in every variant the
 * machine can run; nodes of a model, when there are several, in one row each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "sonde/experimental/op.h"
#include "tool.h"

static const char details[] =
    "\n"
    "Give either TYPE, an ONNX operator, with a --shape for each input, or MODEL (a path or\n"
    "zoo:NAME) with --node or --op-type to select nodes of that model, with their real\n"
    "inputs, attributes and weights. The operator runs alone, so nothing is fused with it,\n"
    "and only its own time is measured. There is one row per variant: instruction set,\n"
    "threads, packed weights, layout.\n"
    "\n"
    "  sonde op Conv --shape 1,64,56,56 --shape 64,64,3,3 --const 1 --attr pads=1,1,1,1\n"
    "  sonde op Reshape --shape 2,6 --shape i64:2 --value 1=3,4 --const 1\n"
    "  sonde op zoo:regnet_x_400mf --node /fc/Gemm\n"
    "  sonde op zoo:regnet_x_400mf --op-type Conv --json convs.json\n";

typedef struct op_options {
    run_setup setup;
    const char *json;
    list shapes, constants, attributes, contents;
    const char *node, *op_type, *domain;
    int64_t opset, n_outputs;
    int64_t warmup, exec, repeat; /* -1: not given */
} op_options;

#define AT(field) offsetof(op_options, field)

static const option_row rows[] = {
    JSON_ROW(op_options, json),
    {0, "shape", OPT_LIST, AT(shapes), "[TYPE:]1,64,56,56",
     "dtype and shape of the next input (default dtype: f32); '_' is an absent input"},
    {0, "const", OPT_LIST, AT(constants), "K", "input K is a constant weight; may be repeated"},
    {0, "value", OPT_LIST, AT(contents), "K=1,2,3", "values of input K"},
    {0, "attr", OPT_LIST, AT(attributes), "NAME=VALUE", "an attribute; may be repeated"},
    {0, "domain", OPT_TEXT, AT(domain), "NAME", "domain of the operator (default: ai.onnx)"},
    {0, "opset", OPT_INT, AT(opset), "N", "opset version (default: the newest)"},
    {0, "outputs", OPT_INT, AT(n_outputs), "N", "number of outputs (default: 1)"},
    {0, "node", OPT_TEXT, AT(node), "NAME", "the node of MODEL with this name"},
    {0, "op-type", OPT_TEXT, AT(op_type), "TYPE", "all nodes of MODEL of this type, one row each"},
    {'w', "warmup", OPT_INT, AT(warmup), "N", "warm-up runs, which are not measured (default: 10)"},
    {0, "exec", OPT_INT, AT(exec), "N", "runs per latency value (default: 10)"},
    {0, "repeat", OPT_INT, AT(repeat), "N",
     "number of latency values, each the mean of --exec runs (default: 1)"},
    {0}};

static const option_group groups[] = {INPUT_OPTIONS(op_options, setup.inputs),
                                      {"The operator", rows, 0, NULL},
                                      MODEL_OPTIONS(op_options, setup.model),
                                      {0}};

enum { MAX_INPUTS = 64, MAX_DIMS = 16 };

typedef struct described {
    sonde_op_input in[MAX_INPUTS];
    int64_t dims[MAX_INPUTS][MAX_DIMS];
    void *data[MAX_INPUTS];
    size_t n;
    char *attributes;
} described;

typedef struct op_run {
    const op_options *o;
    sonde_context *context;
    sonde_op_options how;
    text json;
    size_t shown;
} op_run;

/* ------------------------------------------------------------------ what people type */
/* "1,64,56" as numbers; -1: not that. */
static int numbers(const char *s, int64_t *out, int most)
{
    int n = 0;
    while (*s) {
        char *end;
        errno = 0;
        const long long v = strtoll(s, &end, 10);
        if (n == most || end == s || errno || (*end && *end != ','))
            return -1;
        out[n++] = v;
        s = end + (*end == ',' && end[1]);
        if (*end == ',' && !end[1])
            return -1;
    }
    return n;
}

static sonde_dtype dtype_of(const char *word, size_t n)
{
    for (int t = 1; t < SONDE_DTYPE_COUNT; t++) {
        const char *names[] = {sonde_dtype_text((sonde_dtype)t),
                               sonde_dtype_onnx_text((sonde_dtype)t)};
        for (int k = 0; k < 2; k++)
            if (strlen(names[k]) == n && strncmp(names[k], word, n) == 0)
                return (sonde_dtype)t;
    }
    return SONDE_DTYPE_UNDEFINED;
}

static int parse_shape(described *d, const char *s)
{
    if (d->n == MAX_INPUTS)
        return fail_usage("too many --shape options: at most %d inputs are supported", MAX_INPUTS);
    sonde_op_input *in = &d->in[d->n];
    *in = (sonde_op_input){.dtype = SONDE_DTYPE_F32};
    if (strcmp(s, "_") == 0) {
        in->dtype = SONDE_DTYPE_UNDEFINED;
        d->n++;
        return -1;
    }
    const char *colon = strchr(s, ':'), *dims = colon ? colon + 1 : s;
    if (colon && !(in->dtype = dtype_of(s, (size_t)(colon - s))))
        return fail_usage("--shape %s: '%.*s' is not a dtype", s, (int)(colon - s), s);
    const int rank = numbers(dims, d->dims[d->n], MAX_DIMS);
    if (rank < 0 || (!colon && !*dims))
        return fail_usage("--shape %s: write a shape as 1,64,56,56, or with a dtype as i64:4", s);
    for (int i = 0; i < rank; i++)
        if (d->dims[d->n][i] < 0)
            return fail_usage("--shape %s: a dimension must not be negative", s);
    in->dims = d->dims[d->n++];
    in->rank = (size_t)rank;
    return -1;
}

static int parse_constants(described *d, const char *s)
{
    int64_t which[MAX_INPUTS];
    const int n = numbers(s, which, MAX_INPUTS);
    if (n <= 0)
        return fail_usage("--const takes the number of an input, not '%s'", s);
    for (int i = 0; i < n; i++) {
        if (which[i] < 0 || (size_t)which[i] >= d->n)
            return fail_usage("--const %s: the operator has inputs 0 to %d", s, (int)d->n - 1);
        d->in[which[i]].constant = 1;
    }
    return -1;
}

static void put_element(void *data, sonde_dtype dtype, size_t i, double v)
{
    if (dtype == SONDE_DTYPE_F32)
        ((float *)data)[i] = (float)v;
    else if (dtype == SONDE_DTYPE_F64)
        ((double *)data)[i] = v;
    else if (dtype == SONDE_DTYPE_I64)
        ((int64_t *)data)[i] = (int64_t)v;
    else if (dtype == SONDE_DTYPE_I32)
        ((int32_t *)data)[i] = (int32_t)v;
    else
        ((uint8_t *)data)[i] = (uint8_t)(int64_t)v;
}

/* "K=1,2,3" */
static int parse_content(described *d, const char *s)
{
    char *end;
    const long k = strtol(s, &end, 10);
    if (end == s || *end != '=' || k < 0 || (size_t)k >= d->n)
        return fail_usage("--value %s: write K=1,2,3, where K is an input that --shape describes",
                          s);
    sonde_op_input *in = &d->in[k];
    const sonde_dtype t = in->dtype;
    if (t != SONDE_DTYPE_F32 && t != SONDE_DTYPE_F64 && t != SONDE_DTYPE_I64 &&
        t != SONDE_DTYPE_I32 && sonde_dtype_bytes(t) != 1)
        return fail_usage("--value %s: values of dtype %s are not supported", s,
                          sonde_dtype_text(t));
    size_t count = 1, got = 0;
    for (size_t i = 0; i < in->rank; i++)
        if (__builtin_mul_overflow(count, (size_t)in->dims[i], &count) || count > 1u << 20)
            return fail_usage("--value %s: the input has too many elements", s);
    free(d->data[k]);
    d->data[k] = need(calloc(count + 1, 8));
    for (const char *at = end + 1; *at && got < count; got++) {
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ','))
            return fail_usage("--value %s: '%s' is not a list of numbers", s, at);
        put_element(d->data[k], t, got, v);
        at = end + (*end == ',');
    }
    if (got != count || *end)
        return fail_usage("--value %s: input %ld has %zu elements", s, k, count);
    in->data = d->data[k];
    return -1;
}

static int parse(described *d, const op_options *o)
{
    int code = -1;
    for (size_t i = 0; i < o->shapes.n && code < 0; i++)
        code = parse_shape(d, o->shapes.items[i]);
    for (size_t i = 0; i < o->constants.n && code < 0; i++)
        code = parse_constants(d, o->constants.items[i]);
    for (size_t i = 0; i < o->contents.n && code < 0; i++)
        code = parse_content(d, o->contents.items[i]);
    text t = {.n = 0};
    for (size_t i = 0; i < o->attributes.n; i++)
        text_add(&t, "%s%s", i ? ";" : "", o->attributes.items[i]);
    d->attributes = t.data;
    return code;
}

/* ------------------------------------------------------------------ what is shown */
static void add_list(text *t, const char *name, const double *us, size_t n)
{
    text_add(t, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        text_add(t, "%s%.3f", i ? "," : "", us[i]);
    text_add(t, "]");
}

static void add_variant(text *t, const sonde_op_variant *v)
{
    text_add(t,
             "{\"cpu\":\"%s\",\"threads\":%d,\"packed\":%s,\"layout\":\"%s\",\"kernel\":", v->cpu,
             v->threads, v->packed ? "true" : "false", v->layout);
    text_json(t, v->kernel);
    text_add(t, ",\"arithmetic\":\"%s\"", v->arithmetic);
    add_list(t, "latency", v->latency_us, v->latency_count);
    add_list(t, "samples", v->samples_us, v->sample_count);
    text_add(t,
             ",\"min\":%.3f,\"mean\":%.3f,\"stddev\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,"
             "\"max\":%.3f",
             v->min_us, v->mean_us, v->stddev_us, v->p50_us, v->p90_us, v->p99_us, v->max_us);
    text_add(t,
             ",\"workspace_size\":%llu,\"flops\":%llu,\"bytes\":%llu,\"gflops\":%.3f,\"gbps\":%.3f",
             (unsigned long long)v->workspace_bytes, (unsigned long long)v->flops,
             (unsigned long long)v->bytes, v->gflops, v->gbps);
    if (v->roofline >= 0)
        text_add(t, ",\"roofline\":%.6f,\"bound\":\"%s\"", v->roofline, v->bound);
    text_add(t, "}");
}

static void add_result(text *t, const sonde_op_result *result, const sonde_op_info *info)
{
    text_add(t, "{\"op\":");
    text_json(t, info->op_type);
    text_add(t, ",\"domain\":");
    text_json(t, info->domain);
    text_add(t, ",\"node\":");
    text_json(t, info->node);
    text_add(t, ",\"inputs\":");
    text_json(t, info->inputs);
    text_add(t, ",\"attributes\":");
    text_json(t, info->attributes);
    text_add(t, ",\"variants\":[");
    for (size_t i = 0; i < sonde_op_result_count(result); i++) {
        sonde_op_variant v = SONDE_INIT(sonde_op_variant);
        if (sonde_op_result_variant(result, i, &v, NULL))
            continue;
        text_add(t, i ? ",\n  " : "\n  ");
        add_variant(t, &v);
    }
    text_add(t, "]}");
}

static void print_number(bool known, double v)
{
    if (known)
        printf("  %8.1f", v);
    else
        printf("  %8s", "-");
}

static void print_figures(const sonde_op_variant *v)
{
    const int decimals = v->p50_us < 1 ? 4 : v->p50_us < 10 ? 3 : 1;
    printf("%9.*f  %9.*f  %9.*f", decimals, v->mean_us, decimals, v->p50_us, decimals, v->p99_us);
    print_number(v->flops > 0, v->gflops);
    print_number(v->bytes > 0, v->gbps);
    print_number(v->roofline >= 0, v->roofline * 100);
}

static void print_titles(void)
{
    printf("%10s  %10s  %10s  %8s  %8s  %8s", "mean \xC2\xB5s", "p50 \xC2\xB5s", "p99 \xC2\xB5s",
           "GFLOP/s", "GB/s", "% roof"); /* µ takes two bytes */
}

static void print_variants(const sonde_op_result *result, const sonde_op_info *info)
{
    char *node = printable(info->node), *attributes = printable(info->attributes);
    printf("%s%s%s  %s\n", info->op_type, *node ? " " : "", node, info->inputs);
    if (*attributes)
        printf("  %s\n", attributes);
    free(node);
    free(attributes);
    printf("\n%-9s %7s  %-8s  %-7s  ", "cpu", "threads", "weights", "layout");
    print_titles();
    printf("  %10s  %s\n", "workspace", "kernel");
    for (size_t i = 0; i < sonde_op_result_count(result); i++) {
        sonde_op_variant v = SONDE_INIT(sonde_op_variant);
        if (sonde_op_result_variant(result, i, &v, NULL))
            continue;
        printf("%-9s %7d  %-8s  %-7s  ", v.cpu, v.threads, v.packed ? "packed" : "as given",
               v.layout);
        print_figures(&v);
        printf("  %10s  %s\n", bytes_text(v.workspace_bytes), v.kernel);
    }
}

static void print_node(const sonde_op_result *result, const sonde_op_info *info, bool first)
{
    sonde_op_variant v = SONDE_INIT(sonde_op_variant);
    if (sonde_op_result_variant(result, 0, &v, NULL))
        return;
    if (first) {
        print_titles();
        printf("  node, inputs, kernel\n");
    }
    char *node = printable(info->node);
    print_figures(&v);
    printf("  %s  %s  %s\n", node, info->inputs, v.kernel);
    free(node);
}

/* ------------------------------------------------------------------ the verb */
static int profile_one(op_run *r, const sonde_op_spec *spec, bool one_of_many)
{
    sonde_op_result *result = NULL;
    sonde_op_info info = SONDE_INIT(sonde_op_info);
    sonde_error err;
    r->how.one_variant = one_of_many;
    r->how.cancel = interrupt_token();
    const sonde_status st = sonde_op_profile(r->context, spec, &r->how, &result, &err);
    if (st == SONDE_CANCELLED)
        return EXIT_OK;
    if (st || sonde_op_result_info(result, &info, &err)) {
        sonde_op_result_release(result);
        return fail("%s", err.message);
    }
    const bool json_only = r->o->json && strcmp(r->o->json, "-") == 0;
    if (!json_only && !r->o->setup.common.quiet) {
        if (one_of_many)
            print_node(result, &info, r->shown == 0);
        else
            print_variants(result, &info);
    }
    if (r->o->json) {
        text_add(&r->json, r->shown ? ",\n " : "\n ");
        add_result(&r->json, result, &info);
    }
    r->shown++;
    sonde_op_result_release(result);
    return EXIT_OK;
}

static int profile_described(op_run *r)
{
    const op_options *o = r->o;
    described d = {.n = 0};
    const sonde_context_options c = context_options(&o->setup.model);
    sonde_error err;
    int code = parse(&d, o);
    if (code < 0 && sonde_context_create(&c, &r->context, &err))
        code = fail("%s", err.message);
    if (code < 0) {
        sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
        spec.op_type = o->setup.common.rest.items[0];
        spec.domain = o->domain;
        spec.opset = o->opset;
        spec.inputs = d.in;
        spec.input_count = d.n;
        spec.output_count = (size_t)o->n_outputs;
        spec.attributes = d.attributes;
        spec.seed = (uint64_t)o->setup.inputs.seed;
        code = interrupt_keep();
        if (!code)
            code = profile_one(r, &spec, false);
    }
    sonde_context_release(r->context);
    for (size_t i = 0; i < MAX_INPUTS; i++)
        free(d.data[i]);
    free(d.attributes);
    return code;
}

static int profile_type(op_run *r, sonde_op_spec *spec, const loaded *l)
{
    sonde_inspection *look = NULL;
    sonde_error err;
    if (sonde_inspect_model(l->model, &look, &err))
        return fail("%s", err.message);
    int code = EXIT_OK;
    const size_t n = sonde_inspection_node_count(look);
    for (size_t i = 0; i < n && !code && !interrupted(); i++) {
        sonde_node_info node = SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, &node, NULL) || node.depth || !*node.name ||
            strcmp(node.op_type, r->o->op_type) != 0)
            continue;
        progress(&r->o->setup.common, "measuring", (double)i / (double)n);
        spec->node = node.name;
        code = profile_one(r, spec, true);
    }
    progress_end();
    if (!code && !r->shown && !interrupted())
        code =
            fail("'%s' has no named node of type '%s'", sonde_model_name(l->model), r->o->op_type);
    sonde_inspection_release(look);
    return code;
}

static int profile_nodes(op_run *r)
{
    loaded l;
    feeds f = {.n = 0};
    int code = load(&l, &r->o->setup, r->o->setup.common.rest.items[0], LOAD_TO_KNOW_PORTS);
    if (!code && !l.session)
        code = fail("cannot measure operators of a model that cannot run");
    if (!code)
        code = feeds_make_one(&f, &l, &r->o->setup);
    if (!code) {
        sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
        spec.model = l.model;
        spec.node = r->o->node;
        spec.input_names = f.names;
        spec.values = f.values;
        spec.value_count = f.n;
        r->context = l.context;
        code = interrupt_keep();
        if (!code)
            code = r->o->node ? profile_one(r, &spec, false) : profile_type(r, &spec, &l);
    }
    feeds_free(&f);
    unload(&l);
    return code;
}

/* Rather a model than a type of operator, which has neither dots nor slashes. */
static bool looks_like_model(const char *word)
{
    return is_zoo(word) || strchr(word, '/') || ends_with(word, ".onnx") || is_file(word);
}

static int check_usage(const op_options *o)
{
    const size_t n = o->setup.common.rest.n;
    if (n != 1)
        return n ? fail_usage("op takes one operator TYPE or one MODEL, not %zu", n)
                 : fail_usage("op needs an operator TYPE or a MODEL; see 'sonde op --help'");
    const char *word = o->setup.common.rest.items[0];
    if (!o->node && !o->op_type && looks_like_model(word))
        return fail_usage("'%s' is a MODEL: select nodes of it with --node or --op-type", word);
    if (o->node && o->op_type)
        return fail_usage("--node and --op-type cannot be combined: --node selects one node, "
                          "--op-type all nodes of a type");
    if (o->exec == 0 || o->repeat == 0)
        return fail_usage("--%s 0: nothing would be measured", o->exec == 0 ? "exec" : "repeat");
    if (o->exec > 1000000 || o->repeat > 1000000 || o->warmup > 1000000)
        return fail_usage("-w, --exec and --repeat take at most 1000000 runs");
    return -1;
}

static int profile_all(const op_options *o)
{
    op_run r = {.o = o, .how = SONDE_INIT(sonde_op_options)};
    (void)precision_of(o->setup.model.precision, &r.how.precision); /* checked with the options */
    r.how.warmup = o->warmup == 0 ? -1 : o->warmup > 0 ? (int)o->warmup : 0;
    r.how.exec = o->exec > 0 ? (int)o->exec : 0;
    r.how.repeat = o->repeat > 0 ? (int)o->repeat : 0;
    text_add(&r.json, "{\"schema\":\"sonde.op/1\",\"unit\":\"us\",\"results\":[");
    int code = o->node || o->op_type ? profile_nodes(&r) : profile_described(&r);
    text_add(&r.json, "]}\n");
    if (!code && interrupted())
        code = fail(r.shown ? "interrupted; these are the results so far" : "interrupted");
    if (o->json && (!code || (interrupted() && r.shown)))
        code = write_text(o->json, r.json.data, r.json.n);
    text_free(&r.json);
    return code;
}

int cmd_op(int argc, char **argv)
{
    static const verb_options verb = {"op", details, groups, help_passes};
    op_options o = {.setup = SETUP_DEFAULTS, .warmup = -1, .exec = -1, .repeat = -1};
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0)
        code = check_usage(&o);
    if (code < 0)
        code = profile_all(&o);
    options_free(&verb, &o.setup.common);
    return code;
}
