/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that hand a value through unchanged: Identity, Dropout while inferring, casts to the same
 * type, shape operators that do nothing, x + 0, x * 1. Only where type and shape surely stay.
 *
 * Floats have two zeros, and 1 / x tells them apart: x + (+0) makes +0 of -0, so only x + (-0), x -
 * (+0), x * 1 and x / 1 leave every float as it is. */
#include <math.h>
#include <string.h>

#include "passes/rewrite.h"

#define MAX_NEUTRAL_ELEMS 4096 /* constants larger than this are not looked through */

static bool same_type(const sn_node *n, uint32_t i)
{
    const sn_type *a = &n->in[i].value->fact.type, *b = &n->out[0]->fact.type;
    return a->dtype == b->dtype && sn_type_same_shape(a, b);
}

static bool dropout_passes(const sn_node *n)
{
    if (n->opset < 7)
        return sn_node_attr_int(n, "is_test", 0) != 0;
    if (n->n_in < 3 || !n->in[2].value)
        return true;
    const sn_tensor *t = sn_value_is_const(n->in[2].value) ? n->in[2].value->fact.data : NULL;
    return t && t->dtype == SONDE_DTYPE_BOOL && t->bytes == 1 && *(const uint8_t *)t->data == 0;
}

static bool transpose_passes(const sn_node *n)
{
    const sn_attr *perm = sn_node_attr(n, "perm");
    if (!perm) {
        const sn_type *t = &n->in[0].value->fact.type;
        return t->kind == SN_KIND_TENSOR && t->rank >= 0 && t->rank <= 1;
    }
    for (size_t i = 0; i < perm->n; i++)
        if (perm->kind != SN_ATTR_INTS || perm->ints[i] != (int64_t)i)
            return false;
    return perm->n > 0;
}

/* Every element of a small constant equals `x`, down to the sign of a zero where it has one. */
static bool all_equal(const sn_value *v, double x)
{
    if (!v || !sn_value_is_const(v))
        return false;
    const sn_tensor *t = v->fact.data;
    int64_t n = sn_tensor_count(t);
    if (!sn_tensor_is_plain(t) || n < 1 || n > MAX_NEUTRAL_ELEMS)
        return false;
    for (int64_t i = 0; i < n; i++) {
        switch (t->dtype) {
#define CASE(D, T, SIGN_DIFFERS)                                                                   \
    case SONDE_DTYPE_##D: {                                                                        \
        T y; /* files do not align their data */                                                   \
        memcpy(&y, (const uint8_t *)t->data + (size_t)i * sizeof y, sizeof y);                     \
        if (y != (T)x || (SIGN_DIFFERS))                                                           \
            return false;                                                                          \
        break;                                                                                     \
    }
            CASE(F32, float, !signbit(y) != !signbit(x))
            CASE(F64, double, !signbit(y) != !signbit(x))
            CASE(I32, int32_t, false)
            CASE(I64, int64_t, false)
#undef CASE
        default:
            return false;
        }
    }
    return true;
}

static bool slice_passes(const sn_node *n)
{
    bool forward = n->n_in < 5 || !n->in[4].value || all_equal(n->in[4].value, 1);
    return forward && same_type(n, 0);
}

static bool pad_passes(const sn_node *n)
{
    return n->opset >= 11 && n->n_in > 1 && all_equal(n->in[1].value, 0) && same_type(n, 0);
}

/* The input the node hands through, or -1. */
static int passes_input(const sn_node *n)
{
    static const char *const shape_ops[] = {"Reshape", "Flatten",   "Expand",
                                            "Squeeze", "Unsqueeze", "Tile"};
    static const char *const variadic[] = {"Concat", "Sum", "Max", "Min", "Mean"};
    static const struct {
        const char *op;
        double neutral;
        bool either;
    } arithmetic[] = {{"Add", -0.0, true}, {"Sub", 0, false}, {"Mul", 1, true}, {"Div", 1, false}};

    if (n->domain[0] || !n->n_in || !n->in[0].value || !n->n_out || !n->out[0])
        return -1;
    for (uint32_t o = 1; o < n->n_out; o++)
        if (n->out[o] && (n->out[o]->n_uses || n->out[o]->n_outputs))
            return -1;
    if (sn_node_is(n, "Identity"))
        return 0;
    if (sn_node_is(n, "Dropout"))
        return dropout_passes(n) ? 0 : -1;
    const sn_type *in = &n->in[0].value->fact.type, *out = &n->out[0]->fact.type;
    if (in->kind != SN_KIND_TENSOR || out->kind != SN_KIND_TENSOR)
        return -1;
    if (sn_node_is(n, "Cast") || sn_node_is(n, "CastLike"))
        return in->dtype == out->dtype && in->dtype != SONDE_DTYPE_UNDEFINED ? 0 : -1;
    if (sn_node_is(n, "Transpose"))
        return transpose_passes(n) ? 0 : -1;
    if (sn_node_is(n, "Slice"))
        return slice_passes(n) ? 0 : -1;
    if (sn_node_is(n, "Pad"))
        return pad_passes(n) ? 0 : -1;
    for (size_t i = 0; i < sizeof shape_ops / sizeof shape_ops[0]; i++)
        if (sn_node_is(n, shape_ops[i]))
            return same_type(n, 0) ? 0 : -1;
    for (size_t i = 0; i < sizeof variadic / sizeof variadic[0]; i++)
        if (sn_node_is(n, variadic[i]))
            return n->n_in == 1 && same_type(n, 0) ? 0 : -1;
    for (size_t i = 0; i < sizeof arithmetic / sizeof arithmetic[0]; i++) {
        if (!sn_node_is(n, arithmetic[i].op) || n->n_in != 2 || !n->in[1].value)
            continue;
        if (all_equal(n->in[1].value, arithmetic[i].neutral) && same_type(n, 0))
            return 0;
        if (arithmetic[i].either && all_equal(n->in[0].value, arithmetic[i].neutral) &&
            same_type(n, 1))
            return 1;
    }
    return -1;
}

/* Readers of the output read the input instead. A graph output keeps its value: then the input's
 * producer makes it, unless the input must stay itself too. */
static sonde_status bypass(sn_graph *g, sn_node *n, uint32_t i, sonde_error *err, uint32_t *changes)
{
    sn_value *in = n->in[i].value, *out = n->out[0];
    if (!out->n_outputs) {
        sn_value_replace(g, out, in);
    } else {
        sn_node *producer = in->producer;
        uint32_t index = in->output_index;
        if (!producer || in->n_outputs || in->fact.data)
            return SONDE_OK;
        sn_node_set_output(n, 0, NULL);
        sn_value_replace(g, in, out);
        sn_node_set_output(producer, index, out);
        out->fact = in->fact;
    }
    (*changes)++;
    return sn_graph_remove(g, n, err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        int i = passes_input(n);
        if (i >= 0)
            SN_TRY(bypass(g, n, (uint32_t)i, env->err, changes));
    }
    return SONDE_OK;
}

const sn_pass sn_pass_identity = {
    .name = "identity",
    .summary = "removes nodes that return their input unchanged",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
