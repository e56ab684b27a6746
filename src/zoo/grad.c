/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass. Nodes are visited from the loss to the inputs; the rule of a node's type turns
 * the gradient dy of its output into gradients of those inputs a parameter lies behind, and what
 * several readers of a value give is added up. New nodes are named after the one they belong to:
 * those of "/bert/pooler/Softmax" are "/grad/bert/pooler/Softmax/Mul" and so on.
 *
 * Types of inner values are not known while a graph is written, so rules work without: rows of
 * tokens are made with Flatten, shapes are read with Shape. The gradient of a value that was
 * broadcast is summed where that is certain to be right: at a parameter, or in the scatter that is
 * the gradient of a Gather. */
#include "zoo/grad.h"

#include <string.h>

#include "zoo/blocks.h"

typedef struct pass {
    sn_builder *b;
    sn_value **grads; /* by id */
    bool *wanted;     /* by id: a parameter lies behind it */
    const char *path; /* of the nodes being added */
} pass;

typedef void (*rule_fn)(pass *p, const sn_node *n, sn_value *dy);

/* ------------------------------------------------------------------ small words */
static sn_value *one(pass *p, const char *op_type, sn_value *x)
{
    return sn_blk_unary(p->b, p->path, op_type, x);
}

static sn_value *two(pass *p, const char *op_type, sn_value *x, sn_value *y)
{
    return sn_blk_binary(p->b, p->path, op_type, x, y);
}

static sn_value *number(pass *p, float value)
{
    return sn_b_scalar(p->b, p->path, value);
}

static sn_value *reshape(pass *p, sn_value *x, sn_value *shape)
{
    return two(p, "Reshape", x, shape);
}

static bool wants(const pass *p, const sn_value *v)
{
    return p->wanted[v->id];
}

static void give(pass *p, const sn_value *v, sn_value *gradient)
{
    sn_value **sum = &p->grads[v->id];
    if (wants(p, v))
        *sum = *sum ? two(p, "Add", *sum, gradient) : gradient;
}

/* All but the last axis as one. */
static sn_value *rows(pass *p, sn_value *x)
{
    return sn_b_op(p->b, p->path, "Flatten", SN_IN(x), SN_ATTRS(sn_a_int("axis", -1)));
}

static sn_value *sum(pass *p, sn_value *x, int64_t axis, bool keep)
{
    return sn_b_op(p->b, p->path, "ReduceSum", SN_IN(x, sn_blk_ints(p->b, p->path, &axis, 1)),
                   SN_ATTRS(sn_a_int("keepdims", keep)));
}

static sn_value *mean_of_last(pass *p, sn_value *x)
{
    const int64_t last = -1;
    return sn_b_op(p->b, p->path, "ReduceMean", SN_IN(x),
                   SN_ATTRS(sn_a_ints("axes", &last, 1), sn_a_int("keepdims", 1)));
}

/* The gradient of a parameter [width] that was added to, or scaled, every row. */
static sn_value *sum_of_rows(pass *p, sn_value *x)
{
    return sum(p, rows(p, x), 0, false);
}

/* ------------------------------------------------------------------ matrix products */
static bool is_matrix(const sn_value *v)
{
    const sn_attr *perm = v->producer ? sn_node_attr(v->producer, "perm") : NULL;
    return sn_grad_is_parameter(v) ? v->fact.data->rank == 2 : perm && perm->n == 2;
}

static sn_value *transposed_matrix(pass *p, sn_value *v)
{
    return v->producer ? v->producer->in[0].value
                       : sn_blk_transpose(p->b, p->path, v, (const int64_t[]){1, 0}, 2);
}

static sn_value *transposed(pass *p, sn_value *v)
{
    return sn_blk_transpose(p->b, p->path, v, (const int64_t[]){0, 1, 3, 2}, 4);
}

/* y = a · b: da = dy · bᵀ, db = aᵀ · dy. Weights gather over all rows; products of heads are a
 * stack of [batch, heads]. */
static void back_matmul(pass *p, const sn_node *n, sn_value *dy)
{
    sn_value *a = n->in[0].value, *b = n->in[1].value;
    const bool weights = is_matrix(b);
    if (wants(p, a))
        give(p, a, two(p, "MatMul", dy, weights ? transposed_matrix(p, b) : transposed(p, b)));
    if (!wants(p, b))
        return;
    if (weights)
        give(p, b,
             sn_b_op(p->b, p->path, "Gemm", SN_IN(rows(p, a), rows(p, dy)),
                     SN_ATTRS(sn_a_int("transA", 1))));
    else
        give(p, b, two(p, "MatMul", transposed(p, a), dy));
}

/* ------------------------------------------------------------------ arithmetic */
static void back_add(pass *p, const sn_node *n, sn_value *dy)
{
    for (uint32_t i = 0; i < 2; i++) {
        const sn_value *x = n->in[i].value;
        if (wants(p, x))
            give(p, x, sn_grad_is_parameter(x) ? sum_of_rows(p, dy) : dy);
    }
}

static void back_mul(pass *p, const sn_node *n, sn_value *dy)
{
    for (uint32_t i = 0; i < 2; i++)
        if (wants(p, n->in[i].value))
            give(p, n->in[i].value, two(p, "Mul", dy, n->in[1 - i].value));
}

/* By a constant. */
static void back_div(pass *p, const sn_node *n, sn_value *dy)
{
    give(p, n->in[0].value, two(p, "Div", dy, n->in[1].value));
}

/* d erf(x) = 2/√π · exp(-x²). */
static void back_erf(pass *p, const sn_node *n, sn_value *dy)
{
    sn_value *x = n->in[0].value;
    sn_value *slope = one(p, "Exp", one(p, "Neg", two(p, "Mul", x, x)));
    slope = two(p, "Mul", slope, number(p, 1.12837917f));
    give(p, x, two(p, "Mul", dy, slope));
}

/* dx = y · (dy - Σ dy · y). */
static void back_softmax(pass *p, const sn_node *n, sn_value *dy)
{
    sn_value *y = n->out[0];
    sn_value *pull = sum(p, two(p, "Mul", dy, y), -1, true);
    give(p, n->in[0].value, two(p, "Mul", y, two(p, "Sub", dy, pull)));
}

/* With x̂ = (x - mean) / σ, computed again, and g = dy · scale:
 * dx = (g - mean(g) - x̂ · mean(g · x̂)) / σ. */
static void back_layer_norm(pass *p, const sn_node *n, sn_value *dy)
{
    sn_value *x = n->in[0].value, *scale = n->in[1].value, *shift = n->in[2].value;
    sn_value *centred = two(p, "Sub", x, mean_of_last(p, x));
    sn_value *variance = mean_of_last(p, two(p, "Mul", centred, centred));
    sn_value *sigma =
        one(p, "Sqrt", two(p, "Add", variance, number(p, sn_node_attr(n, "epsilon")->f)));
    sn_value *normal = two(p, "Div", centred, sigma);
    give(p, shift, sum_of_rows(p, dy));
    give(p, scale, sum_of_rows(p, two(p, "Mul", dy, normal)));
    if (!wants(p, x))
        return;
    sn_value *g = two(p, "Mul", dy, scale);
    sn_value *along = two(p, "Mul", normal, mean_of_last(p, two(p, "Mul", g, normal)));
    g = two(p, "Sub", two(p, "Sub", g, mean_of_last(p, g)), along);
    give(p, x, two(p, "Div", g, sigma));
}

/* ------------------------------------------------------------------ moving around */
static void back_reshape(pass *p, const sn_node *n, sn_value *dy)
{
    give(p, n->in[0].value, reshape(p, dy, one(p, "Shape", n->in[0].value)));
}

static void back_transpose(pass *p, const sn_node *n, sn_value *dy)
{
    const sn_attr *perm = sn_node_attr(n, "perm");
    int64_t inverse[SN_MAX_RANK];
    for (size_t i = 0; i < perm->n; i++)
        inverse[perm->ints[i]] = (int64_t)i;
    give(p, n->in[0].value, sn_blk_transpose(p->b, p->path, dy, inverse, perm->n));
}

/* Rows of a table: each row's gradients are added up where it was read. Indices that were broadcast
 * over the batch (positions) are so here as well. */
static void back_gather(pass *p, const sn_node *n, sn_value *dy)
{
    const int64_t first = 0, last = -1, column[2] = {-1, 1};
    const sn_value *table = n->in[0].value;
    sn_builder *b = p->b;
    sn_value *lead = sn_b_op(b, p->path, "Slice",
                             SN_IN(one(p, "Shape", dy), sn_blk_ints(b, p->path, &first, 1),
                                   sn_blk_ints(b, p->path, &last, 1)),
                             SN_NO_ATTRS);
    sn_value *at = two(p, "Expand", n->in[1].value, lead);
    at = reshape(p, at, sn_blk_ints(b, p->path, column, 2));
    sn_value *dims = sn_blk_ints(b, p->path, table->fact.data->dims, 2);
    sn_value *zeros = sn_blk_fill(b, p->path, dims, SONDE_DTYPE_F32, 0);
    give(p, table,
         sn_b_op(b, p->path, "ScatterND", SN_IN(zeros, at, rows(p, dy)),
                 SN_ATTRS(sn_a_text("reduction", "add"))));
}

/* ------------------------------------------------------------------ the loss */
/* Mean over the rows whose label counts: d scores = (softmax - one-hot) / how many count, and zero
 * for the others. dy is 1. */
static void back_loss(pass *p, const sn_node *n, sn_value *dy)
{
    (void)dy;
    sn_builder *b = p->b;
    sn_value *labels = n->in[1].value;
    sn_value *ignored = sn_blk_int(b, p->path, sn_node_attr(n, "ignore_index")->i);
    sn_value *out = two(p, "Equal", labels, ignored);
    sn_value *label =
        sn_b_op(b, p->path, "Where", SN_IN(out, sn_blk_int(b, p->path, 0), labels), SN_NO_ATTRS);
    sn_value *counts = sn_blk_cast(b, p->path, one(p, "Not", out), SONDE_DTYPE_F32);
    sn_value *weight = two(p, "Div", counts, sum(p, counts, 0, true));
    sn_value *at = sn_blk_axis(b, p->path, "Unsqueeze", label, 1);
    sn_value *minus = sn_blk_fill(b, p->path, one(p, "Shape", at), SONDE_DTYPE_F32, -1);
    sn_value *d = sn_b_op(b, p->path, "ScatterElements", SN_IN(one(p, "Exp", n->out[1]), at, minus),
                          SN_ATTRS(sn_a_int("axis", 1), sn_a_text("reduction", "add")));
    give(p, n->in[0].value, two(p, "Mul", d, sn_blk_axis(b, p->path, "Unsqueeze", weight, 1)));
}

/* ------------------------------------------------------------------ the walk */
static const struct rule {
    const char *op_type;
    rule_fn back;
} rules[] = {
    {"MatMul", back_matmul},
    {"Add", back_add},
    {"Mul", back_mul},
    {"Div", back_div},
    {"Erf", back_erf},
    {"Softmax", back_softmax},
    {"Reshape", back_reshape},
    {"Transpose", back_transpose},
    {"Gather", back_gather},
    {"LayerNormalization", back_layer_norm},
    {"SoftmaxCrossEntropyLoss", back_loss},
};

static rule_fn rule_of(const sn_node *n)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].op_type, n->op_type) == 0)
            return rules[i].back;
    return NULL;
}

/* Notes which values a parameter lies behind. Sizes have no gradient. */
static bool mark(pass *p)
{
    const sn_graph *g = p->b->graph;
    for (size_t i = 0; i < g->values.n; i++)
        p->wanted[i] = sn_grad_is_parameter(g->values.data[i]);
    for (const sn_node *n = g->first; n; n = n->next) {
        bool any = false;
        for (uint32_t i = 0; i < n->n_in; i++)
            any |= n->in[i].value && wants(p, n->in[i].value);
        if (!any || strcmp(n->op_type, "Shape") == 0)
            continue;
        if (!rule_of(n)) {
            *p->b->status = sn_fail(p->b->err, SONDE_INTERNAL, "zoo: %s has no gradient", n->name);
            return false;
        }
        p->wanted[n->out[0]->id] = true;
    }
    return true;
}

/* "/bert/layer.0/Add" ► "grad.bert.layer.0.Add". */
static const char *path_of(sn_builder *b, const sn_node *n)
{
    char *path = sn_b_ok(b) ? sn_arena_printf(&b->model->arena, "grad%s", n->name) : NULL;
    for (char *c = path; c && *c; c++)
        if (*c == '/')
            *c = '.';
    if (!path && sn_b_ok(b))
        *b->status = sn_fail_memory(b->err, 0);
    return path;
}

sn_value *const *sn_grad_backward(sn_builder *b, sn_value *loss)
{
    if (!sn_b_ok(b))
        return NULL;
    const size_t n = b->graph->values.n;
    pass p = {.b = b,
              .grads = SN_NEW_N(&b->model->arena, sn_value *, n),
              .wanted = SN_NEW_N(&b->model->arena, bool, n)};
    if (!p.grads || !p.wanted) {
        *b->status = sn_fail_memory(b->err, n * sizeof(void *));
        return NULL;
    }
    if (!mark(&p))
        return NULL;
    const sn_node *node = b->graph->last;
    p.grads[loss->id] = loss; /* stands for 1: back_loss does not read it */
    for (; node && sn_b_ok(b); node = node->prev) {
        const sn_value *out = node->n_out ? node->out[0] : NULL;
        if (!out || !p.grads[out->id] || !p.wanted[out->id] || !(p.path = path_of(b, node)))
            continue;
        rule_of(node)(&p, node, p.grads[out->id]);
    }
    return sn_b_ok(b) ? p.grads : NULL;
}
