/* SPDX-License-Identifier: Apache-2.0 */
/* Inspections: a snapshot of a graph as plain rows, made once, so that looking needs no lock and
 * survives the session. The graph itself is kept for saving. */
#include "api/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model_readers/model_readers.h"
#include "ops/framework/attributes.h"
#include "plan/binding.h"

typedef struct op_count {
    const char *name;
    uint64_t count;
} op_count;

struct sonde_inspection {
    sonde_context *context;
    sonde_model *model;
    sn_program *program;    /* of a session; else NULL */
    sonde_session *session; /* that one, for a program with all constants; else NULL */
    sn_arena arena;
    sn_graph *own;           /* a typed copy of the model's graph; else NULL */
    const sn_graph *graph;   /* what is shown */
    const sn_binding *bound; /* while rows are made */
    SN_VEC(sonde_node_info) nodes;
    SN_VEC(op_count) operators;
    sonde_type_info *inputs, *outputs;
    size_t n_inputs, n_outputs;
    sonde_inspection_totals totals;
    const char *note;
};

static const sn_fact *fact_of(const sonde_inspection *s, const sn_graph *g, const sn_value *v)
{
    return s->bound && g == s->graph ? &s->bound->facts[v->id] : &v->fact;
}

/* ------------------------------------------------------------------ inputs and outputs */
/* Required inputs first, then those with a default, as a session lists them. */
static sonde_status describe_ports(sonde_inspection *s, sonde_error *err)
{
    const sn_graph *g = s->graph;
    s->inputs = SN_NEW_N(&s->arena, sonde_type_info, g->inputs.n + 1);
    s->outputs = SN_NEW_N(&s->arena, sonde_type_info, g->outputs.n + 1);
    if (!s->inputs || !s->outputs)
        return sn_fail_memory(err, (g->inputs.n + g->outputs.n) * sizeof *s->inputs);
    for (int optional = 0; optional < 2; optional++)
        for (size_t i = 0; i < g->inputs.n; i++) {
            const sn_value *v = g->inputs.data[i];
            sonde_type_info *info = &s->inputs[s->n_inputs];
            if (v->is_initializer != (optional == 1))
                continue;
            SN_TRY(sn_api_describe(&s->arena, g, v->name, &fact_of(s, g, v)->type, info, err));
            info->optional_input = optional;
            s->n_inputs++;
        }
    for (; s->n_outputs < g->outputs.n; s->n_outputs++) {
        const sn_value *v = g->outputs.data[s->n_outputs];
        SN_TRY(sn_api_describe(&s->arena, g, v->name, &fact_of(s, g, v)->type,
                               &s->outputs[s->n_outputs], err));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ rows */
static uint64_t tensor_bytes(const sn_type *t)
{
    uint64_t bytes = sonde_dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (sn_dim_known(t->dims[i]) && __builtin_mul_overflow(bytes, (uint64_t)t->dims[i], &bytes))
            return UINT64_MAX;
    return bytes;
}

static bool port(sonde_inspection *s, const sn_graph *g, const sn_value *v, sonde_port_info *row)
{
    *row = (sonde_port_info){.name = "", .type = "", .form = ""};
    if (!v)
        return true;
    const sn_fact *fact = fact_of(s, g, v);
    const sn_type *t = &fact->type;
    char text[512] = "", form[48] = "";
    const sn_graph *root = s->graph;
    if (t->kind != SN_KIND_NONE)
        sn_type_text(t, root->symbols.data, text, sizeof text);
    row->name = sn_arena_strdup(&s->arena, v->name);
    row->type = sn_arena_strdup(&s->arena, text);
    row->form = sn_arena_strdup(&s->arena, sn_form_text(fact->form, form));
    row->constant = sn_value_is_const(v);
    if (t->kind == SN_KIND_TENSOR) {
        row->dtype = t->dtype;
        row->block = (int)sn_fact_block(fact);
        row->bytes = tensor_bytes(t);
    }
    return row->name && row->type && row->form;
}

/* Names of the nodes a fused one stands for. */
static const char *origin_names(sonde_inspection *s, const sn_graph *g, const sn_node *n)
{
    size_t bytes = 1;
    for (uint32_t i = 0; g->origins && i < n->n_origins; i++)
        if (n->origins[i] < g->origins->list.n)
            bytes += strlen(g->origins->list.data[n->origins[i]].name) + 2;
    char *text = sn_arena_alloc(&s->arena, bytes, 1), *end = text;
    if (!text)
        return NULL;
    for (uint32_t i = 0; g->origins && i < n->n_origins; i++)
        if (n->origins[i] < g->origins->list.n)
            end += snprintf(end, bytes - (size_t)(end - text), "%s%s", end > text ? ", " : "",
                            g->origins->list.data[n->origins[i]].name);
    *end = 0;
    return text;
}

static sonde_status node_row(sonde_inspection *s, const sn_graph *g, const sn_node *n, int depth,
                             sonde_error *err)
{
    sonde_port_info *in = SN_NEW_N(&s->arena, sonde_port_info, n->n_in + 1);
    sonde_port_info *out = SN_NEW_N(&s->arena, sonde_port_info, n->n_out + 1);
    bool fine = in && out;
    for (uint32_t i = 0; fine && i < n->n_in; i++)
        fine = port(s, g, n->in[i].value, &in[i]);
    for (uint32_t i = 0; fine && i < n->n_out; i++)
        fine = port(s, g, n->out[i], &out[i]);
    const sonde_node_info row = {.struct_size = sizeof row,
                                 .name = sn_arena_strdup(&s->arena, n->name),
                                 .op_type = sn_arena_strdup(&s->arena, n->shown_type),
                                 .domain = sn_arena_strdup(&s->arena, n->domain ? n->domain : ""),
                                 .post_op =
                                     sn_arena_strdup(&s->arena, n->post_op ? n->post_op : ""),
                                 .origins = origin_names(s, g, n),
                                 .attributes = sn_node_attributes_text(n, &s->arena),
                                 .kernel = "",
                                 .arithmetic = "",
                                 .inputs = in,
                                 .outputs = out,
                                 .input_count = n->n_in,
                                 .output_count = n->n_out,
                                 .depth = depth};
    if (!fine || !row.name || !row.op_type || !row.domain || !row.post_op || !row.origins ||
        !row.attributes || !sn_vec_push(&s->nodes, &s->context->alloc, row))
        return sn_fail_memory(err, sizeof row);
    return SONDE_OK;
}

static sonde_status graph_rows(sonde_inspection *s, const sn_graph *g, int depth, sonde_error *err)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        SN_TRY(node_row(s, g, n, depth, err));
        for (uint32_t k = 0; sn_node_body(n, k); k++)
            SN_TRY(graph_rows(s, sn_node_body(n, k), depth + 1, err));
    }
    return SONDE_OK;
}

/* Steps stand in the order of their nodes: what the binding knows of each. */
static sonde_status bound_rows(sonde_inspection *s, const sn_binding *b, sonde_error *err)
{
    size_t row = 0;
    uint32_t i = 0;
    for (const sn_node *node = s->graph->first; node && i < b->n_steps; node = node->next, row++) {
        while (row < s->nodes.n && s->nodes.data[row].depth > 0)
            row++;
        if (row == s->nodes.n)
            break;
        if (b->steps[i].node != node)
            continue;
        sonde_node_info *n = &s->nodes.data[row];
        n->flops = b->info[i].flops;
        n->bytes = b->info[i].bytes;
        n->arithmetic = sn_arithmetic_name(b->info[i].arithmetic);
        n->kernel = sn_arena_strdup(&s->arena, b->info[i].kernel ? b->info[i].kernel : "");
        if (!n->kernel)
            return sn_fail_memory(err, 0);
        s->totals.flops += n->flops;
        i++;
    }
    s->totals.bound = 1;
    return sn_inspect_memory(&s->totals, b, &s->context->alloc, err);
}

/* ------------------------------------------------------------------ totals */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const op_count *)a)->name, ((const op_count *)b)->name);
}

static int by_count(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->name, y->name);
}

static sonde_status count_operators(sonde_inspection *s, sonde_error *err)
{
    sn_allocator *alloc = &s->context->alloc;
    if (!sn_vec_reserve(&s->operators, alloc, s->nodes.n))
        return sn_fail_memory(err, s->nodes.n * sizeof(op_count));
    op_count *rows = s->operators.data;
    for (size_t i = 0; i < s->nodes.n; i++)
        rows[i] = (op_count){.name = s->nodes.data[i].op_type, .count = 1};
    if (s->nodes.n > 1)
        qsort(rows, s->nodes.n, sizeof *rows, by_name);
    size_t n = 0;
    for (size_t i = 0; i < s->nodes.n; i++)
        if (n && strcmp(rows[n - 1].name, rows[i].name) == 0)
            rows[n - 1].count++;
        else
            rows[n++] = rows[i];
    s->operators.n = n;
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_count);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ life */
static sonde_status inspection_new(sonde_model *model, sonde_inspection **out, sonde_error *err)
{
    sonde_context *c = model->context;
    sonde_inspection *s = sn_alloc_zero(&c->alloc, sizeof *s);
    if (!s)
        return sn_fail_memory(err, sizeof *s);
    s->context = sn_api_context_ref(c);
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    s->model = model;
    sn_arena_init(&s->arena, &c->alloc);
    s->note = "";
    s->totals.struct_size = sizeof s->totals;
    s->totals.file_bytes = model->core->file_bytes;
    *out = s;
    return SONDE_OK;
}

void sonde_inspection_release(sonde_inspection *s)
{
    if (!s)
        return;
    sonde_context *c = s->context;
    if (s->own)
        sn_graph_free(s->own);
    if (s->program)
        sn_program_unref(s->program);
    sonde_session_release(s->session);
    sn_vec_free(&s->nodes, &c->alloc);
    sn_vec_free(&s->operators, &c->alloc);
    sn_arena_free(&s->arena);
    sonde_model_release(s->model);
    sn_free(&c->alloc, s, sizeof *s);
    sonde_context_release(c);
}

/* Rows and totals of s->graph; on failure `s` is gone. */
static sonde_status finish(sonde_inspection *s, sonde_status st, sonde_inspection **out,
                           sonde_error *err)
{
    if (st == SONDE_OK)
        st = describe_ports(s, err);
    if (st == SONDE_OK)
        st = graph_rows(s, s->graph, 0, err);
    if (st == SONDE_OK && s->bound)
        st = bound_rows(s, s->bound, err);
    if (st == SONDE_OK)
        st = count_operators(s, err);
    if (st == SONDE_OK) /* passes fold constants: parameters are those of the model */
        st = sn_inspect_parameters(&s->totals, s->model->core->graph, &s->context->alloc, err);
    if (st != SONDE_OK) {
        sonde_inspection_release(s);
        return st;
    }
    s->totals.nodes = s->nodes.n;
    *out = s;
    return SONDE_OK;
}

sonde_status sonde_inspect_model(sonde_model *model, sonde_inspection **inspection,
                                 sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    *inspection = NULL;
    SN_REQUIRE(model, err);
    sonde_inspection *s = NULL;
    SN_TRY(inspection_new(model, &s, err));
    sonde_status st = sn_graph_clone(model->core->graph, &s->arena, &s->own, err);
    if (st == SONDE_OK) {
        s->graph = s->own;
        sonde_error why = {.status = SONDE_OK};
        sonde_status typed = sn_ops_resolve(s->own, &why);
        if (typed == SONDE_OK)
            typed = sn_ops_check_attributes(s->own, NULL, &why);
        if (typed == SONDE_OK)
            typed = sn_ops_infer(s->own, &why);
        if (typed == SONDE_OUT_OF_MEMORY)
            st = sn_fail(err, typed, "%s", why.message);
        else if (typed != SONDE_OK && !(s->note = sn_arena_strdup(&s->arena, why.message)))
            st = sn_fail_memory(err, sizeof why.message);
    }
    return finish(s, st, inspection, err);
}

/* The program's inputs from those given by name; what is missing must have a default. */
sonde_status sn_api_bind(sonde_session *session, const char *const *names,
                         sonde_value *const *inputs, size_t count, sn_binding **bound,
                         sonde_error *err)
{
    static const sn_slot none = {.kind = SN_KIND_NONE};
    sonde_context *c = session->model->context;
    const sn_program *p = sn_session_program(session->core);
    const size_t n = p->graph->inputs.n;
    const sn_slot **in = sn_alloc(&c->alloc, (n + 1) * sizeof *in);
    if (!in)
        return sn_fail_memory(err, n * sizeof *in);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < n && st == SONDE_OK; i++) {
        const sn_value *v = p->graph->inputs.data[i];
        in[i] = NULL;
        for (size_t k = 0; k < count && !in[i]; k++)
            if (inputs[k] && strcmp(names ? names[k] : session->input_names[k], v->name) == 0)
                in[i] = &inputs[k]->slot;
        if (!in[i] && !v->is_initializer)
            st = sn_fail(err, SONDE_INVALID_ARGUMENT, "input '%s' is missing", v->name);
        if (!in[i])
            in[i] = &none;
    }
    if (st == SONDE_OK) {
        sn_records_enter(&c->records);
        st = sn_session_bind(session->core, in, bound, err);
        sn_records_leave(&c->records);
    }
    sn_free(&c->alloc, in, (n + 1) * sizeof *in);
    return st;
}

sonde_status sonde_inspect_session(sonde_session *session, const char *const *input_names,
                                   sonde_value *const *inputs, size_t input_count,
                                   sonde_inspection **inspection, sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    *inspection = NULL;
    SN_REQUIRE(session, err);
    if (input_count > 0)
        SN_REQUIRE(inputs, err);
    if (!input_names && input_count > session->n_inputs)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%zu inputs given, the model has %zu",
                       input_count, session->n_inputs);
    sonde_inspection *s = NULL;
    SN_TRY(inspection_new(session->model, &s, err));
    sn_binding *bound = NULL;
    sonde_status st = SONDE_OK;
    if (input_count > 0 || session->n_inputs == 0)
        st = sn_api_bind(session, input_names, inputs, input_count, &bound, err);
    s->program = sn_program_ref(bound ? bound->program : sn_session_program(session->core));
    s->graph = s->program->graph;
    s->bound = bound;
    s->session = session;
    atomic_fetch_add_explicit(&session->refs, 1, memory_order_relaxed);
    sonde_inspection *made = NULL;
    st = finish(s, st, &made, err);
    if (made)
        made->bound = NULL;
    if (bound)
        sn_binding_unref(bound);
    *inspection = made;
    return st;
}

/* ------------------------------------------------------------------ reading */
const char *sonde_inspection_note(const sonde_inspection *s)
{
    return s ? s->note : "";
}

static sonde_status port_info(const sonde_type_info *all, size_t n, size_t index,
                              sonde_type_info *info, sonde_error *err)
{
    if (index >= n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu, none with number %zu", n, index);
    return sn_api_copy_out(info, &all[index], sizeof *info, err);
}

sonde_status sonde_inspection_input(const sonde_inspection *inspection, size_t index,
                                    sonde_type_info *info, sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    SN_REQUIRE(info, err);
    return port_info(inspection->inputs, inspection->n_inputs, index, info, err);
}

sonde_status sonde_inspection_output(const sonde_inspection *inspection, size_t index,
                                     sonde_type_info *info, sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    SN_REQUIRE(info, err);
    return port_info(inspection->outputs, inspection->n_outputs, index, info, err);
}

sonde_status sonde_inspection_totals_get(const sonde_inspection *inspection,
                                         sonde_inspection_totals *totals, sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    SN_REQUIRE(totals, err);
    return sn_api_copy_out(totals, &inspection->totals, sizeof *totals, err);
}

size_t sonde_inspection_node_count(const sonde_inspection *s)
{
    return s ? s->nodes.n : 0;
}

sonde_status sonde_inspection_node(const sonde_inspection *inspection, size_t index,
                                   sonde_node_info *node, sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    SN_REQUIRE(node, err);
    if (index >= inspection->nodes.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "node %zu of a graph with %zu", index,
                       inspection->nodes.n);
    return sn_api_copy_out(node, &inspection->nodes.data[index], sizeof *node, err);
}

const char *sonde_inspection_operator(const sonde_inspection *s, size_t index, uint64_t *count)
{
    if (!s || index >= s->operators.n)
        return NULL;
    if (count)
        *count = s->operators.data[index].count;
    return s->operators.data[index].name;
}

const char *sonde_inspection_opset(const sonde_inspection *s, size_t index, int64_t *version)
{
    if (!s || index >= s->model->core->opsets.n)
        return NULL;
    if (version)
        *version = s->model->core->opsets.data[index].version;
    return s->model->core->opsets.data[index].domain;
}

/* ------------------------------------------------------------------ saving */
typedef struct text_buffer {
    SN_VEC(char) text;
    sn_allocator *alloc;
    bool failed;
} text_buffer;

static void append(void *user, const char *text, size_t n)
{
    text_buffer *b = user;
    b->failed = b->failed || !sn_vec_append(&b->text, b->alloc, text, n);
}

static sonde_status save_text(const sonde_inspection *s, const char *path,
                              void (*print)(const sn_graph *, sn_write_fn, void *),
                              sonde_error *err)
{
    text_buffer b = {.alloc = &s->context->alloc};
    print(s->graph, append, &b);
    const sonde_status st =
        b.failed ? sn_fail_memory(err, b.text.n) : sn_file_write(path, b.text.data, b.text.n, err);
    sn_vec_free(&b.text, b.alloc);
    return st;
}

static bool has_suffix(const char *path, const char *suffix)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, suffix) == 0;
}

sonde_status sonde_inspection_can_save(const char *path, sonde_error *err)
{
    SN_REQUIRE(path, err);
    if (has_suffix(path, ".dot") || has_suffix(path, ".txt") || sn_model_can_save_as(path))
        return SONDE_OK;
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "cannot save a graph as '%s': the suffix must be .dot, .txt or .onnx", path);
}

sonde_status sn_api_save(const sonde_model *model, const sn_graph *graph, const char *path,
                         const sonde_save_options *options, const sn_map *sparse,
                         const sonde_model *source, sonde_error *err)
{
    sonde_save_options o;
    SN_OPTIONS(o, options, err);
    const sn_model_save_options save = {.external = o.external_data || o.external_name,
                                        .external_name = o.external_name,
                                        .inline_bytes = o.inline_bytes,
                                        .sparse = sparse,
                                        .source = source ? source->core : NULL};
    return sn_model_save_file(model->core, graph, path, &save, err);
}

sonde_status sonde_inspection_save(const sonde_inspection *inspection, const char *path,
                                   sonde_error *err)
{
    return sonde_inspection_save_with(inspection, path, NULL, err);
}

sonde_status sonde_inspection_save_with(const sonde_inspection *inspection, const char *path,
                                        const sonde_save_options *options, sonde_error *err)
{
    SN_REQUIRE(inspection, err);
    SN_TRY(sonde_inspection_can_save(path, err));
    if (has_suffix(path, ".dot"))
        return save_text(inspection, path, sn_graph_print_dot, err);
    if (has_suffix(path, ".txt"))
        return save_text(inspection, path, sn_graph_print, err);
    sn_program *whole = NULL;
    if (inspection->program && !inspection->program->plan_only)
        SN_TRY(sn_session_plan(inspection->session->core, &whole, err));
    const sonde_status st = sn_api_save(inspection->model, whole ? whole->graph : inspection->graph,
                                        path, options, NULL, NULL, err);
    if (whole)
        sn_program_unref(whole);
    return st;
}

sonde_status sonde_model_save(const sonde_model *model, const char *path, sonde_error *err)
{
    return sonde_model_save_with(model, path, NULL, err);
}

sonde_status sonde_model_save_with(const sonde_model *model, const char *path,
                                   const sonde_save_options *options, sonde_error *err)
{
    SN_REQUIRE(model, err);
    SN_REQUIRE(path, err);
    return sn_api_save(model, model->core->graph, path, options, NULL, NULL, err);
}

const char *sonde_model_name(const sonde_model *model)
{
    return model ? model->name : "";
}
