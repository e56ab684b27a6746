/* SPDX-License-Identifier: Apache-2.0 */
/* sonde inspect: what is in a model, without running it. */
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "tool.h"

static const char details[] =
    "\n"
    "MODEL is a path or zoo:NAME. FLOPs and memory are those of one run with the sizes -s gives.\n"
    "\n"
    "  sonde inspect model.onnx -s batch=8\n"
    "  sonde inspect model.onnx --nodes --optimized\n"
    "  sonde inspect model.onnx --graph model.dot\n"
    "  sonde inspect model.onnx --optimized -o fast.onnx\n"
    "  sonde inspect --operators\n";

static int totals_of(const sonde_inspection *look, sonde_inspection_totals *totals)
{
    *totals = (sonde_inspection_totals)SONDE_INIT(sonde_inspection_totals);
    sonde_error err;
    return sonde_inspection_totals_get(look, totals, &err) ? fail("%s", err.message) : EXIT_OK;
}

static void print_model(const loaded *l, const sonde_inspection *look)
{
    printf("%s\n", sonde_model_name(l->model));
    printf("  producer    %s\n", sonde_model_producer(l->model));
    printf("  ir version  %lld\n", (long long)sonde_model_ir_version(l->model));
    printf("  opset       ");
    const char *domain;
    int64_t version = 0;
    for (size_t i = 0; (domain = sonde_inspection_opset(look, i, &version)); i++)
        printf("%s%s%s%lld", i ? ", " : "", domain, *domain ? " " : "", (long long)version);
    printf("\n");
    for (size_t i = 0; i < sonde_model_metadata_count(l->model); i++)
        printf("  %s = %s\n", sonde_model_metadata_key(l->model, i),
               sonde_model_metadata_value(l->model, i));
}

static void print_ports(const sonde_session *s, bool inputs)
{
    const size_t n = inputs ? sonde_session_input_count(s) : sonde_session_output_count(s);
    int width = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            sonde_type_info info = SONDE_INIT(sonde_type_info);
            if (inputs ? sonde_session_input_info(s, i, &info, NULL)
                       : sonde_session_output_info(s, i, &info, NULL))
                continue;
            if (pass == 0)
                width = (int)strlen(info.name) > width ? (int)strlen(info.name) : width;
            else if (!info.optional_input)
                printf("  %-*s  %s\n", width < 40 ? width : 40, info.name, info.text);
        }
}

static void print_operators(const sonde_inspection *look, const sonde_inspection_totals *totals)
{
    printf("\noperators (%s nodes)\n", grouped(totals->nodes));
    const char *name;
    uint64_t count = 0;
    for (size_t i = 0; (name = sonde_inspection_operator(look, i, &count)); i++)
        printf("  %-24s  %6s\n", name, grouped(count));
}

static void print_nodes(const sonde_inspection *look)
{
    printf("\nnodes\n");
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info n = SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, &n, NULL))
            continue;
        printf("  %*s%s%s%s (%s)%s%s\n", n.depth * 2, "", n.op_type, *n.post_op ? "+" : "",
               n.post_op, n.name, *n.kernel ? "  " : "", n.kernel);
        for (size_t k = 0; k < n.input_count; k++)
            if (*n.inputs[k].name)
                printf("  %*s  input %zu: %s %s\n", n.depth * 2, "", k, n.inputs[k].name,
                       n.inputs[k].type);
        for (size_t k = 0; k < n.output_count; k++)
            printf("  %*s  output %zu: %s %s\n", n.depth * 2, "", k, n.outputs[k].name,
                   n.outputs[k].type);
        if (*n.attributes)
            printf("  %*s  %s\n", n.depth * 2, "", n.attributes);
        if (n.flops)
            printf("  %*s  %s FLOP\n", n.depth * 2, "", grouped(n.flops));
    }
}

/* 795312128 ► "795.3 M". */
static void print_flops(uint64_t flops)
{
    static const char *const units[] = {"", " K", " M", " G", " T"};
    double x = (double)flops;
    int unit = 0;
    for (; x >= 1000 && unit < 4; unit++)
        x /= 1000;
    printf("  %-12s  %.*f%s\n", "FLOPs", unit ? 1 : 0, x, units[unit]);
}

static void print_cost(const sonde_inspection_totals *totals)
{
    printf("\none run\n");
    print_flops(totals->flops);
    printf("  %-12s  %s\n", "activations", bytes_text(totals->arena_bytes));
    if (totals->workspace_bytes)
        printf("  %-12s  %s\n", "workspace", bytes_text(totals->workspace_bytes));
    if (totals->packed_bytes)
        printf("  %-12s  %s\n", "packed", bytes_text(totals->packed_bytes));
}

/* What a session makes of the model, bound to inputs of the sizes asked for where that can be. */
static int look_at_session(const loaded *l, const options *o, sonde_inspection **look)
{
    feeds f;
    sonde_error err;
    int code = feeds_make(&f, l, o);
    if (!code && sonde_inspect_session(l->session, f.names, f.values, f.n, look, &err))
        code = fail("%s", err.message);
    feeds_free(&f);
    return code;
}

static int save(const sonde_inspection *look, const options *o)
{
    sonde_error err;
    if (o->graph && sonde_inspection_save(look, o->graph, &err))
        return fail("%s", err.message);
    for (size_t i = 0; i < o->outputs.n; i++)
        if (sonde_inspection_save(look, o->outputs.items[i], &err))
            return fail("%s", err.message);
    return EXIT_OK;
}

static int inspect(const loaded *l, options *o)
{
    sonde_inspection *model = NULL, *session = NULL;
    sonde_inspection_totals totals, cost = {.bound = 0};
    sonde_error err;
    if (sonde_inspect_model(l->model, &model, &err))
        return fail("%s", err.message);
    int code = totals_of(model, &totals);
    if (!code && l->session)
        code = look_at_session(l, o, &session);
    if (!code && session)
        code = totals_of(session, &cost);
    if (!code && o->optimized && !session)
        code = fail("there is no optimized graph of a model that cannot be run");
    const sonde_inspection *shown = o->optimized ? session : model;
    if (!code && !o->quiet) {
        print_model(l, model);
        if (l->session) {
            printf("\ninputs\n");
            print_ports(l->session, true);
            printf("\noutputs\n");
            print_ports(l->session, false);
        }
        printf("\nparameters  %s (%s)\n", grouped(totals.parameters),
               bytes_text(totals.parameter_bytes));
        if (totals.file_bytes)
            printf("file        %s\n", bytes_text(totals.file_bytes));
        print_operators(shown, o->optimized ? &cost : &totals);
        if (cost.bound)
            print_cost(&cost);
        if (o->nodes)
            print_nodes(shown);
        if (*sonde_inspection_note(model))
            printf("\nnote: %s\n", sonde_inspection_note(model));
    }
    if (!code)
        code = save(shown, o);
    sonde_inspection_release(model);
    sonde_inspection_release(session);
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
    options o;
    int code =
        options_parse(&o, "inspect", OPT_INSPECT | OPT_MODEL | OPT_INPUT, details, argc, argv);
    if (code < 0 && o.operators && !o.rest.n)
        code = list_operators();
    if (code < 0 && o.rest.n != 1)
        code = o.rest.n ? fail_usage("inspect takes one MODEL, not %zu", o.rest.n)
                        : fail_usage("inspect needs a MODEL; see 'sonde inspect --help'");
    if (code < 0) {
        loaded l;
        code = load(&l, &o, o.rest.items[0], true);
        if (!code)
            code = inspect(&l, &o);
        unload(&l);
    }
    options_free(&o);
    return code;
}
