/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text, for tests, logs and `inspect`, and as DOT for graphviz. Names come from files:
 * control characters become '?', and DOT strings are escaped. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

typedef struct printer {
    sn_write_fn write;
    void *user;
    char buf[1024];
    size_t n;
    const char *const *symbols; /* of the root */
    bool dot;
} printer;

static void flush(printer *p)
{
    if (p->n)
        p->write(p->user, p->buf, p->n);
    p->n = 0;
}

static void put_char(printer *p, char c)
{
    if (p->n == sizeof p->buf)
        flush(p);
    p->buf[p->n++] = c;
}

static void put_raw(printer *p, const char *s)
{
    for (; *s; s++)
        put_char(p, *s);
}

static void put_bytes(printer *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p->dot && (s[i] == '"' || s[i] == '\\'))
            put_char(p, '\\');
        put_char(p, (unsigned char)s[i] < 0x20 || s[i] == 0x7F ? '?' : s[i]);
    }
}

static void put_text(printer *p, const char *s)
{
    put_bytes(p, s, strlen(s));
}

static void SONDE_PRINTF(2, 3) put_fmt(printer *p, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    put_raw(p, line);
}

static void put_value(printer *p, const sn_value *v)
{
    if (!v)
        put_raw(p, "_");
    else if (v->name[0])
        put_raw(p, "%"), put_text(p, v->name);
    else
        put_fmt(p, "%%#%u", v->id);
}

static void put_type(printer *p, const sn_fact *f)
{
    char buf[400];
    put_text(p, sn_type_text(&f->type, p->symbols, buf, sizeof buf));
    char form[48];
    if (!sn_form_is_native(f->form))
        put_fmt(p, " %s", sn_form_text(f->form, form));
}

static void put_indent(printer *p, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        put_raw(p, "  ");
}

#define SHOWN_ITEMS 16 /* of a list attribute */

static void put_list_end(printer *p, size_t n)
{
    put_raw(p, n > SHOWN_ITEMS ? ", ...]" : "]");
}

static void put_attr(printer *p, const sn_attr *a)
{
    put_text(p, a->name);
    put_raw(p, "=");
    if (a->ref) {
        put_raw(p, "@");
        put_text(p, a->ref);
        return;
    }
    size_t shown = a->n < SHOWN_ITEMS ? a->n : SHOWN_ITEMS;
    switch (a->kind) {
    case SN_ATTR_FLOAT:
        put_fmt(p, "%.9g", (double)a->f);
        break;
    case SN_ATTR_INT:
        put_fmt(p, "%lld", (long long)a->i);
        break;
    case SN_ATTR_STRING:
        put_raw(p, "'");
        put_bytes(p, a->s.data, a->s.size < 64 ? a->s.size : 64);
        put_raw(p, "'");
        break;
    case SN_ATTR_FLOATS:
        put_raw(p, "[");
        for (size_t i = 0; i < shown; i++)
            put_fmt(p, i ? ", %.9g" : "%.9g", (double)a->floats[i]);
        put_list_end(p, a->n);
        break;
    case SN_ATTR_INTS:
        put_raw(p, "[");
        for (size_t i = 0; i < shown; i++)
            put_fmt(p, i ? ", %lld" : "%lld", (long long)a->ints[i]);
        put_list_end(p, a->n);
        break;
    case SN_ATTR_STRINGS:
        put_raw(p, "[");
        for (size_t i = 0; i < shown; i++) {
            put_raw(p, i ? ", '" : "'");
            put_bytes(p, a->strings[i].data, a->strings[i].size < 64 ? a->strings[i].size : 64);
            put_raw(p, "'");
        }
        put_list_end(p, a->n);
        break;
    case SN_ATTR_TENSOR:
    case SN_ATTR_SPARSE_TENSOR:
        if (a->tensor) {
            sn_type t = {.kind = SN_KIND_TENSOR,
                         .dtype = a->tensor->dtype,
                         .rank = a->tensor->rank,
                         .dims = a->tensor->dims};
            char buf[200];
            put_text(p, sn_type_text(&t, NULL, buf, sizeof buf));
        }
        break;
    case SN_ATTR_TYPE_PROTO:
        if (a->type)
            put_type(p, &(sn_fact){.type = *a->type});
        break;
    case SN_ATTR_GRAPH:
        put_raw(p, "graph");
        break;
    case SN_ATTR_TENSORS:
        put_fmt(p, "%zu tensors", a->n);
        break;
    case SN_ATTR_GRAPHS:
        put_fmt(p, "%zu graphs", a->n);
        break;
    }
}

static void put_node(printer *p, const sn_node *n, uint32_t depth)
{
    put_indent(p, depth);
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (i)
            put_raw(p, ", ");
        put_value(p, n->out[i]);
    }
    put_raw(p, " = ");
    if (n->domain[0])
        put_text(p, n->domain), put_raw(p, ".");
    put_text(p, n->op_type);
    put_raw(p, "(");
    for (uint32_t i = 0; i < n->n_in; i++) {
        put_raw(p, i == 0 ? "" : i == n->n_formal_in ? "; " : ", ");
        put_value(p, n->in[i].value);
    }
    put_raw(p, ")");
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        put_raw(p, i ? ", " : " {");
        put_attr(p, &n->attrs[i]);
    }
    if (n->n_attrs)
        put_raw(p, "}");
    put_raw(p, " :");
    for (uint32_t i = 0; i < n->n_out; i++) {
        put_raw(p, i ? ", " : " ");
        if (n->out[i])
            put_type(p, &n->out[i]->fact);
        else
            put_raw(p, "_");
    }
    if (n->name[0]) {
        put_raw(p, "  # ");
        put_text(p, n->name);
    }
    put_raw(p, "\n");
}

static void print_graph(printer *p, const sn_graph *g, uint32_t depth)
{
    put_indent(p, depth);
    put_raw(p, "graph ");
    put_text(p, g->name[0] ? g->name : "_");
    put_raw(p, " {\n");
    for (size_t i = 0; i < g->inputs.n; i++) {
        put_indent(p, depth + 1);
        put_raw(p, i < g->n_formal_inputs ? "input " : "capture ");
        put_value(p, g->inputs.data[i]);
        put_raw(p, " : ");
        put_type(p, &g->inputs.data[i]->fact);
        put_raw(p, "\n");
    }
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (!v->fact.data || v->is_input || v->producer || (!v->n_uses && !v->n_outputs))
            continue;
        put_indent(p, depth + 1);
        put_raw(p, "const ");
        put_value(p, v);
        put_raw(p, " : ");
        put_type(p, &v->fact);
        put_raw(p, "\n");
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        put_node(p, n, depth + 1);
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            print_graph(p, body, depth + 2);
    }
    put_indent(p, depth + 1);
    put_raw(p, "output");
    for (size_t i = 0; i < g->outputs.n; i++) {
        put_raw(p, i ? ", " : " ");
        put_value(p, g->outputs.data[i]);
    }
    put_raw(p, "\n");
    put_indent(p, depth);
    put_raw(p, "}\n");
}

static const char *const *root_symbols(const sn_graph *g)
{
    while (g->parent)
        g = g->parent;
    return g->symbols.n ? g->symbols.data : NULL;
}

void sn_graph_print(const sn_graph *g, sn_write_fn write, void *user)
{
    printer p = {.write = write, .user = user, .symbols = root_symbols(g)};
    print_graph(&p, g, 0);
    flush(&p);
}

/* Ids of DOT nodes: g<body number>n<node id>, g…v<value id> for inputs and outputs. */
static void dot_source(printer *p, const sn_value *v, unsigned graph)
{
    if (v->producer)
        put_fmt(p, "g%un%u", graph, v->producer->id);
    else
        put_fmt(p, "g%uv%u", graph, v->id);
}

static void dot_graph(printer *p, const sn_graph *g, unsigned *counter)
{
    unsigned self = (*counter)++;
    for (size_t i = 0; i < g->inputs.n; i++) {
        const sn_value *v = g->inputs.data[i];
        put_fmt(p, "  g%uv%u [shape=ellipse, label=\"", self, v->id);
        put_text(p, v->name);
        put_raw(p, "\\n");
        put_type(p, &v->fact);
        put_raw(p, "\"];\n");
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        put_fmt(p, "  g%un%u [label=\"", self, n->id);
        put_text(p, n->op_type);
        if (n->post_op[0])
            put_raw(p, "+"), put_text(p, n->post_op);
        if (n->name[0])
            put_raw(p, "\\n"), put_text(p, n->name);
        put_raw(p, "\"];\n");
        for (uint32_t i = 0; i < n->n_in; i++) {
            const sn_value *v = n->in[i].value;
            if (!v || (!v->producer && !v->is_input))
                continue; /* constants would drown the picture */
            put_raw(p, "  ");
            dot_source(p, v, self);
            put_fmt(p, " -> g%un%u [label=\"", self, n->id);
            put_type(p, &v->fact);
            put_raw(p, "\"];\n");
        }
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++) {
            put_fmt(p, "  subgraph cluster_g%un%ub%u {\n  label=\"", self, n->id, k);
            put_text(p, n->name[0] ? n->name : n->op_type);
            put_fmt(p, " body %u\";\n", k);
            dot_graph(p, body, counter);
            put_raw(p, "  }\n");
        }
    }
    for (size_t i = 0; i < g->outputs.n; i++) {
        const sn_value *v = g->outputs.data[i];
        put_fmt(p, "  g%uo%zu [shape=ellipse, label=\"", self, i);
        put_text(p, v->name);
        put_raw(p, "\\n");
        put_type(p, &v->fact);
        put_raw(p, "\"];\n");
        if (v->producer || v->is_input) {
            put_raw(p, "  ");
            dot_source(p, v, self);
            put_fmt(p, " -> g%uo%zu;\n", self, i);
        }
    }
}

void sn_graph_print_dot(const sn_graph *g, sn_write_fn write, void *user)
{
    printer p = {.write = write, .user = user, .symbols = root_symbols(g), .dot = true};
    unsigned counter = 0;
    put_raw(&p, "digraph \"");
    put_text(&p, g->name);
    put_raw(&p, "\" {\n  node [shape=box];\n");
    dot_graph(&p, g, &counter);
    put_raw(&p, "}\n");
    flush(&p);
}
