/* SPDX-License-Identifier: Apache-2.0 */
/* GraphProto, NodeProto and FunctionProto. Names become values through one map per graph; what a
 * name is (input, initializer, output of a node) is written into the value, and being two of these
 * at once is an error. Nodes may come in any order: sn_model_finish sorts them and gives free names
 * of bodies their meaning. */
#include <string.h>

#include "onnx/reader.h"

/* ---- values ---- */

static sonde_status find_value(sn_onnx_reader *r, sn_scope *s, const sn_wire *name, sn_value **out)
{
    size_t n = sn_wire_bytes(name);
    sn_value *v = sn_map_get_n(&s->values, name->at, n);
    if (!v) {
        const char *copy;
        SN_TRY(sn_onnx_reader_name_in(r, &r->scratch, name, "a value", &copy));
        SN_TRY(sn_graph_add_value(s->g, copy, &v, r->err));
        sn_arena_reset(&r->scratch);
        if (!sn_map_put_n(&s->values, v->name, n, v, NULL))
            return sn_fail_memory(r->err, n);
    }
    *out = v;
    return SONDE_OK;
}

typedef struct value_info {
    sn_wire name, type;
    bool has_type;
} value_info;

static sonde_status read_value_info(sn_onnx_reader *r, sn_wire w, value_info *out)
{
    sn_field f;
    sn_wire_status got;
    *out = (value_info){0};
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(1)) {
            out->name = f.body;
        } else if (f.tag == SN_LEN(2)) {
            out->type = f.body;
            out->has_type = true;
        }
    }
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a value") : SONDE_OK;
}

/* What the file says of a value's type, unless something better is known. */
static sonde_status set_type(sn_onnx_reader *r, const value_info *info, sn_value *v)
{
    if (!info->has_type || v->fact.type.kind != SN_KIND_NONE)
        return SONDE_OK;
    return sn_read_type(r, info->type, v->name, &v->fact.type);
}

static sonde_status twice(sn_onnx_reader *r, const sn_value *v, const char *first,
                          const char *second)
{
    return sn_fail(r->err, SONDE_INVALID_MODEL, "value '%.200s' is both %s and %s", v->name, first,
                   second);
}

static const char *role(const sn_value *v)
{
    return v->is_input ? "a graph input" : v->fact.data ? "an initializer" : "the output of a node";
}

static sonde_status read_initializer(sn_onnx_reader *r, sn_scope *s, sn_wire w, bool sparse)
{
    const sn_tensor *t;
    const char *name;
    if (sparse)
        SN_TRY(sn_read_sparse(r, w, "sparse initializer", &t, &name));
    else
        SN_TRY(sn_read_initializer(r, w, &t, &name));
    if (!name[0])
        return sn_fail(r->err, SONDE_INVALID_MODEL, "an initializer has no name");
    sn_value *v;
    sn_wire key = sn_wire_of(name, strlen(name));
    SN_TRY(find_value(r, s, &key, &v));
    if (v->fact.data)
        return twice(r, v, "an initializer", "another one");
    return sn_value_set_constant(s->g, v, t, r->err);
}

/* An input's default is a value of the input's type. */
static sonde_status check_default(sn_onnx_reader *r, const sn_value *v, const sn_type *declared)
{
    const sn_type *t = &v->fact.type;
    bool fits = declared->kind == t->kind && (declared->rank < 0 || declared->rank == t->rank) &&
                (!declared->dtype || declared->dtype == t->dtype);
    for (int i = 0; fits && i < declared->rank; i++)
        fits = !sn_dim_known(declared->dims[i]) || declared->dims[i] == t->dims[i];
    if (fits)
        return SONDE_OK;
    char want[200], have[200];
    return sn_fail(
        r->err, SONDE_INVALID_MODEL, "input '%.200s' is declared as %s, its default is %s", v->name,
        sn_type_text(declared, NULL, want, sizeof want), sn_type_text(t, NULL, have, sizeof have));
}

static sonde_status read_input(sn_onnx_reader *r, sn_scope *s, sn_wire w)
{
    value_info info;
    sn_value *v;
    SN_TRY(read_value_info(r, w, &info));
    if (info.name.at == info.name.end)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "an input of graph '%.200s' has no name",
                       s->g->name);
    SN_TRY(find_value(r, s, &info.name, &v));
    if (v->is_input)
        return twice(r, v, "a graph input", "another one");
    /* Up to IR version 3 every initializer had to be listed as an input; it is a constant all the
     * same. Since version 4 such an input is one with a default. */
    if (v->is_initializer && r->m->ir_version < 4)
        return SONDE_OK;
    SN_TRY(sn_graph_add_input(s->g, v, r->err));
    sn_type declared = {.rank = -1};
    if (info.has_type)
        SN_TRY(sn_read_type(r, info.type, v->name, &declared));
    if (declared.kind == SN_KIND_NONE)
        return SONDE_OK;
    if (v->is_initializer) {
        SN_TRY(check_default(r, v, &declared));
        declared.dtype = v->fact.type.dtype;
    }
    v->fact.type = declared;
    return SONDE_OK;
}

static sonde_status read_output(sn_onnx_reader *r, sn_scope *s, sn_wire w)
{
    value_info info;
    sn_value *v;
    SN_TRY(read_value_info(r, w, &info));
    if (info.name.at == info.name.end)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "an output of graph '%.200s' has no name",
                       s->g->name);
    SN_TRY(find_value(r, s, &info.name, &v));
    SN_TRY(sn_graph_add_output(s->g, v, r->err));
    return set_type(r, &info, v);
}

static sonde_status read_hint(sn_onnx_reader *r, sn_scope *s, sn_wire w)
{
    value_info info;
    SN_TRY(read_value_info(r, w, &info));
    sn_value *v = info.name.at == info.name.end
                      ? NULL
                      : sn_map_get_n(&s->values, info.name.at, sn_wire_bytes(&info.name));
    return v ? set_type(r, &info, v) : SONDE_OK;
}

/* ---- nodes ---- */

typedef struct node_fields {
    sn_wire name, op_type, domain, overload;
    size_t inputs, outputs, attrs;
} node_fields;

static sonde_status collect_node(sn_onnx_reader *r, sn_wire w, node_fields *n)
{
    sn_field f;
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(1):
            n->inputs++;
            break;
        case SN_LEN(2):
            n->outputs++;
            break;
        case SN_LEN(3):
            n->name = f.body;
            break;
        case SN_LEN(4):
            n->op_type = f.body;
            break;
        case SN_LEN(5):
            n->attrs++;
            break;
        case SN_LEN(7):
            n->domain = f.body;
            break;
        case SN_LEN(8):
            n->overload = f.body;
            break;
        default:
            break;
        }
    }
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a node") : SONDE_OK;
}

static sonde_status set_output(sn_onnx_reader *r, sn_scope *s, const sn_wire *name, sn_node *n,
                               uint32_t i)
{
    sn_value *v;
    SN_TRY(find_value(r, s, name, &v));
    if (v->producer || v->is_input || v->fact.data)
        return twice(r, v, role(v), v->producer ? "that of another one" : "the output of a node");
    sn_node_set_output(n, i, v);
    return SONDE_OK;
}

static sonde_status add_attr(sn_onnx_reader *r, sn_scope *s, sn_wire w, sn_node *n)
{
    sn_attr *a = &n->attrs[n->n_attrs];
    SN_TRY(sn_read_attr(r, w, s->g, a));
    n->n_attrs++;
    for (uint32_t k = 0; k + 1 < n->n_attrs; k++)
        if (strcmp(n->attrs[k].name, a->name) == 0)
            return sn_fail(r->err, SONDE_INVALID_MODEL, "attribute '%.200s' is given twice",
                           a->name);
    return SONDE_OK;
}

static sonde_status fill_node(sn_onnx_reader *r, sn_scope *s, sn_wire w, sn_node *n)
{
    uint32_t in = 0, out = 0;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        bool absent = f.body.at == f.body.end;
        sn_value *v;
        switch (f.tag) {
        case SN_LEN(1):
            if (!absent) {
                SN_TRY(find_value(r, s, &f.body, &v));
                sn_node_set_input(n, in, v);
            }
            in++;
            break;
        case SN_LEN(2):
            if (!absent)
                SN_TRY(set_output(r, s, &f.body, n, out));
            out++;
            break;
        case SN_LEN(5):
            SN_TRY(add_attr(r, s, f.body, n));
            break;
        default:
            break;
        }
    }
    return SONDE_OK;
}

static sonde_status read_node(sn_onnx_reader *r, sn_scope *s, sn_wire w)
{
    node_fields c = {0};
    const char *name, *op_type, *domain, *overload;
    SN_TRY(collect_node(r, w, &c));
    sn_arena_reset(&r->scratch);
    SN_TRY(sn_onnx_reader_name_in(r, &r->scratch, &c.name, "a node", &name));
    SN_TRY(sn_onnx_reader_name_in(r, &r->scratch, &c.op_type, "an operator", &op_type));
    SN_TRY(sn_onnx_reader_domain(r, &r->scratch, &c.domain, &domain));
    SN_TRY(sn_onnx_reader_name(r, &c.overload, "an overload", &overload));
    if (!op_type[0])
        return sn_fail(r->err, SONDE_INVALID_MODEL, "node '%.200s' has no operator type", name);
    if (c.inputs > UINT32_MAX / 2 || c.outputs > UINT32_MAX / 2 || c.attrs > SN_MAX_ATTRS)
        return sn_fail(r->err, SONDE_LIMIT, "node '%.200s' (%.100s) has more than %d attributes",
                       name, op_type, SN_MAX_ATTRS);
    sn_node *n;
    SN_TRY(sn_graph_add_node(s->g, NULL, domain, op_type, name, (uint32_t)c.inputs,
                             (uint32_t)c.outputs, &n, r->err));
    n->overload = overload;
    if (c.attrs) {
        n->attrs = SN_NEW_N(r->arena, sn_attr, c.attrs);
        if (!n->attrs)
            return sn_fail_memory(r->err, c.attrs * sizeof *n->attrs);
        n->attr_cap = (uint32_t)c.attrs;
    }
    sonde_status st = fill_node(r, s, w, n);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY && !r->located) {
        sn_error_prefix(r->err, "node '%.200s' (%.100s)", n->name, n->op_type);
        r->located = true;
    }
    return st;
}

/* ---- graphs ---- */

/* Every value of a graph without a surrounding one has a source. */
static sonde_status check_sources(sn_onnx_reader *r, const sn_graph *g)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->producer || v->is_input || v->fact.data)
            continue;
        const sn_node *reader = v->uses ? v->uses->node : NULL;
        if (reader)
            return sn_fail(r->err, SONDE_INVALID_MODEL,
                           "node '%.200s' (%.100s) reads '%.200s', which nothing produces",
                           reader->name, reader->op_type, v->name);
        return sn_fail(r->err, SONDE_INVALID_MODEL,
                       "graph output '%.200s' is not produced by any node", v->name);
    }
    return SONDE_OK;
}

/* Fields are visited in the order that makes roles plain, whatever their order in the file. */
typedef enum graph_pass { INITIALIZERS, INPUTS, NODES, OUTPUTS, HINTS, N_PASSES } graph_pass;

static sonde_status read_graph_field(sn_onnx_reader *r, sn_scope *s, const sn_field *f,
                                     graph_pass pass)
{
    switch (f->tag) {
    case SN_LEN(1):
        return pass == NODES ? read_node(r, s, f->body) : SONDE_OK;
    case SN_LEN(2):
        return pass == INITIALIZERS ? sn_onnx_reader_name(r, &f->body, "a graph", &s->g->name)
                                    : SONDE_OK;
    case SN_LEN(5):
        return pass == INITIALIZERS ? read_initializer(r, s, f->body, false) : SONDE_OK;
    case SN_LEN(10): /* bodies have no model to describe */
        return pass == INITIALIZERS && s->g == r->m->graph
                   ? sn_onnx_reader_name(r, &f->body, "the documentation", &r->m->graph_doc)
                   : SONDE_OK;
    case SN_LEN(11):
        return pass == INPUTS ? read_input(r, s, f->body) : SONDE_OK;
    case SN_LEN(12):
        return pass == OUTPUTS ? read_output(r, s, f->body) : SONDE_OK;
    case SN_LEN(13):
        return pass == HINTS ? read_hint(r, s, f->body) : SONDE_OK;
    case SN_LEN(15):
        return pass == INITIALIZERS ? read_initializer(r, s, f->body, true) : SONDE_OK;
    default:
        return SONDE_OK;
    }
}

sonde_status sn_read_graph(sn_onnx_reader *r, sn_wire w, sn_graph *g, bool closed)
{
    sn_scope s = {.g = g};
    sonde_status st;
    SN_TRY(sn_onnx_reader_enter(r, "graphs"));
    sn_map_init(&s.values, r->alloc);
    for (graph_pass pass = 0; pass < N_PASSES; pass++) {
        sn_wire at = w;
        sn_field f;
        sn_wire_status got;
        while ((got = sn_wire_next(&at, &f)) == SN_WIRE_FIELD)
            SN_TRY_GOTO(st, read_graph_field(r, &s, &f, pass));
        if (got == SN_WIRE_BROKEN) {
            st = sn_onnx_reader_broken(r, "a graph");
            goto fail;
        }
    }
    st = closed ? check_sources(r, g) : SONDE_OK;
fail:
    sn_map_free(&s.values);
    sn_onnx_reader_leave(r);
    return st;
}

sonde_status sn_read_body(sn_onnx_reader *r, sn_wire w, sn_graph *parent, sn_graph **out)
{
    sn_graph *g;
    SN_TRY(sn_graph_new(&g, r->arena, r->alloc, "", parent, r->err));
    *out = g; /* known to its parent from now on, which frees it */
    return sn_read_graph(r, w, g, false);
}

/* ---- functions ---- */

typedef struct function_fields {
    sn_wire name, domain, overload;
    size_t inputs, outputs, attr_names, attr_defaults, opsets;
} function_fields;

static sonde_status collect_function(sn_onnx_reader *r, sn_wire w, function_fields *c)
{
    sn_field f;
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(1):
            c->name = f.body;
            break;
        case SN_LEN(4):
            c->inputs++;
            break;
        case SN_LEN(5):
            c->outputs++;
            break;
        case SN_LEN(6):
            c->attr_names++;
            break;
        case SN_LEN(9):
            c->opsets++;
            break;
        case SN_LEN(10):
            c->domain = f.body;
            break;
        case SN_LEN(11):
            c->attr_defaults++;
            break;
        case SN_LEN(13):
            c->overload = f.body;
            break;
        default:
            break;
        }
    }
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a function") : SONDE_OK;
}

/* The lists of a function, filled in the order of the file. */
typedef struct function_lists {
    const char **inputs, **outputs, **attr_names;
    sn_attr *defaults;
    sn_opset *opsets;
} function_lists;

static sonde_status function_port(sn_onnx_reader *r, sn_scope *s, const sn_wire *name, bool output,
                                  const char **out)
{
    sn_value *v;
    if (name->at == name->end)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "an %s has no name",
                       output ? "output" : "input");
    SN_TRY(find_value(r, s, name, &v));
    *out = v->name;
    if (output)
        return sn_graph_add_output(s->g, v, r->err);
    if (v->is_input)
        return twice(r, v, "an input", "another one");
    SN_TRY(sn_graph_add_input(s->g, v, r->err));
    return SONDE_OK;
}

static sonde_status function_default(sn_onnx_reader *r, sn_wire w, sn_graph *g, sn_attr *a)
{
    SN_TRY(sn_read_attr(r, w, g, a));
    if (a->ref || (a->kind != SN_ATTR_GRAPH && a->kind != SN_ATTR_GRAPHS))
        return SONDE_OK;
    return sn_fail(r->err, SONDE_UNSUPPORTED, "attribute '%.200s' has a graph as its default",
                   a->name);
}

static sonde_status fill_function(sn_onnx_reader *r, sn_wire w, sn_scope *s, sn_function *fn,
                                  const function_lists *l)
{
    sn_wire first = w, second = w, third = w;
    sn_field f;
    while (sn_wire_next(&first, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(4)) {
            SN_TRY(function_port(r, s, &f.body, false, &l->inputs[fn->n_inputs]));
            fn->n_inputs++;
        } else if (f.tag == SN_LEN(6)) {
            SN_TRY(
                sn_onnx_reader_name(r, &f.body, "an attribute", &l->attr_names[fn->n_attr_names]));
            fn->n_attr_names++;
        } else if (f.tag == SN_LEN(9)) {
            SN_TRY(sn_read_opset(r, f.body, &l->opsets[fn->n_opsets]));
            fn->n_opsets++;
        } else if (f.tag == SN_LEN(11)) {
            SN_TRY(function_default(r, f.body, s->g, &l->defaults[fn->n_attr_defaults]));
            fn->n_attr_defaults++;
        }
    }
    while (sn_wire_next(&second, &f) == SN_WIRE_FIELD)
        if (f.tag == SN_LEN(7))
            SN_TRY(read_node(r, s, f.body));
    while (sn_wire_next(&third, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(5)) {
            SN_TRY(function_port(r, s, &f.body, true, &l->outputs[fn->n_outputs]));
            fn->n_outputs++;
        } else if (f.tag == SN_LEN(12)) {
            SN_TRY(read_hint(r, s, f.body));
        }
    }
    return check_sources(r, s->g);
}

sonde_status sn_read_function(sn_onnx_reader *r, sn_wire w, sn_function *out)
{
    function_fields c = {0};
    sn_function fn = {0};
    sn_scope s = {0};
    SN_TRY(collect_function(r, w, &c));
    SN_TRY(sn_onnx_reader_name(r, &c.name, "a function", &fn.name));
    SN_TRY(sn_onnx_reader_domain(r, r->arena, &c.domain, &fn.domain));
    SN_TRY(sn_onnx_reader_name(r, &c.overload, "an overload", &fn.overload));
    if (!fn.name[0])
        return sn_fail(r->err, SONDE_INVALID_MODEL, "a function has no name");
    if (c.inputs > UINT32_MAX || c.outputs > UINT32_MAX || c.attr_names > UINT32_MAX ||
        c.attr_defaults > SN_MAX_ATTRS || c.opsets > UINT32_MAX)
        return sn_fail(r->err, SONDE_LIMIT, "function '%.200s' has more than %d attributes",
                       fn.name, SN_MAX_ATTRS);
    function_lists l = {
        SN_NEW_N(r->arena, const char *, c.inputs + 1),
        SN_NEW_N(r->arena, const char *, c.outputs + 1),
        SN_NEW_N(r->arena, const char *, c.attr_names + 1),
        SN_NEW_N(r->arena, sn_attr, c.attr_defaults + 1),
        SN_NEW_N(r->arena, sn_opset, c.opsets + 1),
    };
    if (!l.inputs || !l.outputs || !l.attr_names || !l.defaults || !l.opsets)
        return sn_fail_memory(r->err, c.inputs + c.outputs);
    fn.inputs = l.inputs, fn.outputs = l.outputs, fn.attr_names = l.attr_names;
    fn.attr_defaults = l.defaults, fn.opsets = l.opsets;
    SN_TRY(sn_graph_new(&s.g, r->arena, r->alloc, fn.name, NULL, r->err));
    sn_map_init(&s.values, r->alloc);
    sonde_status st = fill_function(r, w, &s, &fn, &l);
    sn_map_free(&s.values);
    if (st != SONDE_OK) {
        if (st != SONDE_OUT_OF_MEMORY)
            sn_error_prefix(r->err, "function '%.200s'", fn.name);
        sn_graph_free(s.g);
        return st;
    }
    fn.body = s.g;
    *out = fn;
    return SONDE_OK;
}
