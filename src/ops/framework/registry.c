/* SPDX-License-Identifier: Apache-2.0 */
/* The operator registry: finds the descriptor of a node, checks its arity, makes its typed params.
 * The index is a fixed-size hash table over the list of ops/ops.c, filled once; it never allocates,
 * so looking an operator up cannot fail. */
#include "ops/framework/op.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/list_text.h"

static uint16_t table[SN_OP_TABLE]; /* row + 1; 0 = free */
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static uint32_t hash_name(const char *domain, const char *op_type)
{
    uint32_t h = 2166136261u;
    for (; *domain; domain++)
        h = (h ^ (uint8_t)*domain) * 16777619u;
    h = (h ^ '/') * 16777619u;
    for (; *op_type; op_type++)
        h = (h ^ (uint8_t)*op_type) * 16777619u;
    return h ^ (h >> 15);
}

static void table_build(void)
{
    for (size_t r = 0; r < sn_op_count; r++) {
        uint32_t k = hash_name(sn_op_rows[r][0].domain, sn_op_rows[r][0].name) % SN_OP_TABLE;
        while (table[k])
            k = (k + 1) % SN_OP_TABLE;
        table[k] = (uint16_t)(r + 1);
    }
}

const sn_op *sn_op_row(size_t k)
{
    return k < sn_op_count ? sn_op_rows[k] : NULL;
}

const sn_op *sn_op_find(const char *domain, const char *op_type, int64_t version, bool *other)
{
    pthread_once(&table_once, table_build);
    bool found_name = false;
    if (other)
        *other = false;
    if (!domain || !op_type)
        return NULL;
    for (uint32_t k = hash_name(domain, op_type) % SN_OP_TABLE; table[k];
         k = (k + 1) % SN_OP_TABLE) {
        const sn_op *op = sn_op_rows[table[k] - 1];
        if (strcmp(op->name, op_type) != 0 || strcmp(op->domain, domain) != 0)
            continue;
        found_name = true;
        for (; op->name; op++)
            if (op->since <= version && (op->until == 0 || version <= op->until))
                return op;
    }
    if (other)
        *other = found_name;
    return NULL;
}

sonde_status sn_node_fail_va(sonde_error *err, sonde_status st, const sn_node *n, const char *fmt,
                             va_list args)
{
    sn_fail_va(err, st, fmt, args);
    if (n->name && n->name[0])
        sn_error_prefix(err, "node '%s' (%s)", n->name, n->shown_type);
    else if (n->n_out > 0 && n->out[0] && sn_value_shown(n->out[0])[0])
        sn_error_prefix(err, "node with output '%s' (%s)", sn_value_shown(n->out[0]),
                        n->shown_type);
    else
        sn_error_prefix(err, "node #%u (%s)", n->id, n->shown_type);
    return st;
}

static sonde_status SONDE_PRINTF(4, 5)
    node_fail(sonde_error *err, sonde_status st, const sn_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    st = sn_node_fail_va(err, st, n, fmt, args);
    va_end(args);
    return st;
}

/* Arity, and the promises of op.h: required inputs are present, required outputs exist. */
static sonde_status check_arity(sn_graph *g, sn_node *n, const sn_op *op, sonde_error *err)
{
    uint32_t n_in = n->n_formal_in;
    while (n_in > 0 && !n->in[n_in - 1].value)
        n_in--;
    for (int i = 0; i < op->min_in; i++)
        if ((uint32_t)i >= n_in || !n->in[i].value)
            return node_fail(err, SONDE_INVALID_MODEL, n, "input %d is required and missing", i);
    if (op->max_in >= 0 && n_in > (uint32_t)op->max_in)
        return node_fail(err, SONDE_INVALID_MODEL, n, "has %u inputs, at most %d are allowed", n_in,
                         op->max_in);
    /* Operators count on it that what they are given are their own inputs, no more than they have:
     * names left empty at the end go; values read by a graph stand there only if it is a body. */
    if (n->n_in == n->n_formal_in)
        n->n_in = n->n_formal_in = n_in;
    else if (!(op->flags & SN_OP_CONTROL))
        return node_fail(err, SONDE_INVALID_MODEL, n,
                         "has a graph attribute, but this operator takes none");
    else if (op->max_in >= 0 && n->n_formal_in > (uint32_t)op->max_in)
        return node_fail(err, SONDE_INVALID_MODEL, n, "has %u inputs, at most %d are allowed",
                         n->n_formal_in, op->max_in);
    if (n->n_out < (uint32_t)op->min_out)
        return node_fail(err, SONDE_INVALID_MODEL, n, "has %u outputs, at least %d are required",
                         n->n_out, op->min_out);
    if (op->max_out >= 0 && n->n_out > (uint32_t)op->max_out)
        return node_fail(err, SONDE_INVALID_MODEL, n, "has %u outputs, at most %d are allowed",
                         n->n_out, op->max_out);
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] || (o >= (uint32_t)op->min_out && op->max_out >= 0))
            continue;
        sn_value *v = NULL;
        SN_TRY(sn_graph_add_value(g, "", &v, err));
        sn_node_set_output(n, o, v);
    }
    return SONDE_OK;
}

sonde_status sn_op_prepare(sn_graph *g, sn_node *n, sonde_error *err)
{
    bool other = false;
    const sn_op *op = sn_op_find(n->domain, n->op_type, n->opset, &other);
    if (!op && other)
        return node_fail(err, SONDE_UNSUPPORTED, n, "opset %d of this operator is not supported",
                         n->opset);
    if (!op)
        return node_fail(err, SONDE_UNSUPPORTED, n, "operator '%s%s%s' is not supported", n->domain,
                         n->domain[0] ? "." : "", n->op_type);
    SN_TRY(check_arity(g, n, op, err));
    void *params = NULL;
    if (op->params_size > 0) {
        params = sn_arena_alloc(g->arena, op->params_size, _Alignof(max_align_t));
        if (!params)
            return sn_fail_memory(err, op->params_size);
    }
    if (op->prepare) {
        sn_prep p = {.node = n, .arena = g->arena, .params = params, .err = err};
        SN_TRY(op->prepare(&p));
    }
    n->op = op;
    n->params = params;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ whole graphs */
enum { MAX_UNKNOWN = 64, MAX_DEPTH = 200 };

typedef struct unknown_list {
    struct {
        const sn_node *first;
        uint64_t count;
        bool other;
    } ops[MAX_UNKNOWN];
    size_t n;
    uint64_t more; /* nodes of operators beyond MAX_UNKNOWN distinct ones */
} unknown_list;

static void unknown_add(unknown_list *u, const sn_node *n, bool other)
{
    for (size_t i = 0; i < u->n; i++) {
        const sn_node *f = u->ops[i].first;
        if (f->opset == n->opset && strcmp(f->op_type, n->op_type) == 0 &&
            strcmp(f->domain, n->domain) == 0) {
            u->ops[i].count++;
            return;
        }
    }
    if (u->n == MAX_UNKNOWN) {
        u->more++;
        return;
    }
    u->ops[u->n].first = n;
    u->ops[u->n].count = 1;
    u->ops[u->n++].other = other;
}

static sonde_status unknown_report(const unknown_list *u, sonde_error *err)
{
    sn_list_text list = {.room = SN_LIST_BYTES, .at_least = u->more > 0};
    for (size_t i = 0; i < u->n; i++) {
        const sn_node *n = u->ops[i].first;
        char version[24] = "";
        if (u->ops[i].other)
            snprintf(version, sizeof(version), " opset %d", n->opset);
        sn_list_add(&list, "%s%s%s%s (%llu node%s, first '%s')", n->domain, n->domain[0] ? "." : "",
                    n->op_type, version, (unsigned long long)u->ops[i].count,
                    u->ops[i].count == 1 ? "" : "s", n->name ? n->name : "");
    }
    return sn_fail(err, SONDE_UNSUPPORTED, "unsupported operators: %s", sn_list_end(&list));
}

/* Calls fn on every body graph of a node. */
typedef sonde_status (*body_fn)(sn_graph *body, void *user, int depth, sonde_error *err);
static sonde_status each_body(const sn_node *n, body_fn fn, void *user, int depth, sonde_error *err)
{
    for (uint32_t a = 0; a < n->n_attrs; a++) {
        const sn_attr *attr = &n->attrs[a];
        if (attr->kind == SN_ATTR_GRAPH && attr->graph)
            SN_TRY(fn(attr->graph, user, depth + 1, err));
        if (attr->kind == SN_ATTR_GRAPHS)
            for (size_t k = 0; k < attr->n; k++)
                SN_TRY(fn(attr->graphs[k], user, depth + 1, err));
    }
    return SONDE_OK;
}

static sonde_status collect_unknown(sn_graph *g, void *user, int depth, sonde_error *err)
{
    if (depth > MAX_DEPTH)
        return sn_fail(err, SONDE_LIMIT, "bodies are nested deeper than %d", MAX_DEPTH);
    sn_graph_each (n, g) {
        bool other;
        if (!sn_op_find(n->domain, n->op_type, n->opset, &other))
            unknown_add(user, n, other);
        SN_TRY(each_body(n, collect_unknown, user, depth, err));
    }
    return SONDE_OK;
}

static sonde_status prepare_all(sn_graph *g, void *user, int depth, sonde_error *err)
{
    sn_graph_each (n, g) {
        SN_TRY(sn_op_prepare(g, n, err));
        SN_TRY(each_body(n, prepare_all, user, depth, err));
    }
    return SONDE_OK;
}

static sonde_status find_flag(sn_graph *g, void *user, int depth, sonde_error *err)
{
    uint32_t *flags = user; /* of all operators */
    if (depth > MAX_DEPTH)
        return SONDE_OK; /* it will be refused */
    sn_graph_each (n, g) {
        const sn_op *op = sn_op_find(n->domain, n->op_type, n->opset, NULL);
        *flags |= op ? op->flags : 0;
        SN_TRY(each_body(n, find_flag, user, depth, err));
    }
    return SONDE_OK;
}

bool sn_ops_any(const sn_graph *g, uint32_t flag)
{
    uint32_t flags = 0;
    (void)find_flag((sn_graph *)g, &flags, 0, NULL);
    return (flags & flag) != 0;
}

sonde_status sn_ops_resolve(sn_graph *g, sonde_error *err)
{
    unknown_list u = {.n = 0};
    SN_TRY(collect_unknown(g, &u, 0, err));
    if (u.n > 0)
        return unknown_report(&u, err);
    return prepare_all(g, NULL, 0, err);
}
