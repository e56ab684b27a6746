/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as a ModelProto. Captures, which the graph spells out as inputs of bodies, and constants
 * that bodies share with the graphs around them go back to being plain names of the outer scope:
 * the name of each value as written is decided once, in the counting pass, such that no body hides
 * a name of a graph around it. */
#include <stdio.h>
#include <string.h>

#include "onnx/emit.h"

/* The least IR version written: 4 lets initializers be no inputs, 8 has optional types. */
#define LEAST_IR_VERSION 8

/* A constant, written once by the outermost graph that has it. */
typedef struct constant {
    const sn_value *owner;
    const char *name;
    bool needed; /* a body reads it */
} constant;

/* One graph being written: the names of its values by id, and of its outputs in order. */
typedef struct scope {
    const char **names;
    constant **constants; /* by value id, NULL for values that are none */
    const char **outputs; /* differs from the value's name where an Identity must stand between */
} scope;

typedef struct writer {
    const sn_model *m;
    const sn_graph *root;
    const sn_onnx_sink *sink;
    sn_emitter e;
    sn_emitter data;      /* the contents of initializers outside the model */
    bool external;        /* large ones are */
    sn_arena arena;       /* names, scopes, imports */
    sn_map used;          /* names of this graph and the ones around it; a NULL value: free again */
    sn_map constants;     /* contents, by address ► constant, where visible */
    SN_VEC(scope) scopes; /* in the order graphs begin */
    size_t next_scope;
    SN_VEC(sn_opset) imports;
    uint32_t fresh; /* of the last name made up */
    int64_t ir_version;
    sonde_status status; /* first failure besides the emitter's own */
    sonde_error *err;
} writer;

static void fail(writer *w, sonde_status st)
{
    if (w->status == SONDE_OK)
        w->status = st;
}

static void no_memory(writer *w)
{
    fail(w, sn_fail_memory(w->err, 64));
}

/* ---- names ---- */

/* `base` itself when it is free, else a variation; "" on failure. */
static const char *claim(writer *w, const char *base)
{
    const char *name = base && base[0] ? base : NULL;
    while (!name || sn_map_get(&w->used, name)) {
        name = sn_arena_printf(&w->arena, "%s_%u", base && base[0] ? base : "value", ++w->fresh);
        if (!name) {
            no_memory(w);
            return "";
        }
    }
    if (!sn_map_put(&w->used, name, w, NULL))
        no_memory(w);
    return name;
}

static bool is_constant(const sn_value *v)
{
    return v->fact.data && !v->producer;
}

/* A constant of a graph around this one, if v is one. An input with a default is never shared: it
 * may be overridden. */
static void share_constant(writer *w, const sn_value *v, scope *s)
{
    constant *c = sn_map_get_address(&w->constants, v->fact.data);
    if (!c || v->is_input)
        return;
    c->needed = true;
    s->names[v->id] = c->name;
    s->constants[v->id] = c;
}

static void enter_constant(writer *w, const sn_value *v, scope *s)
{
    constant *c = SN_NEW(&w->arena, constant);
    if (!c) {
        no_memory(w);
        return;
    }
    *c = (constant){.owner = v, .name = s->names[v->id]};
    s->constants[v->id] = c;
    if (!v->is_input && !sn_map_put_address(&w->constants, v->fact.data, c, NULL))
        no_memory(w);
}

/* Names of captures come from outside; those of the rest are claimed, made-up ones last. */
static void name_values(writer *w, const sn_graph *g, const scope *outer, const sn_node *owner,
                        scope *s)
{
    for (size_t k = g->n_formal_inputs; owner && k < g->inputs.n; k++) {
        uint32_t in = g->capture_map.data[k - g->n_formal_inputs];
        s->names[g->inputs.data[k]->id] = outer->names[owner->in[in].value->id];
    }
    for (size_t i = 0; owner && i < g->values.n; i++)
        if (is_constant(g->values.data[i]))
            share_constant(w, g->values.data[i], s);
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->name && v->name[0] && !s->names[i])
            s->names[i] = claim(w, v->name);
    }
    for (size_t i = 0; i < g->values.n; i++)
        if (!s->names[i])
            s->names[i] = claim(w, NULL);
    for (size_t i = 0; i < g->values.n; i++)
        if (is_constant(g->values.data[i]) && !s->constants[i])
            enter_constant(w, g->values.data[i], s);
}

/* Written by a graph around this one. */
static bool is_foreign(const sn_value *v, const scope *s)
{
    return s->constants[v->id] && s->constants[v->id]->owner != v;
}

/* An output that comes from outside, or that another output names already, needs a value of its
 * own. */
static void name_outputs(writer *w, const sn_graph *g, scope *s)
{
    uint8_t *taken = SN_NEW_N(&w->arena, uint8_t, g->values.n + 1);
    if (!taken) {
        no_memory(w);
        return;
    }
    for (size_t k = g->n_formal_inputs; k < g->inputs.n; k++)
        taken[g->inputs.data[k]->id] = 1;
    for (size_t k = 0; k < g->outputs.n; k++) {
        const sn_value *v = g->outputs.data[k];
        bool own = !taken[v->id] && !is_foreign(v, s);
        s->outputs[k] = !own ? claim(w, s->names[v->id]) : s->names[v->id];
        taken[v->id] = 1;
    }
}

/* The names of g: made in the counting pass, found again in the second. */
static scope open_scope(writer *w, const sn_graph *g, const scope *outer, const sn_node *owner)
{
    scope s = {0};
    if (!w->e.counting)
        return w->scopes.data[w->next_scope++];
    s.names = SN_NEW_N(&w->arena, const char *, g->values.n + 1);
    s.constants = SN_NEW_N(&w->arena, constant *, g->values.n + 1);
    s.outputs = SN_NEW_N(&w->arena, const char *, g->outputs.n + 1);
    if (!s.names || !s.constants || !s.outputs || !sn_vec_push(&w->scopes, w->m->ctx->alloc, s)) {
        no_memory(w);
        return s;
    }
    name_values(w, g, outer, owner, &s);
    name_outputs(w, g, &s);
    return s;
}

/* Sibling bodies may use a body's names again; what came from outside stays. The keys are there
 * already, so that putting cannot fail. */
static void close_scope(writer *w, const sn_graph *g, const scope *s)
{
    if (!w->e.counting || w->status != SONDE_OK)
        return;
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (is_foreign(v, s))
            continue;
        (void)sn_map_put(&w->used, s->names[i], NULL, NULL);
        if (s->constants[i] && !v->is_input)
            (void)sn_map_put_address(&w->constants, v->fact.data, NULL, NULL);
    }
    for (size_t k = g->n_formal_inputs; k < g->inputs.n; k++)
        (void)sn_map_put(&w->used, s->names[g->inputs.data[k]->id], w, NULL);
}

/* ---- attributes ---- */

static void write_graph(writer *w, const sn_graph *g, const scope *outer, const sn_node *owner);

static void need_ir(writer *w, sn_dtype t)
{
    int64_t least = t == SONDE_DTYPE_U2 || t == SONDE_DTYPE_I2   ? 13
                    : t == SONDE_DTYPE_F8E8M0                    ? 12
                    : t == SONDE_DTYPE_F4E2M1                    ? 11
                    : t == SONDE_DTYPE_U4 || t == SONDE_DTYPE_I4 ? 10
                    : t >= SONDE_DTYPE_F8E4M3FN                  ? 9
                                                                 : LEAST_IR_VERSION;
    if (w->ir_version < least)
        w->ir_version = least;
}

static void write_tensor(writer *w, uint32_t field, const sn_tensor *t, const char *name,
                         bool sparse)
{
    if (!sn_tensor_is_plain(t)) {
        fail(w, sn_fail(w->err, SONDE_UNSUPPORTED,
                        "constant '%.200s' has an internal layout that ONNX cannot store",
                        name ? name : ""));
        return;
    }
    need_ir(w, t->dtype);
    sn_emit_mark mark = sn_emit_begin(&w->e, field);
    if (sparse)
        sn_emit_sparse(&w->e, t, name);
    else
        sn_emit_tensor(&w->e, t, name);
    sn_emit_end(&w->e, mark);
}

static bool goes_outside(const writer *w, const sn_tensor *t)
{
    size_t bytes = 0;
    return w->external && t->dtype != SONDE_DTYPE_STRING && sn_tensor_is_plain(t) &&
           sn_dtype_file_bytes(t->dtype, sn_tensor_count(t), &bytes) && bytes >= SN_ONNX_DATA_LEAST;
}

/* Both passes count the bytes of the second file, so both know the offset. */
static void write_outside(writer *w, const sn_tensor *t, const char *name)
{
    static const uint8_t zeros[SN_ONNX_DATA_ALIGN];
    const size_t over = (size_t)(w->data.count % SN_ONNX_DATA_ALIGN);
    if (over)
        sn_emit_raw(&w->data, zeros, SN_ONNX_DATA_ALIGN - over);
    need_ir(w, t->dtype);
    sn_emit_mark mark = sn_emit_begin(&w->e, 5);
    sn_emit_external(&w->e, t, name, w->sink->location, w->data.count);
    sn_emit_end(&w->e, mark);
    sn_emit_elements(&w->data, t);
    w->e.stopped = w->e.stopped || w->data.stopped;
}

static void write_initializer(writer *w, const sn_tensor *t, const char *name)
{
    const bool may = w->sink->sparse && sn_map_get_address(w->sink->sparse, t);
    if (may && sn_tensor_is_plain(t) && sn_emit_sparse_pays(t))
        write_tensor(w, 15, t, name, true);
    else if (goes_outside(w, t))
        write_outside(w, t, name);
    else
        write_tensor(w, 5, t, name, false);
}

static void write_type(writer *w, uint32_t field, const sn_type *t)
{
    sn_emit_mark mark = sn_emit_begin(&w->e, field);
    for (const sn_type *part = t; part; part = part->elem)
        need_ir(w, part->dtype);
    sn_emit_type(&w->e, t, w->root->symbols.data, w->root->symbols.n);
    sn_emit_end(&w->e, mark);
}

static void write_body(writer *w, uint32_t field, const sn_graph *g, const scope *s,
                       const sn_node *n)
{
    sn_emit_mark mark = sn_emit_begin(&w->e, field);
    write_graph(w, g, s, n);
    sn_emit_end(&w->e, mark);
}

static void write_attr_value(writer *w, const scope *s, const sn_node *n, const sn_attr *a)
{
    sn_emitter *e = &w->e;
    switch (a->kind) {
    case SN_ATTR_FLOAT:
        sn_emit_float(e, 2, a->f);
        break;
    case SN_ATTR_INT:
        sn_emit_int(e, 3, (uint64_t)a->i);
        break;
    case SN_ATTR_STRING:
        sn_emit_bytes(e, 4, a->s.data, a->s.size);
        break;
    case SN_ATTR_TENSOR:
        write_tensor(w, 5, a->tensor, "", false);
        break;
    case SN_ATTR_GRAPH:
        write_body(w, 6, a->graph, s, n);
        break;
    case SN_ATTR_FLOATS:
        for (size_t k = 0; k < a->n; k++)
            sn_emit_float(e, 7, a->floats[k]);
        break;
    case SN_ATTR_INTS:
        for (size_t k = 0; k < a->n; k++)
            sn_emit_int(e, 8, (uint64_t)a->ints[k]);
        break;
    case SN_ATTR_STRINGS:
        for (size_t k = 0; k < a->n; k++)
            sn_emit_bytes(e, 9, a->strings[k].data, a->strings[k].size);
        break;
    case SN_ATTR_TENSORS:
        for (size_t k = 0; k < a->n; k++)
            write_tensor(w, 10, a->tensors[k], "", false);
        break;
    case SN_ATTR_GRAPHS:
        for (size_t k = 0; k < a->n; k++)
            write_body(w, 11, a->graphs[k], s, n);
        break;
    case SN_ATTR_SPARSE_TENSOR:
        write_tensor(w, 22, a->tensor, "", true);
        break;
    case SN_ATTR_TYPE_PROTO:
        for (size_t k = 0; k < a->n; k++)
            write_type(w, a->n == 1 ? 14 : 15, &a->type[k]);
        break;
    }
}

static void write_attr(writer *w, const scope *s, const sn_node *n, const sn_attr *a)
{
    sn_emit_mark mark = sn_emit_begin(&w->e, 5);
    sn_emit_text(&w->e, 1, a->name);
    if (a->ref)
        sn_emit_text(&w->e, 21, a->ref);
    else
        write_attr_value(w, s, n, a);
    uint64_t type = (uint64_t)a->kind;
    if (a->kind == SN_ATTR_TYPE_PROTO && a->n != 1 && !a->ref)
        type = 14; /* a list of types */
    sn_emit_int(&w->e, 20, type);
    sn_emit_end(&w->e, mark);
}

/* ---- nodes and graphs ---- */

/* Functions bring domains the model itself may not import; `sonde` is our own. */
static void import_domain(writer *w, const sn_node *n)
{
    for (size_t k = 0; k < w->imports.n; k++)
        if (strcmp(w->imports.data[k].domain, n->domain) == 0)
            return;
    sn_opset o = {n->domain, n->opset > 0 ? n->opset : 1};
    if (!sn_vec_push(&w->imports, w->m->ctx->alloc, o))
        no_memory(w);
}

static void write_node(writer *w, const scope *s, const sn_node *n)
{
    sn_emitter *e = &w->e;
    uint32_t n_in = n->n_formal_in, n_out = n->n_out;
    while (n_in && !n->in[n_in - 1].value)
        n_in--;
    while (n_out && !n->out[n_out - 1])
        n_out--;
    import_domain(w, n);
    sn_emit_mark mark = sn_emit_begin(e, 1);
    for (uint32_t i = 0; i < n_in; i++)
        sn_emit_text(e, 1, n->in[i].value ? s->names[n->in[i].value->id] : "");
    for (uint32_t i = 0; i < n_out; i++)
        sn_emit_text(e, 2, n->out[i] ? s->names[n->out[i]->id] : "");
    sn_emit_text_if(e, 3, n->name);
    sn_emit_text(e, 4, n->op_type);
    for (uint32_t i = 0; i < n->n_attrs && w->status == SONDE_OK; i++)
        write_attr(w, s, n, &n->attrs[i]);
    sn_emit_text_if(e, 7, n->domain);
    sn_emit_text_if(e, 8, n->overload);
    sn_emit_end(e, mark);
}

static void write_identity(writer *w, const char *from, const char *to)
{
    sn_emit_mark mark = sn_emit_begin(&w->e, 1);
    sn_emit_text(&w->e, 1, from);
    sn_emit_text(&w->e, 2, to);
    sn_emit_text(&w->e, 4, "Identity");
    sn_emit_end(&w->e, mark);
}

static void write_value_info(writer *w, uint32_t field, const char *name, const sn_value *v)
{
    sn_emit_mark mark = sn_emit_begin(&w->e, field);
    sn_emit_text(&w->e, 1, name);
    if (v->fact.type.kind != SN_KIND_NONE)
        write_type(w, 2, &v->fact.type);
    sn_emit_end(&w->e, mark);
}

static bool says_something(const sn_type *t)
{
    return t->kind != SN_KIND_NONE &&
           !(t->kind == SN_KIND_TENSOR && t->dtype == SONDE_DTYPE_UNDEFINED);
}

static void write_values(writer *w, const sn_graph *g, const scope *s)
{
    for (size_t i = 0; i < g->values.n && w->status == SONDE_OK; i++) {
        const sn_value *v = g->values.data[i];
        const constant *c = s->constants[i];
        if (c && c->owner == v && (v->n_uses || v->n_outputs || v->is_input || c->needed))
            write_initializer(w, v->fact.data, s->names[i]);
    }
    for (size_t k = 0; k < g->n_formal_inputs; k++)
        write_value_info(w, 11, s->names[g->inputs.data[k]->id], g->inputs.data[k]);
    for (size_t k = 0; k < g->outputs.n; k++)
        write_value_info(w, 12, s->outputs[k], g->outputs.data[k]);
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->producer && !v->n_outputs && says_something(&v->fact.type))
            write_value_info(w, 13, s->names[i], v);
    }
}

static void write_graph(writer *w, const sn_graph *g, const scope *outer, const sn_node *owner)
{
    scope s = open_scope(w, g, outer, owner);
    if (w->status != SONDE_OK)
        return;
    for (const sn_node *n = g->first; n && w->status == SONDE_OK; n = n->next)
        write_node(w, &s, n);
    for (size_t k = 0; k < g->outputs.n && w->status == SONDE_OK; k++) {
        const char *from = s.names[g->outputs.data[k]->id];
        if (s.outputs[k] != from)
            write_identity(w, from, s.outputs[k]);
    }
    sn_emit_text(&w->e, 2, g->name && g->name[0] ? g->name : owner ? "body" : "graph");
    if (!owner)
        sn_emit_text_if(&w->e, 10, w->m->graph_doc);
    write_values(w, g, &s);
    close_scope(w, g, &s);
}

static void write_model(writer *w)
{
    const sn_model *m = w->m;
    sn_emitter *e = &w->e;
    sn_emit_int(e, 1, (uint64_t)w->ir_version); /* one byte, whatever the graph turns out to need */
    sn_emit_text(e, 2, m->producer_name && m->producer_name[0] ? m->producer_name : "sonde");
    sn_emit_text_if(e, 3, m->producer_version);
    sn_emit_text_if(e, 4, m->domain);
    if (m->model_version)
        sn_emit_int(e, 5, (uint64_t)m->model_version);
    sn_emit_text_if(e, 6, m->doc);
    sn_emit_mark graph = sn_emit_begin(e, 7);
    write_graph(w, w->root, NULL, NULL);
    sn_emit_end(e, graph);
    for (size_t k = 0; k < w->imports.n; k++) {
        sn_emit_mark import = sn_emit_begin(e, 8);
        sn_emit_text(e, 1, w->imports.data[k].domain);
        sn_emit_int(e, 2, (uint64_t)w->imports.data[k].version);
        sn_emit_end(e, import);
    }
    for (size_t k = 0; k < m->metadata.n; k++) {
        sn_emit_mark entry = sn_emit_begin(e, 14);
        sn_emit_text(e, 1, m->metadata.data[k].key);
        sn_emit_text(e, 2, m->metadata.data[k].value);
        sn_emit_end(e, entry);
    }
}

/* The counting pass, which decides all names. */
static sonde_status count(writer *w, const sn_model *m, const sn_graph *g, const sn_onnx_sink *sink,
                          bool external, sonde_error *err)
{
    sn_allocator *alloc = m->ctx->alloc;
    *w = (writer){.m = m, .root = g, .sink = sink, .external = external, .err = err};
    w->ir_version = m->ir_version > LEAST_IR_VERSION ? m->ir_version : LEAST_IR_VERSION;
    sn_emit_start(&w->e, alloc, sink->write, sink->user);
    sn_emit_start(&w->data, alloc, sink->write_data, sink->user);
    sn_arena_init(&w->arena, alloc);
    sn_map_init(&w->used, alloc);
    sn_map_init(&w->constants, alloc);
    for (size_t k = 0; k < m->opsets.n; k++)
        if (!sn_vec_push(&w->imports, alloc, m->opsets.data[k]))
            no_memory(w);
    if (w->status == SONDE_OK)
        write_model(w);
    return w->status;
}

static void writer_free(writer *w)
{
    sn_allocator *alloc = w->m->ctx->alloc;
    sn_emit_free(&w->e);
    sn_emit_free(&w->data);
    sn_vec_free(&w->scopes, alloc);
    sn_vec_free(&w->imports, alloc);
    sn_map_free(&w->used);
    sn_map_free(&w->constants);
    sn_arena_free(&w->arena);
}

static sonde_status write_counted(writer *w, sonde_error *err)
{
    SN_TRY(sn_emit_second_pass(&w->e, err));
    sn_emit_second_pass_of_bytes(&w->data);
    write_model(w);
    SN_TRY(w->status);
    SN_TRY(sn_emit_finish(&w->data, err));
    return sn_emit_finish(&w->e, err);
}

sonde_status sn_onnx_write(const sn_model *m, const sn_graph *g, const sn_onnx_sink *sink,
                           sonde_error *err)
{
    const uint64_t most =
        sink->inline_bytes && sink->inline_bytes < INT32_MAX ? sink->inline_bytes : INT32_MAX;
    writer w;
    sonde_status st = count(&w, m, g, sink, sink->external && sink->write_data, err);
    if (st == SONDE_OK && !w.external && sink->write_data && w.e.count > most) {
        writer_free(&w);
        st = count(&w, m, g, sink, true, err);
    }
    if (st == SONDE_OK)
        st = write_counted(&w, err);
    writer_free(&w);
    return st;
}
