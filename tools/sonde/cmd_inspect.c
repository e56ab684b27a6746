/* SPDX-License-Identifier: Apache-2.0 */
/* sonde inspect: what is in a model, without running it. */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

static const char details[] =
    "\n"
    "MODEL is the path of a model file or zoo:NAME. FLOPs and memory are those of one run at\n"
    "the sizes set with -s, after all passes; with --no-optimize they are those of the graph\n"
    "in the file. 'weights' are used in the file's layout, 'packed' weights in the layout of\n"
    "the kernels. 'peak' is the sum of all parts. If the model does not fit where sizes that\n"
    "are not set are 1, sizes that fit are proposed as options.\n"
    "\n"
    "  sonde inspect model.onnx -s batch=8\n"
    "  sonde inspect model.onnx --json -\n"
    "  sonde inspect model.onnx --nodes --optimized\n"
    "  sonde inspect model.onnx --forms --cpu avx2\n"
    "  sonde inspect model.onnx --graph model.dot\n"
    "  sonde inspect model.onnx --optimized -o fast.onnx\n"
    "  sonde inspect --operators\n";

#define AT(field) offsetof(inspect_options, field)

static const option_row rows[] = {
    OUTPUT_ROW(inspect_options, outputs),
    JSON_ROW(inspect_options, json),
    {0, "nodes", OPT_FLAG, AT(nodes), NULL,
     "list every node with the dtypes and shapes of its values"},
    {0, "forms", OPT_FLAG, AT(forms), NULL,
     "list the steps after the passes with the dtype, shape and layout of each value"},
    {0, "operators", OPT_FLAG, AT(operators), NULL,
     "list the supported operators: domain, name, versions, dtypes; needs no MODEL"},
    {0, "graph", OPT_FILE, AT(graph), "FILE", "write the graph as .dot or .txt"},
    {0, "optimized", OPT_FLAG, AT(optimized), NULL,
     "show the graph after the passes; -o out.onnx saves it as a model"},
    {0}};

static int check_output(void *values)
{
    const inspect_options *o = values;
    sonde_error err;
    if (o->graph && sonde_inspection_can_save(o->graph, &err))
        return fail_usage("%s", err.message);
    for (size_t i = 0; i < o->outputs.n; i++)
        if (sonde_inspection_can_save(o->outputs.items[i], &err))
            return fail_usage("%s", err.message);
    bool model = false;
    for (size_t i = 0; i < o->outputs.n; i++)
        model = model || ends_with(o->outputs.items[i], ".onnx");
    return saving_check(&o->saving, model, "-o FILE.onnx");
}

static const option_group groups[] = {{"Output", rows, 0, check_output},
                                      SAVING_OPTIONS(inspect_options, saving),
                                      INPUT_OPTIONS(inspect_options, setup.inputs),
                                      MODEL_OPTIONS(inspect_options, setup.model),
                                      {0}};

static int totals_of(const sonde_inspection *look, sonde_inspection_totals *totals)
{
    *totals = (sonde_inspection_totals)SONDE_INIT(sonde_inspection_totals);
    sonde_error err;
    return sonde_inspection_totals_get(look, totals, &err) ? fail("%s", err.message) : EXIT_OK;
}

/* Printed, with what a terminal would obey taken out. */
static void put(const char *before, const char *s, const char *behind)
{
    char *clean = printable(s);
    printf("%s%s%s", before, clean, behind);
    free(clean);
}

static void print_model(const inspected *in)
{
    const sonde_model *m = in->l->model;
    put("", sonde_model_name(m), "\n");
    put("  producer    ", sonde_model_producer(m), "\n");
    printf("  ir version  %lld\n", (long long)sonde_model_ir_version(m));
    printf("  opset       ");
    const char *domain;
    int64_t version = 0;
    for (size_t i = 0; (domain = sonde_inspection_opset(in->model, i, &version)); i++) {
        put(i ? ", " : "", domain, *domain ? " " : "");
        printf("%lld", (long long)version);
    }
    printf("\n");
    for (size_t i = 0; i < sonde_model_metadata_count(m); i++) {
        put("  ", sonde_model_metadata_key(m, i), " = ");
        put("", sonde_model_metadata_value(m, i), "\n");
    }
}

bool inspected_port(const inspected *in, bool inputs, size_t index, sonde_type_info *info)
{
    const sonde_session *s = in->l->session;
    *info = (sonde_type_info)SONDE_INIT(sonde_type_info);
    if (s)
        return !(inputs ? sonde_session_input_info(s, index, info, NULL)
                        : sonde_session_output_info(s, index, info, NULL));
    return !(inputs ? sonde_inspection_input(in->model, index, info, NULL)
                    : sonde_inspection_output(in->model, index, info, NULL));
}

static void print_ports(const inspected *in, bool inputs)
{
    int name_width = 0, type_width = 0;
    sonde_type_info info;
    for (size_t i = 0; inspected_port(in, inputs, i, &info); i++)
        if (!info.optional_input) {
            const int name = display_width(info.name), type = display_width(info.text);
            name_width = name > name_width ? name : name_width;
            type_width = type > type_width ? type : type_width;
        }
    const int width = column_width(name_width, 4 + type_width);
    printf("\n%s\n", inputs ? "inputs" : "outputs");
    for (size_t i = 0; inspected_port(in, inputs, i, &info); i++)
        if (!info.optional_input) {
            char *name = cell(info.name, width);
            printf("  %s", name);
            put("  ", info.text, "\n");
            free(name);
        }
}

static void print_operators(const inspected *in)
{
    printf("\noperators (%s nodes)\n", grouped(in->counted.nodes));
    const char *name;
    uint64_t count = 0, most = 0;
    int longest = 0;
    for (size_t i = 0; (name = sonde_inspection_operator(in->shown, i, &count)); i++) {
        longest = display_width(name) > longest ? display_width(name) : longest;
        most = count > most ? count : most;
    }
    const int digits = (int)strlen(grouped(most)), width = column_width(longest, 4 + digits);
    for (size_t i = 0; (name = sonde_inspection_operator(in->shown, i, &count)); i++) {
        char *shown = cell(name, width);
        printf("  %s  %*s\n", shown, digits, grouped(count));
        free(shown);
    }
}

static void print_values(int depth, const char *what, const sonde_port_info *ports, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (*ports[k].name) {
            printf("  %*s  %s %zu:", depth * 2, "", what, k);
            put(" ", ports[k].name, "");
            put(" ", ports[k].type, "\n");
        }
}

static void print_step(const sonde_node_info *n)
{
    printf("  %*s", n->depth * 2, "");
    put("", n->op_type, *n->post_op ? "+" : "");
    put("", n->post_op, "");
    if (*n->name)
        put(" (", n->name, ")");
}

static void print_nodes(const sonde_inspection *look)
{
    printf("\nnodes\n");
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info n = SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, &n, NULL))
            continue;
        print_step(&n);
        printf("%s%s\n", *n.kernel ? "  " : "", n.kernel);
        print_values(n.depth, "input", n.inputs, n.input_count);
        print_values(n.depth, "output", n.outputs, n.output_count);
        if (*n.attributes) {
            printf("  %*s", n.depth * 2, "");
            put("  ", n.attributes, "\n");
        }
        if (n.flops)
            printf("  %*s  %s FLOP in %s\n", n.depth * 2, "", grouped(n.flops), n.arithmetic);
    }
}

/* "f32[1, 16, 8, 8] {blocks of 16}, const f32[16]" */
static void print_forms_of(const char *before, const sonde_port_info *ports, size_t n)
{
    printf("%s", before);
    for (size_t k = 0; k < n; k++) {
        printf("%s%s", k ? ", " : " ", ports[k].constant ? "const " : "");
        put("", *ports[k].type ? ports[k].type : *ports[k].name ? "?" : "none", "");
        if (*ports[k].form)
            printf(" {%s}", ports[k].form);
    }
}

static void print_forms(const sonde_inspection *look)
{
    printf("\nforms\n");
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info n = SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, &n, NULL))
            continue;
        print_step(&n);
        print_forms_of(":", n.inputs, n.input_count);
        print_forms_of(" ->", n.outputs, n.output_count);
        printf("\n");
    }
}

/* 795312128 ► "795.3 M". */
static void print_flops(uint64_t flops, const char *more)
{
    static const char *const units[] = {"", " K", " M", " G", " T"};
    double x = (double)flops;
    int unit = 0;
    for (; x >= 1000 && unit < 4; unit++)
        x /= 1000;
    printf("  %-12s  %.*f%s%s\n", "FLOPs", unit ? 1 : 0, x, units[unit], more);
}

static void print_bytes(const char *what, uint64_t bytes)
{
    if (bytes)
        printf("  %-12s  %s\n", what, bytes_text(bytes));
}

static void print_cost(const sonde_inspection_totals *run, const model_options *m)
{
    const char *more = run->data_dependent
                           ? ", plus control-flow bodies and steps with data-dependent shapes"
                           : "";
    printf("\none run\n");
    print_flops(run->flops, more);
    print_bytes("weights", run->weight_bytes);
    print_bytes("packed", run->packed_bytes);
    if (m->precision)
        printf("  %-12s  %s\n", "precision", precision_name(m));
    print_bytes("activations", run->arena_bytes);
    print_bytes("workspace", run->workspace_bytes);
    print_bytes("inputs", run->input_bytes);
    print_bytes("outputs", run->output_bytes);
    printf("  %-12s  %s%s\n", "peak", bytes_text(run->peak_bytes), more);
}

/* Why FLOPs and memory are not known, and with which sizes they would be. */
static void print_why_not(const inspected *in)
{
    char *why = printable(in->why_not);
    printf("\none run\n  %-12s  not known: %s\n", "FLOPs", why);
    printf("  %-12s  not known: the same\n", "memory");
    free(why);
    if (!in->fitting.n)
        return;
    char *options = sizes_as_options(&in->fitting);
    printf("  %-12s  %s\n", "sizes to try", options);
    free(options);
}

/* A session that is not bound: its steps are known, FLOPs and memory are not. */
static int look_unbound(inspected *in, const run_setup *s, const char *why)
{
    sonde_error err;
    if (sonde_inspect_session(in->l->session, NULL, NULL, 0, &in->session, &err))
        return fail("%s", err.message);
    in->why_not = text_of("%s", why);
    in->fitting = sizes_that_fit(in->l, s);
    return EXIT_OK;
}

/* An input whose value nobody can make up, as it has no shape for instance. */
static bool needs_a_value(const loaded *l, sonde_type_info *info)
{
    for (size_t i = 0; i < sonde_session_input_count(l->session); i++) {
        *info = (sonde_type_info)SONDE_INIT(sonde_type_info);
        if (!sonde_session_input_info(l->session, i, info, NULL) && !info->optional_input &&
            (info->kind == SONDE_KIND_MAP || (info->kind == SONDE_KIND_TENSOR && info->rank < 0)))
            return true;
    }
    return false;
}

/* What a session makes of the model, bound to inputs of the sizes asked for where that can be. */
static int look_at_session(inspected *in, const run_setup *s)
{
    feeds f;
    sonde_error err;
    sonde_type_info info;
    if (!s->inputs.inputs.n && needs_a_value(in->l, &info)) {
        char *why = text_of("input '%s' is %s, of which no value can be made up; give one with "
                            "-i '%s=FILE'",
                            info.name, info.text, info.name);
        const int code = sizes_check(in->l) ? EXIT_USAGE : look_unbound(in, s, why);
        free(why);
        return code;
    }
    int code = feeds_make_one(&f, in->l, s);
    if (!code &&
        sonde_inspect_session(in->l->session, f.names, f.values, f.n, &in->session, &err)) {
        in->session = NULL;
        code = look_unbound(in, s, err.message);
    }
    feeds_free(&f);
    return code;
}

static int save(const sonde_inspection *look, const inspect_options *o)
{
    sonde_error err;
    const sonde_save_options how = save_options(&o->saving);
    if (o->graph && sonde_inspection_save(look, o->graph, &err))
        return fail("%s", err.message);
    for (size_t i = 0; i < o->outputs.n; i++)
        if (sonde_inspection_save_with(look, o->outputs.items[i], &how, &err))
            return fail("%s", err.message);
    return EXIT_OK;
}

static void print_all(const inspected *in, const inspect_options *o)
{
    print_model(in);
    print_ports(in, true);
    print_ports(in, false);
    printf("\nparameters  %s (%s)\n", grouped(in->totals.parameters),
           bytes_text(in->totals.parameter_bytes));
    if (in->totals.file_bytes)
        printf("file        %s\n", bytes_text(in->totals.file_bytes));
    print_operators(in);
    if (in->run.bound)
        print_cost(&in->run, &o->setup.model);
    else if (in->why_not)
        print_why_not(in);
    if (o->nodes)
        print_nodes(in->shown);
    if (o->forms)
        print_forms(in->session);
    if (*sonde_inspection_note(in->model))
        put("\nnote: ", sonde_inspection_note(in->model), "\n");
}

/* What was asked for and does not fit is an error; that nothing was asked for is not. */
static bool asked_for_sizes(const input_options *o)
{
    return o->inputs.n || o->sizes.n || o->batch_size || o->seq_len;
}

static int inspect(const loaded *l, const inspect_options *o)
{
    inspected in = {.l = l};
    sonde_error err;
    if (sonde_inspect_model(l->model, &in.model, &err))
        return fail("%s", err.message);
    int code = totals_of(in.model, &in.totals);
    if (!code && l->session)
        code = look_at_session(&in, &o->setup);
    if (!l->session) {
        const char *note = sonde_inspection_note(in.model);
        in.why_not = text_of("%s", *note ? note : "the model cannot be run");
    }
    if (!code && in.session)
        code = totals_of(in.session, &in.run);
    if (!code && (o->optimized || o->forms) && !in.session)
        code = fail("cannot optimize a model that cannot run");
    in.shown = o->optimized ? in.session : in.model;
    in.counted = o->optimized ? in.run : in.totals;
    if (!code && !o->setup.common.quiet && !(o->json && strcmp(o->json, "-") == 0))
        print_all(&in, o);
    if (!code && o->json)
        code = inspect_json(&in, o);
    if (!code)
        code = save(in.shown, o);
    if (!code && l->session && in.why_not && asked_for_sizes(&o->setup.inputs))
        code = fail("%s", in.why_not);
    sonde_inspection_release(in.model);
    sonde_inspection_release(in.session);
    list_free_texts(&in.fitting);
    free(in.why_not);
    return code;
}

/* One line per operator and range of versions; tabs, so that programs can read it. */
static int list_operators(void)
{
    sonde_operator_info op = SONDE_INIT(sonde_operator_info);
    for (size_t i = 0; sonde_operator_get(i, &op, NULL) == SONDE_OK; i++) {
        char until[16] = "";
        if (op.until)
            snprintf(until, sizeof until, "%d", op.until);
        printf("%s\t%s\t%d-%s\t%s\n", *op.domain ? op.domain : "ai.onnx", op.name, op.since, until,
               op.types);
    }
    return EXIT_OK;
}

int cmd_inspect(int argc, char **argv)
{
    static const verb_options verb = {"inspect", details, groups, help_passes};
    inspect_options o = {.setup = SETUP_DEFAULTS};
    const list *rest = &o.setup.common.rest;
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0 && o.operators && !rest->n)
        code = list_operators();
    if (code < 0 && rest->n != 1)
        code = rest->n ? fail_usage("inspect takes one MODEL, not %zu", rest->n)
                       : fail_usage("inspect needs a MODEL; see 'sonde inspect --help'");
    if (code < 0) {
        loaded l;
        code = load(&l, &o.setup, rest->items[0], LOAD_TO_PLAN);
        if (!code)
            code = inspect(&l, &o);
        unload(&l);
    }
    options_free(&verb, &o.setup.common);
    return code;
}
