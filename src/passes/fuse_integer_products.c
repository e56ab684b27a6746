/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are quantised dynamically multiply bytes and scale the sums behind that:
 * MatMulInteger ► Cast to f32 ► Mul by the product of two scales ► Add of a bias. They become one
 * MatMulIntegerToFloat, or a sonde.ConvIntegerToFloat where it is a ConvInteger. Both round where
 * the nodes do, and sums stay modulo 2^32 (`wraps`), so the results are the same bits. A
 * MatMulIntegerToFloat that fuse-qdq made takes the bias behind it in the same way. */
#include <string.h>

#include "passes/rewrite.h"

enum { MAX_NODES = 5, A_SCALE = 2, B_SCALE, A_ZERO, B_ZERO, BIAS, INPUTS };

typedef struct product {
    sn_node *nodes[MAX_NODES]; /* the product first, the one that makes the result last */
    uint32_t n;
    int columns;                 /* the axis of the result that has the columns (channels) */
    sn_value *a_scale, *b_scale; /* a_scale NULL: 1 */
    sn_value *bias;              /* NULL: none */
} product;

static sn_value *input(const sn_node *n, uint32_t i)
{
    return i < n->n_in ? n->in[i].value : NULL;
}

static bool is_single(const sn_value *v)
{
    int64_t count;
    return v->fact.type.rank >= 0 && sn_type_count(&v->fact.type, &count) && count == 1;
}

/* One number for every column of y, as broadcasting brings them together. */
static bool is_row(const sn_value *v, const sn_value *y, int columns)
{
    const sn_type *t = &v->fact.type, *of = &y->fact.type;
    const int at = t->rank - (of->rank - columns);
    int64_t count;
    return t->rank <= of->rank && at >= 0 && sn_dim_known(t->dims[at]) &&
           t->dims[at] == of->dims[columns] && sn_type_count(t, &count) && count == t->dims[at];
}

/* ------------------------------------------------------------------ finding */
/* A zero point of the activations, and one of the weights or one per column. */
static bool zeros_fit(const sn_node *n, int columns)
{
    const sn_value *a = input(n, 2), *b = input(n, 3);
    const sn_dim of = n->out[0]->fact.type.dims[columns];
    return (!a || is_single(a)) &&
           (!b || is_single(b) ||
            (b->fact.type.rank == 1 && sn_dim_known(of) && b->fact.type.dims[0] == of));
}

static bool match_product(sn_node *n, product *m)
{
    const bool conv = sn_node_is(n, "ConvInteger");
    const sn_value *a = input(n, 0), *b = input(n, 1), *y = n->n_out == 1 ? n->out[0] : NULL;
    if ((!conv && !sn_node_is(n, "MatMulInteger")) || !a || !b || !y || a->fact.type.rank < 2 ||
        b->fact.type.rank < 2 || y->fact.type.rank < 2)
        return false;
    *m = (product){.nodes = {n}, .n = 1, .columns = conv ? 1 : y->fact.type.rank - 1};
    return zeros_fit(n, m->columns);
}

static bool is_scale(const sn_value *v, const sn_value *y, int columns)
{
    return sn_value_is_dtype(v, SONDE_DTYPE_F32) && v->fact.type.rank <= y->fact.type.rank &&
           (is_single(v) || is_row(v, y, columns));
}

/* The factor of y: a product of two numbers where the first is one for all, or anything that is
 * one number or one per column. */
static bool match_scale(product *m, sn_value *scale, const sn_value *y)
{
    sn_node *mul = scale->producer;
    if (!is_scale(scale, y, m->columns))
        return false;
    m->b_scale = scale;
    if (!mul || !sn_node_is(mul, "Mul") || mul->n_in != 2)
        return true;
    for (uint32_t i = 0; i < 2; i++) {
        sn_value *a = mul->in[i].value, *b = mul->in[1 - i].value;
        if (!a || !b || !is_scale(a, y, m->columns) || !is_single(a) || !is_scale(b, y, m->columns))
            continue;
        m->a_scale = a;
        m->b_scale = b;
        if (sn_value_only_reader(scale))
            m->nodes[m->n++] = mul;
        break;
    }
    return true;
}

static void match_bias(product *m, const sn_value *y)
{
    sn_node *add = sn_value_only_reader(y);
    if (!add || !sn_node_is(add, "Add"))
        return;
    sn_value *bias = sn_node_other_input(add, y);
    if (!bias || !sn_value_is_const(bias) || !sn_value_is_dtype(bias, SONDE_DTYPE_F32) ||
        !sn_tensor_is_plain(bias->fact.data) || !is_row(bias, y, m->columns))
        return;
    m->bias = bias;
    m->nodes[m->n++] = add;
}

static bool match(sn_node *n, product *m)
{
    if (!match_product(n, m))
        return false;
    sn_node *cast = sn_value_only_reader(n->out[0]);
    if (!cast || !sn_node_is(cast, "Cast") || !sn_value_is_dtype(cast->out[0], SONDE_DTYPE_F32))
        return false;
    sn_node *mul = sn_value_only_reader(cast->out[0]);
    sn_value *scale = mul && sn_node_is(mul, "Mul") ? sn_node_other_input(mul, cast->out[0]) : NULL;
    if (!scale || !match_scale(m, scale, n->out[0]))
        return false;
    m->nodes[m->n++] = cast;
    m->nodes[m->n++] = mul;
    match_bias(m, mul->out[0]);
    return true;
}

/* ------------------------------------------------------------------ rewriting */
static sonde_status one(sn_graph *g, sn_pass_env *env, sn_value **out)
{
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_F32, NULL, 0, out, &data));
    *(float *)data = 1.0f;
    return SONDE_OK;
}

static sonde_status set_inputs(sn_graph *g, sn_pass_env *env, product *m, sn_node *made)
{
    sn_node *n = m->nodes[0];
    if (!m->a_scale)
        SN_TRY(one(g, env, &m->a_scale));
    if (m->bias)
        SN_TRY(sn_pass_flat(g, env, m->bias, &m->bias));
    sn_value *const in[INPUTS] = {input(n, 0), input(n, 1), m->a_scale, m->b_scale,
                                  input(n, 2), input(n, 3), m->bias};
    for (uint32_t i = 0; i < made->n_in; i++)
        sn_node_set_input(made, i, in[i]);
    return SONDE_OK;
}

static sonde_status apply(sn_graph *g, sn_pass_env *env, product *m)
{
    sn_node *n = m->nodes[0], *last = m->nodes[m->n - 1], *made;
    const bool conv = sn_node_is(n, "ConvInteger");
    const uint32_t n_in = m->bias ? INPUTS : input(n, 3) ? BIAS : input(n, 2) ? B_ZERO : A_ZERO;
    SN_TRY(sn_graph_add_node(g, last, conv ? "sonde" : "com.microsoft",
                             conv ? "ConvIntegerToFloat" : "MatMulIntegerToFloat", n->name, n_in, 1,
                             &made, env->err));
    made->opset = 1;
    SN_TRY(set_inputs(g, env, m, made));
    for (uint32_t i = 0; i < n->n_attrs; i++)
        SN_TRY(sn_node_set_attr(g, made, &n->attrs[i], env->err));
    const sn_attr wraps = {.name = "wraps", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    SN_TRY(sn_node_set_attr(g, made, &wraps, env->err));
    sn_node_set_output(made, 0, last->out[0]);
    SN_TRY(sn_node_add_post_op(g, made, "Cast", env->err));
    SN_TRY(sn_node_add_post_op(g, made, "Mul", env->err));
    if (m->bias)
        SN_TRY(sn_node_add_post_op(g, made, "Add", env->err));
    SN_TRY(sn_graph_replace(g, m->nodes, m->n, made, n, env->err));
    return sn_node_refresh(g, made, env->err);
}

/* The first node behind the product that stays. */
static sn_node *behind(const product *m)
{
    sn_node *n = m->nodes[0]->next;
    for (uint32_t i = 0; n && i < m->n; i++)
        if (m->nodes[i] == n) {
            n = n->next;
            i = 0;
        }
    return n;
}

/* MatMulIntegerToFloat ► Add of a constant row. */
static sonde_status take_bias(sn_graph *g, sn_pass_env *env, sn_node *n, bool *done)
{
    const sn_value *y = n->n_out == 1 ? n->out[0] : NULL;
    product m = {.nodes = {n}, .n = 1};
    *done = false;
    if (strcmp(n->op_type, "MatMulIntegerToFloat") != 0 || !y || y->fact.type.rank < 2 ||
        input(n, BIAS))
        return SONDE_OK;
    m.columns = y->fact.type.rank - 1;
    match_bias(&m, y);
    if (!m.bias)
        return SONDE_OK;
    *done = true;
    SN_TRY(sn_pass_flat(g, env, m.bias, &m.bias));
    while (n->n_in < BIAS)
        SN_TRY(sn_node_add_input(g, n, NULL, env->err));
    if (n->n_in > BIAS)
        sn_node_set_input(n, BIAS, m.bias);
    else
        SN_TRY(sn_node_add_input(g, n, m.bias, env->err));
    sn_node_set_output(n, 0, m.nodes[1]->out[0]);
    SN_TRY(sn_node_add_post_op(g, n, "Add", env->err));
    SN_TRY(sn_graph_replace(g, &m.nodes[1], 1, n, n, env->err));
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        product m;
        bool done;
        SN_TRY(take_bias(g, env, n, &done));
        if (done) {
            n_next = n->next;
            (*changes)++;
        }
        if (!match(n, &m))
            continue;
        n_next = behind(&m);
        SN_TRY(apply(g, env, &m));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_fuse_integer_products = {
    .name = "fuse-integer-products",
    .summary = "fuses scales and biases into products of integers",
    .run = run,
    .bodies = true,
};
