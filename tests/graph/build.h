/* SPDX-License-Identifier: Apache-2.0 */
/* Small graphs for tests, written like the text form: node(g, "Add", "y", "a b"). A name not seen
 * in the graph becomes an unresolved value, as the reader does it. */
#ifndef SONDE_TESTS_GRAPH_BUILD_H
#define SONDE_TESTS_GRAPH_BUILD_H

#include "failing_alloc.h"
#include "test.h"

#include "graph/model.h"

static failing_alloc build_alloc;
static sn_context build_ctx;
static sonde_error err;
static sonde_status build_status; /* the first failure while building */

static inline void build_note(sonde_status st)
{
    if (st != SONDE_OK && build_status == SONDE_OK)
        build_status = st;
}

/* Names of a test graph are few: a scan is fine. */
static inline sn_value *value(sn_graph *g, const char *name)
{
    for (size_t i = 0; i < g->values.n; i++)
        if (strcmp(g->values.data[i]->name, name) == 0)
            return g->values.data[i];
    sn_value *v = NULL;
    build_note(sn_graph_add_value(g, name, &v, &err));
    return v;
}

static inline uint32_t split(const char *words, char out[][64])
{
    uint32_t n = 0;
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, " ");
        snprintf(out[n++], 64, "%.*s", (int)len, p);
        p += len + (p[len] == ' ');
    }
    return n;
}

/* "_" leaves an input or output out. */
static inline sn_node *node(sn_graph *g, const char *type, const char *outs, const char *ins)
{
    char in[16][64], out[16][64], domain[64] = "", name[80];
    uint32_t n_in = split(ins, in), n_out = split(outs, out);
    const char *dot = strchr(type, '.');
    if (dot)
        snprintf(domain, sizeof domain, "%.*s", (int)(dot - type), type);
    snprintf(name, sizeof name, "n_%s", n_out ? out[0] : "");
    sn_node *n = NULL;
    build_note(
        sn_graph_add_node(g, NULL, domain, dot ? dot + 1 : type, name, n_in, n_out, &n, &err));
    if (!n)
        return NULL;
    for (uint32_t i = 0; i < n_in; i++) {
        sn_value *v = strcmp(in[i], "_") ? value(g, in[i]) : NULL;
        sn_node_set_input(n, i, v);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        sn_value *v = strcmp(out[i], "_") ? value(g, out[i]) : NULL;
        if (v)
            sn_node_set_output(n, i, v);
    }
    return n;
}

static inline void inputs(sn_graph *g, const char *names)
{
    char in[16][64];
    uint32_t n = split(names, in);
    for (uint32_t i = 0; i < n; i++) {
        sn_value *v = value(g, in[i]);
        if (v)
            build_note(sn_graph_add_input(g, v, &err));
    }
}

static inline void outputs(sn_graph *g, const char *names)
{
    char out[16][64];
    uint32_t n = split(names, out);
    for (uint32_t i = 0; i < n; i++) {
        sn_value *v = value(g, out[i]);
        if (v)
            build_note(sn_graph_add_output(g, v, &err));
    }
}

static inline void attr_int(sn_graph *g, sn_node *n, const char *name, int64_t i)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = i};
    if (n)
        build_note(sn_node_set_attr(g, n, &a, &err));
}

static inline void attr_ref(sn_graph *g, sn_node *n, const char *name, const char *ref)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .ref = ref};
    if (n)
        build_note(sn_node_set_attr(g, n, &a, &err));
}

static inline sn_graph *body(sn_graph *g, sn_node *n, const char *name)
{
    sn_graph *b = NULL;
    build_note(sn_graph_new(&b, g->arena, g->alloc, name, g, &err));
    sn_attr a = {.name = name, .kind = SN_ATTR_GRAPH, .n = 1, .graph = b};
    if (n && b)
        build_note(sn_node_set_attr(g, n, &a, &err));
    return b;
}

/* The k-th allocation fails, from 1; 0: none. */
static inline sn_model *model(size_t fail_at)
{
    sn_model *m = NULL;
    failing_init(&build_alloc);
    build_alloc.fail_at = (long)fail_at - 1;
    build_alloc.once = true;
    memset(&build_ctx, 0, sizeof build_ctx);
    build_ctx.alloc = &build_alloc.a;
    build_status = SONDE_OK;
    build_note(sn_model_new(&m, &build_ctx, &err));
    if (m) {
        sn_opset o = {"", 17};
        if (!sn_vec_push(&m->opsets, &build_alloc.a, o))
            build_note(SONDE_OUT_OF_MEMORY);
    }
    return m;
}

static inline sn_graph *function(sn_model *m, const char *name, const char *ins, const char *outs)
{
    sn_function f = {.name = name, .domain = "local", .overload = ""};
    build_note(sn_graph_new(&f.body, &m->arena, m->ctx->alloc, name, NULL, &err));
    if (!f.body)
        return NULL;
    if (!sn_vec_push(&m->functions, m->ctx->alloc, f)) {
        sn_graph_free(f.body);
        build_note(SONDE_OUT_OF_MEMORY);
        return NULL;
    }
    inputs(f.body, ins);
    outputs(f.body, outs);
    return f.body;
}

static inline void end_model(sn_model *m)
{
    sn_model_unref(m);
    CHECK_EQ(atomic_load(&build_alloc.a.live_bytes), 0);
    CHECK_EQ(build_alloc.live, 0);
}

/* The text form, in a static buffer. */
static char build_text[1 << 16];
static inline void build_write(void *user, const char *s, size_t n)
{
    size_t *at = user;
    if (*at + n < sizeof build_text) {
        memcpy(build_text + *at, s, n);
        *at += n;
    }
    build_text[*at] = '\0';
}
static inline const char *text_of(const sn_graph *g)
{
    size_t at = 0;
    sn_graph_print(g, build_write, &at);
    return build_text;
}

#endif
