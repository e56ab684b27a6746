/* SPDX-License-Identifier: Apache-2.0 */
/* inspect --json: what the text says, for programs. "schema" names the form; keys are only added.
 */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

static void add_text(text *t, const char *key, const char *value)
{
    text_add(t, ",\"%s\":", key);
    text_json(t, value);
}

static void add_number(text *t, const char *key, uint64_t n)
{
    text_add(t, ",\"%s\":%llu", key, (unsigned long long)n);
}

static void add_model(text *t, const inspected *in)
{
    const sonde_model *m = in->l->model;
    text_add(t, "{\"schema\":\"sonde.inspect/1\",\"model\":");
    text_json(t, sonde_model_name(m));
    add_text(t, "producer", sonde_model_producer(m));
    text_add(t, ",\"ir_version\":%lld,\"opsets\":[", (long long)sonde_model_ir_version(m));
    const char *domain;
    int64_t version = 0;
    for (size_t i = 0; (domain = sonde_inspection_opset(in->model, i, &version)); i++) {
        text_add(t, "%s{\"domain\":", i ? "," : "");
        text_json(t, domain);
        text_add(t, ",\"version\":%lld}", (long long)version);
    }
    text_add(t, "],\n\"metadata\":{");
    for (size_t i = 0; i < sonde_model_metadata_count(m); i++) {
        text_add(t, i ? "," : "");
        text_json(t, sonde_model_metadata_key(m, i));
        text_add(t, ":");
        text_json(t, sonde_model_metadata_value(m, i));
    }
    text_add(t, "}");
}

/* Sizes are numbers, names of symbolic ones, or null. */
static void add_shape(text *t, const sonde_type_info *info)
{
    if (info->rank < 0) {
        text_add(t, ",\"shape\":null");
        return;
    }
    text_add(t, ",\"shape\":[");
    for (int i = 0; i < info->rank; i++) {
        text_add(t, i ? "," : "");
        if (info->dims[i] >= 0)
            text_add(t, "%lld", (long long)info->dims[i]);
        else if (info->dim_names[i])
            text_json(t, info->dim_names[i]);
        else
            text_add(t, "null");
    }
    text_add(t, "]");
}

static void add_ports(text *t, const inspected *in, bool inputs)
{
    sonde_type_info info;
    text_add(t, ",\n\"%s\":[", inputs ? "inputs" : "outputs");
    for (size_t i = 0; inspected_port(in, inputs, i, &info); i++) {
        text_add(t, "%s\n{\"name\":", i ? "," : "");
        text_json(t, info.name);
        add_text(t, "type", info.text);
        add_text(t, "dtype", sonde_dtype_text(info.dtype));
        add_shape(t, &info);
        text_add(t, ",\"optional\":%s}", info.optional_input ? "true" : "false");
    }
    text_add(t, "]");
}

static void add_operators(text *t, const inspected *in)
{
    const char *name;
    uint64_t count = 0;
    add_number(t, "nodes", in->counted.nodes);
    text_add(t, ",\n\"operators\":[");
    for (size_t i = 0; (name = sonde_inspection_operator(in->shown, i, &count)); i++) {
        text_add(t, "%s{\"op\":", i ? "," : "");
        text_json(t, name);
        text_add(t, ",\"count\":%llu}", (unsigned long long)count);
    }
    text_add(t, "]");
}

/* Why there are no figures, and sizes with which there are. */
static void add_why_not(text *t, const inspected *in)
{
    text_add(t, ",\n\"run\":null,\"run_error\":");
    if (in->why_not)
        text_json(t, in->why_not);
    else
        text_add(t, "null");
    text_add(t, ",\"sizes_that_fit\":{");
    for (size_t i = 0; i < in->fitting.n; i++) {
        const char *item = in->fitting.items[i], *equals = strrchr(item, '=');
        char *name = text_of("%.*s", (int)(equals - item), item);
        text_add(t, i ? "," : "");
        text_json(t, name);
        text_add(t, ":%s", equals + 1);
        free(name);
    }
    text_add(t, "}");
}

static void add_run(text *t, const inspected *in)
{
    const sonde_inspection_totals *run = &in->run;
    if (!run->bound) {
        add_why_not(t, in);
        return;
    }
    text_add(t, ",\n\"run\":{\"flops\":%llu,\"memory\":{\"weights\":%llu",
             (unsigned long long)run->flops, (unsigned long long)run->weight_bytes);
    add_number(t, "packed", run->packed_bytes);
    add_number(t, "activations", run->arena_bytes);
    add_number(t, "workspace", run->workspace_bytes);
    add_number(t, "inputs", run->input_bytes);
    add_number(t, "outputs", run->output_bytes);
    add_number(t, "peak", run->peak_bytes);
    text_add(t, ",\"data_dependent\":%s}}", run->data_dependent ? "true" : "false");
}

static void add_values(text *t, const char *key, const sonde_port_info *ports, size_t n)
{
    text_add(t, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        text_add(t, "%s{\"name\":", i ? "," : "");
        text_json(t, ports[i].name);
        add_text(t, "type", ports[i].type);
        add_text(t, "form", ports[i].form);
        text_add(t, ",\"constant\":%s}", ports[i].constant ? "true" : "false");
    }
    text_add(t, "]");
}

static void add_costs(text *t, const sonde_node_info *n)
{
    add_text(t, "domain", n->domain);
    add_text(t, "nodes", n->origins);
    add_text(t, "kernel", n->kernel);
    add_text(t, "arithmetic", n->arithmetic);
    add_text(t, "attributes", n->attributes);
    add_number(t, "flops", n->flops);
    add_number(t, "bytes", n->bytes);
}

/* `whole`: with all that is known; else what a listing of forms needs. */
static void add_nodes(text *t, const char *key, const sonde_inspection *look, bool whole)
{
    bool first = true;
    text_add(t, ",\n\"%s\":[", key);
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info n = SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, &n, NULL))
            continue;
        text_add(t, "%s\n{\"op\":", first ? "" : ",");
        first = false;
        text_json(t, n.op_type);
        add_text(t, "post_op", n.post_op);
        add_text(t, "name", n.name);
        text_add(t, ",\"depth\":%d", n.depth);
        if (whole)
            add_costs(t, &n);
        add_values(t, "inputs", n.inputs, n.input_count);
        add_values(t, "outputs", n.outputs, n.output_count);
        text_add(t, "}");
    }
    text_add(t, "]");
}

int inspect_json(const inspected *in, const inspect_options *o)
{
    text t = {.n = 0};
    add_model(&t, in);
    add_ports(&t, in, true);
    add_ports(&t, in, false);
    text_add(&t, ",\n\"parameters\":%llu", (unsigned long long)in->totals.parameters);
    add_number(&t, "parameter_bytes", in->totals.parameter_bytes);
    add_number(&t, "constant_bytes", in->totals.constant_bytes);
    add_number(&t, "file_bytes", in->totals.file_bytes);
    add_operators(&t, in);
    text_add(&t, ",\n\"optimized\":%s", o->setup.model.no_optimize ? "false" : "true");
    text_add(&t, ",\"precision\":\"%s\"", precision_name(&o->setup.model));
    add_run(&t, in);
    if (o->nodes)
        add_nodes(&t, "graph", in->shown, true);
    if (o->forms)
        add_nodes(&t, "forms", in->session, false);
    add_text(&t, "note", sonde_inspection_note(in->model));
    text_add(&t, "}\n");
    const int code = write_text(o->json, t.data, t.n);
    text_free(&t);
    return code;
}
