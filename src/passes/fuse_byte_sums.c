/* SPDX-License-Identifier: Apache-2.0 */
/* A residual of bytes: QLinearAdd of what a QLinearConv makes and other bytes of that shape becomes
 * sonde.QLinearConvAdd. It rounds twice, as the two do, so the results are the same bits; what is
 * saved is writing and reading the bytes in between. */
#include "passes/rewrite.h"

/* Inputs of the two, and those that the fused node has behind QLinearConv's. */
enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, SUM_SCALE, SUM_ZERO };
enum { WEIGHTS = 3, Y_SCALE = 6, Y_ZERO, BIAS, CONV_INPUTS, INPUTS = 14 };

static sn_value *input(const sn_node *n, uint32_t i)
{
    return i < n->n_in ? n->in[i].value : NULL;
}

/* Are both the same number? A zero point that is absent is 0. */
static bool equal(const sn_value *a, const sn_value *b)
{
    float x = 0, y = 0;
    if (a == b)
        return true;
    if ((a && (!sn_value_is_const(a) || sn_tensor_count(a->fact.data) != 1)) ||
        (b && (!sn_value_is_const(b) || sn_tensor_count(b->fact.data) != 1)))
        return false;
    if (a && sn_value_is_dtype(a, SONDE_DTYPE_F32))
        return b && sn_value_scalar_f32(a, &x) && sn_value_scalar_f32(b, &y) && x == y;
    uint8_t of_a = 0, of_b = 0;
    if ((a && !sn_value_is_byte(a)) || (b && !sn_value_is_byte(b)))
        return false;
    if (a)
        sn_tensor_read(a->fact.data, 0, 1, &of_a);
    if (b)
        sn_tensor_read(b->fact.data, 0, 1, &of_b);
    return of_a == of_b;
}

/* Of the result; 0: not known. */
static int64_t channels_of(const sn_node *conv)
{
    const sn_type *w = &conv->in[WEIGHTS].value->fact.type;
    return w->rank > 0 && sn_dim_known(w->dims[0]) ? w->dims[0] : 0;
}

/* The fused node has a bias: one of zeros where the convolution has none. */
static sonde_status bias_of(sn_graph *g, sn_pass_env *env, const sn_node *conv, sn_value **bias)
{
    const int64_t channels = channels_of(conv);
    void *data;
    *bias = input(conv, BIAS);
    if (*bias)
        return SONDE_OK;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I32, &channels, 1, bias, &data));
    memset(data, 0, (size_t)channels * sizeof(int32_t));
    return SONDE_OK;
}

/* The convolution that makes operand `at` of the sum, if nothing else reads it and its scale and
 * zero point are the operand's. */
static sn_node *conv_of(const sn_node *add, uint32_t at)
{
    const sn_value *v = input(add, at), *other = input(add, at == A ? B : A);
    sn_node *conv = v ? v->producer : NULL;
    if (!conv || !other || v == other || !sn_node_is(conv, "QLinearConv") ||
        sn_value_only_reader(v) != add || !sn_value_is_byte(v) ||
        v->fact.type.dtype != other->fact.type.dtype ||
        !sn_type_same_shape(&v->fact.type, &other->fact.type) ||
        (!input(conv, BIAS) && !channels_of(conv)))
        return NULL;
    return equal(input(conv, Y_SCALE), input(add, at + 1)) &&
                   equal(input(conv, Y_ZERO), input(add, at + 2))
               ? conv
               : NULL;
}

static bool is_sum(const sn_node *n)
{
    return strcmp(n->op_type, "QLinearAdd") == 0 && strcmp(n->domain, "com.microsoft") == 0 &&
           n->n_out == 1 && n->out[0] && input(n, A_SCALE) && input(n, B_SCALE) &&
           input(n, SUM_SCALE);
}

static sonde_status fuse(sn_graph *g, sn_pass_env *env, sn_node *add, sn_node *conv, bool second)
{
    const uint32_t z = second ? A : B;
    sn_node *made, *both[2] = {conv, add};
    const uint32_t n_in = input(add, SUM_ZERO) ? INPUTS : INPUTS - 1;
    sn_value *bias;
    SN_TRY(bias_of(g, env, conv, &bias));
    SN_TRY(
        sn_graph_add_node(g, add, "sonde", "QLinearConvAdd", conv->name, n_in, 1, &made, env->err));
    made->opset = 1;
    for (uint32_t i = 0; i < CONV_INPUTS; i++)
        sn_node_set_input(made, i, i == BIAS ? bias : input(conv, i));
    for (uint32_t i = 0; i < 3; i++)
        sn_node_set_input(made, CONV_INPUTS + i, input(add, z + i));
    for (uint32_t i = 0; CONV_INPUTS + 3 + i < n_in; i++)
        sn_node_set_input(made, CONV_INPUTS + 3 + i, input(add, SUM_SCALE + i));
    for (uint32_t i = 0; i < conv->n_attrs; i++)
        SN_TRY(sn_node_set_attr(g, made, &conv->attrs[i], env->err));
    const sn_attr attr = {.name = "second", .kind = SN_ATTR_INT, .n = 1, .i = second};
    SN_TRY(sn_node_set_attr(g, made, &attr, env->err));
    sn_node_set_output(made, 0, add->out[0]);
    made->post_op = conv->post_op;
    SN_TRY(sn_node_add_post_op(g, made, "Add", env->err));
    SN_TRY(sn_node_add_post_op(g, made, add->post_op, env->err));
    SN_TRY(sn_graph_replace(g, both, 2, made, conv, env->err));
    return sn_node_refresh(g, made, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        if (!is_sum(n))
            continue;
        /* Of two convolutions the one that comes just before: its operands live no longer then. */
        sn_node *a = conv_of(n, A), *b = conv_of(n, B);
        if (!a && !b)
            continue;
        const bool second = b && (!a || b == n->prev);
        SN_TRY(fuse(g, env, n, second ? b : a, second));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_fuse_byte_sums = {
    .name = "fuse-byte-sums",
    .summary = "fuses residuals into convolutions of bytes",
    .run = run,
    .bodies = true,
};
