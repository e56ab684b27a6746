/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be measured: inputs from a description or from a model that runs up to the node, and
 * the one-node model made of it. Constants of a cut-out node are those of its model, not copies. */
#include <unistd.h>

#include "base/random.h"
#include "graph/graph_clone.h"
#include "op_profiler/op_case.h"
#include "ops/framework/attributes.h"
#include "ops/framework/op.h"
#include "sonde/experimental/inspect.h"

enum { MAX_PORTS = 256 };

/* ------------------------------------------------------------------ described */
/* Numbers that no operator stumbles over: floats in [-1, 1), bytes, ones for bool; indices, shapes
 * and the like stay 0. */
static void make_up(void *data, size_t bytes, sonde_dtype dtype, uint64_t seed)
{
    const size_t size = sn_dtype_bytes(dtype), n = size ? bytes / size : 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t z = sn_mix64(seed + i * SN_MIX64_STEP);
        const float x = (float)(int32_t)(uint32_t)z * 0x1p-31f;
        switch (dtype) {
        case SONDE_DTYPE_F32:
            ((float *)data)[i] = x;
            break;
        case SONDE_DTYPE_F64:
            ((double *)data)[i] = (double)x;
            break;
        case SONDE_DTYPE_F16:
            ((uint16_t *)data)[i] = sn_f32_to_f16(x);
            break;
        case SONDE_DTYPE_BF16:
            ((uint16_t *)data)[i] = sn_f32_to_bf16(x);
            break;
        case SONDE_DTYPE_U8:
        case SONDE_DTYPE_I8:
            ((uint8_t *)data)[i] = (uint8_t)z;
            break;
        case SONDE_DTYPE_BOOL:
            ((uint8_t *)data)[i] = 1;
            break;
        default:
            return;
        }
    }
}

/* Memory that is asked for is touched: more than there is would end in the system's hands. */
static sonde_status check_size(const sonde_op_input *in, size_t k, size_t *total, size_t *bytes,
                               sonde_error *err)
{
    if (in->rank > SN_MAX_RANK)
        return sn_fail(err, SONDE_LIMIT, "input %zu has %zu dimensions, at most %d are possible", k,
                       in->rank, SN_MAX_RANK);
    if (in->rank > 0)
        SN_REQUIRE(in->dims, err);
    for (size_t i = 0; i < in->rank; i++)
        if (in->dims[i] < 0)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "dimension %zu of input %zu is %lld", i, k,
                           (long long)in->dims[i]);
    if (!sn_dtype_valid(in->dtype) || in->dtype == SONDE_DTYPE_STRING)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "input %zu cannot be described with element type %d", k, (int)in->dtype);
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t most = pages > 0 && page > 0 ? (size_t)pages / 4 * 3 * (size_t)page : SIZE_MAX;
    if (!sn_tensor_bytes(in->dtype, in->dims, (int)in->rank, bytes) ||
        !sn_size_add(*total, *bytes, total) || *total > most)
        return sn_fail(err, SONDE_LIMIT,
                       "input %zu and the inputs before it need more than the limit of %zu MiB", k,
                       most >> 20);
    return SONDE_OK;
}

static sonde_status describe_input(sn_op_case *c, const sonde_op_spec *spec, size_t k,
                                   size_t *total, sonde_error *err)
{
    const sonde_op_input *in = &spec->inputs[k];
    sn_op_port *port = &c->in[k];
    if (in->dtype == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    size_t bytes = 0;
    SN_TRY(check_size(in, k, total, &bytes, err));
    port->name = sn_arena_printf(&c->arena, "input_%zu", k);
    if (!port->name)
        return sn_fail_memory(err, 16);
    SN_TRY(sonde_tensor_create(c->context, in->dtype, in->dims, in->rank, in->data, bytes,
                               &port->value, err));
    if (!in->data)
        make_up(port->value->slot.t.data, bytes, in->dtype, sn_mix64(spec->seed + k + 1));
    if (in->constant)
        port->data = &port->value->slot.t;
    return SONDE_OK;
}

/* The newest version of the operator; 0: there is none. */
static int newest(const char *domain, const char *op_type)
{
    sonde_operator_info op = SONDE_INIT(sonde_operator_info);
    int found = 0;
    for (size_t i = 0; sonde_operator_get(i, &op, NULL) == SONDE_OK; i++)
        if (strcmp(op.name, op_type) == 0 && strcmp(op.domain, domain) == 0 && op.since > found)
            found = op.since;
    return found;
}

static sonde_status describe(sn_op_case *c, const sonde_op_spec *spec, sonde_error *err)
{
    SN_REQUIRE(spec->op_type, err);
    if (spec->input_count > 0)
        SN_REQUIRE(spec->inputs, err);
    c->op_type = sn_arena_strdup(&c->arena, spec->op_type);
    c->domain = sn_arena_strdup(&c->arena, spec->domain ? spec->domain : "");
    c->attributes = sn_arena_strdup(&c->arena, spec->attributes ? spec->attributes : "");
    c->n_in = spec->input_count;
    c->n_out = spec->output_count ? spec->output_count : 1;
    if (!c->op_type || !c->domain || !c->attributes)
        return sn_fail_memory(err, strlen(spec->op_type));
    if (strcmp(c->domain, "ai.onnx") == 0)
        c->domain = "";
    c->name = c->op_type;
    const int version = newest(c->domain, c->op_type);
    if (!version)
        return sn_fail(
            err, SONDE_NOT_FOUND,
            "unknown operator '%.100s'%s%.100s%s; 'sonde inspect --operators' lists them",
            c->op_type, *c->domain ? " in the domain '" : "", c->domain, *c->domain ? "'" : "");
    const int32_t last = sn_domain_newest(c->domain);
    if (spec->opset < 0 || spec->opset > (last ? last : INT32_MAX))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "opset %lld of %.100s is unknown; use 1 to %d",
                       (long long)spec->opset, *c->domain ? c->domain : "ai.onnx",
                       last ? last : INT32_MAX);
    c->opset = spec->opset ? spec->opset : version;
    if (c->n_in > MAX_PORTS || c->n_out > MAX_PORTS)
        return sn_fail(err, SONDE_LIMIT, "at most %d inputs and outputs are supported", MAX_PORTS);
    c->in = SN_NEW_N(&c->arena, sn_op_port, c->n_in + 1);
    c->wanted = SN_NEW_N(&c->arena, bool, c->n_out);
    if (!c->in || !c->wanted)
        return sn_fail_memory(err, c->n_in * sizeof *c->in);
    memset(c->wanted, true, c->n_out);
    size_t total = 0;
    for (size_t k = 0; k < c->n_in; k++)
        SN_TRY(describe_input(c, spec, k, &total, err));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ cut out of a model */
static sonde_status find_node(sn_op_case *c, const sonde_op_spec *spec, sonde_error *err)
{
    const sn_graph *g = spec->model->core->graph;
    SN_REQUIRE(spec->node, err);
    const sn_node *found = NULL, *outer = NULL;
    for (const sn_node *n = g->first; n && !found; n = n->next) {
        if (strcmp(n->name, spec->node) == 0 && *n->name)
            found = n;
        for (uint32_t k = 0; !outer && sn_node_body(n, k); k++)
            for (const sn_node *b = sn_node_body(n, k)->first; b && !outer; b = b->next)
                outer = strcmp(b->name, spec->node) == 0 && *b->name ? n : NULL;
    }
    if (!found && outer)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "node '%.200s' is inside a control-flow body of '%.200s' (%s) and cannot be "
                       "measured alone",
                       spec->node, outer->name, outer->op_type);
    if (!found)
        return sn_fail(err, SONDE_NOT_FOUND, "the model has no node named '%.200s'", spec->node);
    if (sn_node_body(found, 0))
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "node '%.200s' (%s) is a control-flow operator and cannot be measured "
                       "alone; measure the operators in its body",
                       found->name, found->op_type);
    c->from = found;
    return SONDE_OK;
}

static sonde_value *given(const sonde_op_spec *spec, const sonde_session *s, const char *name)
{
    for (size_t i = 0; i < spec->value_count; i++) {
        const char *own = spec->input_names ? spec->input_names[i]
                          : i < s->n_inputs ? s->input_names[i]
                                            : NULL;
        if (own && strcmp(own, name) == 0)
            return spec->values[i];
    }
    return NULL;
}

/* Of a sequence or an optional: shapes of elements are left open. NULL: out of memory, or unknown.
 */
static const sn_type *type_of(const sn_slot *slot, sn_arena *arena)
{
    sn_type *t = SN_NEW(arena, sn_type);
    if (!t)
        return NULL;
    t->kind = slot->kind;
    if (slot->kind == SN_KIND_TENSOR) {
        t->dtype = slot->t.dtype;
        t->rank = -1;
        return t;
    }
    if ((slot->kind != SN_KIND_SEQUENCE && slot->kind != SN_KIND_OPTIONAL) || !slot->list)
        return NULL;
    if (slot->list->n) {
        t->elem = type_of(&slot->list->items[0], arena);
    } else if (slot->list->elem_dtype != SONDE_DTYPE_UNDEFINED) {
        const sn_slot empty = {.kind = SN_KIND_TENSOR, .t = {.dtype = slot->list->elem_dtype}};
        t->elem = type_of(&empty, arena);
    }
    return t->elem ? t : NULL;
}

/* A value of the model as it is when the node is reached: an input, or computed now. */
static sonde_status fetch(sn_op_case *c, const sonde_op_spec *spec, sonde_session *s,
                          sn_op_port *port, const sn_value *v, sonde_error *err)
{
    sonde_value *fed = given(spec, s, v->name);
    if (fed) {
        port->value = sonde_value_retain(fed);
    } else if (v->fact.data) { /* an input's default */
        port->data = v->fact.data;
    } else {
        SN_TRY(sonde_session_run(s, NULL, spec->input_names, spec->values, spec->value_count,
                                 &v->name, &port->value, 1, err));
    }
    if (port->value && port->value->slot.kind != SN_KIND_TENSOR) {
        port->type = type_of(&port->value->slot, &c->arena);
        if (!port->type)
            return sn_fail(err, SONDE_UNSUPPORTED, "the type of value '%.200s' is unknown",
                           v->name);
    }
    return SONDE_OK;
}

static sonde_status cut_out(sn_op_case *c, const sonde_op_spec *spec, sonde_error *err)
{
    if (spec->value_count > 0)
        SN_REQUIRE(spec->values, err);
    SN_TRY(find_node(c, spec, err));
    const sn_node *node = c->from;
    c->source = spec->model->core;
    c->op_type = node->op_type;
    c->domain = node->domain;
    c->name = node->name;
    c->opset = node->opset;
    c->attributes = "";
    c->n_in = node->n_in;
    c->n_out = node->n_out;
    c->in = SN_NEW_N(&c->arena, sn_op_port, c->n_in + 1);
    c->wanted = SN_NEW_N(&c->arena, bool, c->n_out + 1);
    if (!c->in || !c->wanted)
        return sn_fail_memory(err, c->n_in * sizeof *c->in);
    for (size_t o = 0; o < c->n_out; o++)
        c->wanted[o] = node->out[o] != NULL;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.no_optimize = o.no_prepack = 1;
    sonde_session *s = NULL;
    SN_TRY(sonde_session_create(spec->model, &o, &s, err));
    sonde_status st = SONDE_OK;
    for (uint32_t k = 0; k < node->n_in && st == SONDE_OK; k++) {
        const sn_value *v = node->in[k].value;
        if (!v)
            continue;
        c->in[k].name = v->name;
        if (sn_value_is_const(v))
            c->in[k].data = v->fact.data;
        else
            st = fetch(c, spec, s, &c->in[k], v, err);
    }
    sonde_session_release(s);
    return st;
}

sonde_status sn_op_case_make(sn_op_case *c, sonde_context *context, const sonde_op_spec *spec,
                             sonde_error *err)
{
    *c = (sn_op_case){.context = context};
    sn_arena_init(&c->arena, &context->alloc);
    return spec->model ? cut_out(c, spec, err) : describe(c, spec, err);
}

void sn_op_case_free(sn_op_case *c)
{
    for (size_t k = 0; k < c->n_in && c->in; k++)
        sonde_value_release(c->in[k].value);
    sn_arena_free(&c->arena);
}

/* ------------------------------------------------------------------ the one-node model */
static sonde_status add_port(const sn_op_port *port, const sn_op_case *c, size_t k, sn_model *m,
                             sn_node *node, sonde_error *err)
{
    sn_graph *g = m->graph;
    if (!port->name)
        return SONDE_OK;
    for (size_t i = 0; i < k; i++) /* x * x: one value, read twice */
        if (c->in[i].name && strcmp(c->in[i].name, port->name) == 0) {
            sn_node_set_input(node, (uint32_t)k, node->in[i].value);
            return SONDE_OK;
        }
    sn_value *v = NULL;
    if (port->data) {
        SN_TRY(sn_graph_add_constant(g, port->name, port->data, &v, err));
        v->is_initializer = true;
    } else {
        SN_TRY(sn_graph_add_value(g, port->name, &v, err));
        const sn_tensor *t = &port->value->slot.t;
        const sn_type type = {
            .kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
        SN_TRY(sn_type_copy(&v->fact.type, port->type ? port->type : &type, &m->arena, err));
        SN_TRY(sn_graph_add_input(g, v, err));
    }
    sn_node_set_input(node, (uint32_t)k, v);
    return SONDE_OK;
}

static sonde_status import_opsets(const sn_op_case *c, sn_model *m, sonde_error *err)
{
    bool fine = true;
    if (c->source) {
        m->ir_version = c->source->ir_version;
        for (size_t i = 0; i < c->source->opsets.n && fine; i++)
            fine = sn_vec_push(&m->opsets, m->ctx->alloc, c->source->opsets.data[i]);
    } else {
        const sn_opset set = {.domain = c->domain, .version = c->opset};
        m->ir_version = 8;
        fine = sn_vec_push(&m->opsets, m->ctx->alloc, set);
    }
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(sn_opset));
}

static sonde_status fill_model(const sn_op_case *c, sn_model *m, sonde_error *err)
{
    sn_graph *g = m->graph;
    sn_node *node = NULL;
    SN_TRY(import_opsets(c, m, err));
    SN_TRY(sn_graph_add_node(g, NULL, c->domain, c->op_type, c->name, (uint32_t)c->n_in,
                             (uint32_t)c->n_out, &node, err));
    node->n_formal_in = (uint32_t)c->n_in;
    for (size_t k = 0; k < c->n_in; k++)
        SN_TRY(add_port(&c->in[k], c, k, m, node, err));
    if (c->from) {
        const sn_cloner cloner = {
            .arena = &m->arena, .alloc = m->ctx->alloc, .err = err, .forget_symbols = true};
        SN_TRY(sn_clone_attrs(&cloner, g, node, c->from));
    } else {
        SN_TRY(sn_op_parse_attributes(g, node, c->attributes, err));
    }
    for (size_t o = 0; o < c->n_out; o++) {
        sn_value *v = NULL;
        if (!c->wanted[o])
            continue;
        const char *name = sn_arena_printf(&m->arena, "sonde.output_%zu", o);
        if (!name)
            return sn_fail_memory(err, 32);
        SN_TRY(sn_graph_add_value(g, name, &v, err));
        sn_node_set_output(node, (uint32_t)o, v);
        SN_TRY(sn_graph_add_output(g, v, err));
    }
    SN_TRY(sn_model_finish(m, err));
    node->opset = (int32_t)c->opset; /* a node that came out of a function has its own */
    return SONDE_OK;
}

sonde_status sn_op_case_model(const sn_op_case *c, sonde_context *context, sonde_model **model,
                              sonde_error *err)
{
    sn_model *m = NULL;
    SN_TRY(sn_model_new(&m, &context->core, err));
    m->graph_name = c->op_type;
    const sonde_status st = fill_model(c, m, err);
    if (st != SONDE_OK) {
        sn_model_unref(m);
        return st;
    }
    return sn_api_model(context, m, c->op_type, model, err);
}

const char *sn_op_case_text(const sn_op_case *c, sn_arena *arena)
{
    const char *all = "";
    for (size_t k = 0; k < c->n_in && all; k++) {
        const sn_op_port *port = &c->in[k];
        const sn_tensor *t = port->data ? port->data : port->value ? &port->value->slot.t : NULL;
        char text[256] = "_";
        sn_type type = {.kind = SN_KIND_NONE};
        if (t)
            type = (sn_type){
                .kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
        if (port->type)
            type = *port->type;
        if (port->name)
            sn_type_text(&type, NULL, text, sizeof text);
        all = sn_arena_printf(arena, "%s%s%s%s", all, k ? ", " : "", port->data ? "const " : "",
                              text);
    }
    return all;
}
