/* SPDX-License-Identifier: Apache-2.0 */
/* Matching and applying epilogues. Every value on the way has one reader and is no output, except
 * x in x * Sigmoid(x), which has exactly the two. */
#include "passes/epilogue.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool sn_clip_bounds(const sn_node *n, float p[2])
{
    p[0] = -FLT_MAX;
    p[1] = FLT_MAX;
    if (n->opset < 11) {
        p[0] = sn_node_attr_float(n, "min", p[0]);
        p[1] = sn_node_attr_float(n, "max", p[1]);
        return true;
    }
    for (uint32_t i = 1; i < 3 && i < n->n_in; i++)
        if (n->in[i].value && !sn_value_scalar_f32(n->in[i].value, &p[i - 1]))
            return false;
    return true;
}

/* An activation that is one node. */
static bool match_unary(sn_node *n, const sn_value *v, sn_epilogue *e)
{
    static const char *const plain[] = {"Relu", "Sigmoid", "HardSwish", "Tanh", "Mish"};
    if (n->n_in < 1 || n->in[0].value != v || n->n_out != 1)
        return false;
    e->n_params = 0;
    e->activation = NULL;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (sn_node_is(n, plain[i]))
            e->activation = plain[i];
    if (sn_node_is(n, "Clip") && sn_clip_bounds(n, e->params)) {
        e->activation = "Clip";
        e->n_params = 2;
    } else if (sn_node_is(n, "HardSigmoid")) {
        e->activation = "HardSigmoid";
        e->params[0] = sn_node_attr_float(n, "alpha", 0.2f);
        e->params[1] = sn_node_attr_float(n, "beta", 0.5f);
        e->n_params = 2;
    } else if (sn_node_is(n, "LeakyRelu")) {
        e->activation = "LeakyRelu";
        e->params[0] = sn_node_attr_float(n, "alpha", 0.01f);
        e->n_params = 1;
    } else if (sn_node_is(n, "Elu") || sn_node_is(n, "Celu")) {
        e->activation = n->op_type;
        e->params[0] = sn_node_attr_float(n, "alpha", 1.0f);
        e->n_params = 1;
    } else if (sn_node_is(n, "Selu")) {
        e->activation = "Selu";
        e->params[0] = sn_node_attr_float(n, "gamma", 1.05070102214813232421875f);
        e->params[1] = sn_node_attr_float(n, "alpha", 1.67326319217681884765625f);
        e->n_params = 2;
    } else if (sn_node_is(n, "Swish")) {
        e->activation = "Silu";
        e->params[0] = sn_node_attr_float(n, "alpha", 1.0f);
        e->n_params = 1;
    } else if (sn_node_is(n, "Gelu")) {
        const sn_attr *a = sn_node_attr(n, "approximate");
        bool tanh_form =
            a && a->kind == SN_ATTR_STRING && a->s.size == 4 && !memcmp(a->s.data, "tanh", 4);
        e->activation = tanh_form ? "GeluTanh" : "Gelu";
    }
    if (!e->activation)
        return false;
    e->shown = n->op_type;
    e->nodes[e->n_nodes++] = n;
    return true;
}

/* x * Sigmoid(x) is Silu; x * HardSigmoid(x) with slope 1/6 and offset 1/2 is HardSwish. */
static bool match_gate(const sn_value *v, sn_epilogue *e)
{
    if (v->n_uses != 2 || v->n_outputs)
        return false;
    sn_node *a = v->uses->node, *b = v->uses->next->node;
    sn_node *mul = sn_node_is(a, "Mul") ? a : b, *gate = mul == a ? b : a;
    if (mul == gate || !sn_node_is(mul, "Mul") || gate->n_in != 1 || gate->n_out != 1 ||
        sn_value_only_reader(gate->out[0]) != mul || sn_node_other_input(mul, v) != gate->out[0])
        return false;
    bool hard = sn_node_is(gate, "HardSigmoid") &&
                fabsf(sn_node_attr_float(gate, "alpha", 0.2f) - 1.0f / 6.0f) < 1e-6f &&
                sn_node_attr_float(gate, "beta", 0.5f) == 0.5f;
    if (!hard && !sn_node_is(gate, "Sigmoid"))
        return false;
    e->activation = e->shown = hard ? "HardSwish" : "Silu";
    e->n_params = 0;
    e->nodes[e->n_nodes++] = gate;
    e->nodes[e->n_nodes++] = mul;
    return true;
}

/* The node that squares v and nothing else reads v. */
static sn_node *squares(const sn_value *v)
{
    float exponent;
    if (v->n_outputs || !v->n_uses)
        return NULL;
    sn_node *n = v->uses->node;
    if (v->n_uses == 1 && sn_node_is(n, "Pow") && n->n_in == 2 && n->in[0].value == v &&
        sn_value_scalar_f32(n->in[1].value, &exponent) && exponent == 2.0f)
        return n;
    const bool twice = v->n_uses == 2 && v->uses->next->node == n;
    return twice && sn_node_is(n, "Mul") && n->n_in == 2 ? n : NULL;
}

/* The one number that the only reader of v, of that type, multiplies it by or adds. */
static sn_node *by_number(const sn_value *v, const char *op_type, float *number)
{
    sn_node *n = sn_value_only_reader(v);
    return n && sn_node_is(n, op_type) && n->out[0]->fact.type.rank == v->fact.type.rank &&
                   sn_value_scalar_f32(sn_node_other_input(n, v), number)
               ? n
               : NULL;
}

/* s · Relu(x)² + b, with or without the two numbers (StarReLU, squared ReLU). */
static bool match_star_relu(sn_node *relu, const sn_value *v, sn_epilogue *e)
{
    sn_node *square =
        sn_node_is(relu, "Relu") && relu->in[0].value == v ? squares(relu->out[0]) : NULL;
    if (!square || square->out[0]->fact.type.rank != v->fact.type.rank)
        return false;
    e->nodes[e->n_nodes++] = relu;
    e->nodes[e->n_nodes++] = square;
    e->params[0] = 1.0f;
    e->params[1] = 0.0f;
    e->n_params = 2;
    sn_node *last = by_number(square->out[0], "Mul", &e->params[0]);
    if (last)
        e->nodes[e->n_nodes++] = last;
    last = by_number(e->nodes[e->n_nodes - 1]->out[0], "Add", &e->params[1]);
    if (last)
        e->nodes[e->n_nodes++] = last;
    e->activation = e->shown = "StarRelu";
    return true;
}

/* Nothing says that the two differ: the operator finds out when it is bound. */
static bool may_agree(const sn_type *a, const sn_type *b)
{
    if (a->kind != SN_KIND_TENSOR || b->kind != SN_KIND_TENSOR || a->rank < 1 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        const bool open = !sn_dim_known(a->dims[i]) || !sn_dim_known(b->dims[i]);
        if (!sn_dim_same(a->dims[i], b->dims[i]) && (!open || a->dims[i] == 1 || b->dims[i] == 1))
            return false;
    }
    return true;
}

static sn_value *match_residual(const sn_node *n, const sn_value *v, const uint32_t *order,
                                bool (*is_candidate)(const sn_node *), bool spreads)
{
    const sn_node *add = sn_value_only_reader(v);
    if (!add || !sn_node_is(add, "Add"))
        return NULL;
    sn_value *other = sn_node_other_input(add, v);
    if (!other || !sn_value_is_dtype(other, SONDE_DTYPE_F32) ||
        !(spreads ? may_agree(&other->fact.type, &v->fact.type)
                  : sn_type_same_shape(&other->fact.type, &v->fact.type)))
        return NULL;
    const sn_node *rival = other->producer;
    if (rival && is_candidate(rival) && sn_value_only_reader(other) &&
        order[rival->id] > order[n->id])
        return NULL;
    return other;
}

void sn_epilogue_match(const sn_node *n, const uint32_t *order,
                       bool (*is_candidate)(const sn_node *), bool spreads, sn_epilogue *e)
{
    memset(e, 0, sizeof *e);
    e->activation = e->shown = "";
    const sn_value *v = n->out[0];
    sn_node *next = sn_value_only_reader(v);
    e->residual = match_residual(n, v, order, is_candidate, spreads);
    if (e->residual) {
        e->nodes[e->n_nodes++] = next;
        v = next->out[0];
        next = sn_value_only_reader(v);
    }
    if ((next && (match_star_relu(next, v, e) || match_unary(next, v, e))) || match_gate(v, e))
        return;
    e->activation = e->shown = "";
    e->n_params = 0;
}

static sonde_status set_attributes(sn_graph *g, sn_node *n, const sn_epilogue *e, sonde_error *err)
{
    sn_attr a = {.name = "activation",
                 .kind = SN_ATTR_STRING,
                 .n = 1,
                 .s = {e->activation, strlen(e->activation)}};
    SN_TRY(sn_node_set_attr(g, n, &a, err));
    if (!e->n_params)
        return SONDE_OK;
    float *params = SN_NEW_N(g->arena, float, e->n_params);
    if (!params)
        return sn_fail_memory(err, e->n_params * sizeof *params);
    memcpy(params, e->params, e->n_params * sizeof *params);
    a = (sn_attr){
        .name = "activation_params", .kind = SN_ATTR_FLOATS, .n = e->n_params, .floats = params};
    return sn_node_set_attr(g, n, &a, err);
}

sonde_status sn_epilogue_apply(sn_graph *g, sn_pass_env *env, sn_node *n, const char *op_type,
                               uint32_t residual_index, const sn_epilogue *e, uint32_t *order)
{
    n->domain = "sonde";
    n->op_type = op_type;
    n->opset = 1;
    if (e->residual) {
        while (n->n_in < residual_index)
            SN_TRY(sn_node_add_input(g, n, NULL, env->err));
        SN_TRY(sn_node_add_input(g, n, e->residual, env->err));
        SN_TRY(sn_node_add_post_op(g, n, "Add", env->err));
    }
    SN_TRY(set_attributes(g, n, e, env->err));
    if (e->activation[0])
        SN_TRY(sn_node_add_post_op(g, n, e->shown, env->err));
    sn_node *last = e->n_nodes ? e->nodes[e->n_nodes - 1] : NULL;
    if (last) {
        /* Where the residual is known to be there; nothing between reads n's output. */
        sn_node_move(g, n, last);
        order[n->id] = order[last->id];
        sn_node_set_output(n, 0, last->out[0]);
        SN_TRY(sn_graph_replace(g, e->nodes, e->n_nodes, n, n, env->err));
    }
    return sn_node_refresh(g, n, env->err);
}

sonde_status sn_epilogue_walk(sn_graph *g, sn_pass_env *env, bool (*is_candidate)(const sn_node *),
                              sn_fuse_fn fuse, uint32_t *changes)
{
    size_t bytes = g->n_nodes * sizeof(uint32_t);
    uint32_t *order = sn_alloc_zero(g->alloc, bytes), at = 0;
    if (!order)
        return sn_fail_memory(env->err, bytes);
    for (const sn_node *n = g->first; n; n = n->next)
        order[n->id] = at++;
    sonde_status st = SONDE_OK;
    sn_node *next;
    for (sn_node *n = g->first; n && st == SONDE_OK; n = next) {
        /* Fusing takes away nodes behind n and may move n itself further on, so the walk goes on
         * from the place where n stood. */
        sn_node *before = n->prev;
        if (is_candidate(n))
            st = fuse(g, env, n, order, changes);
        next = n->prev == before ? n->next : before ? before->next : g->first;
    }
    sn_free(g->alloc, order, bytes);
    return st;
}
