/* SPDX-License-Identifier: Apache-2.0 */
/* A Gemm that scales or transposes as one that does not: only that has a form of integers. Weights
 * and biases are constants, so they take up alpha and beta; a Transpose before it does transA; a
 * bias of one number is repeated. What is not constant stays as it is, and the table says why. */
#include <string.h>

#include "base/codec.h"
#include "shrink/quantizer.h"

typedef struct gemm {
    sn_model *m;
    sn_graph *g;
    sn_node *n;
    sonde_error *err;
} gemm;

static const sn_tensor *numbers(const sn_node *n, uint32_t k)
{
    const sn_value *v = k < n->n_in ? n->in[k].value : NULL;
    const bool constant = v && sn_value_is_const(v) && sn_tensor_is_plain(v->fact.data);
    const sn_tensor *t = constant ? v->fact.data : NULL;
    return t && (t->dtype == SONDE_DTYPE_F32 || t->dtype == SONDE_DTYPE_F16) ? t : NULL;
}

static void scale(const sn_tensor *t, int64_t from, void *out, int64_t to, float factor)
{
    if (t->dtype == SONDE_DTYPE_F32)
        ((float *)out)[to] = ((const float *)t->data)[from] * factor;
    else
        ((uint16_t *)out)[to] =
            sn_f32_to_f16(sn_f16_to_f32(((const uint16_t *)t->data)[from]) * factor);
}

/* Input k as `count` numbers times the factor; of one number, all are that. */
static sonde_status fold(const gemm *x, uint32_t k, float factor, const int64_t *dims, int rank)
{
    const sn_value *old = x->n->in[k].value;
    const sn_tensor *t = old->fact.data;
    sn_value *v;
    void *data;
    SN_TRY(sn_q_constant(x->m, x->g, old->name, "", t->dtype, dims, rank, &v, &data, x->err));
    const int64_t n = sn_tensor_count(v->fact.data), step = sn_tensor_count(t) == 1 ? 0 : 1;
    for (int64_t i = 0; i < n; i++)
        scale(t, i * step, data, i, factor);
    sn_node_set_input(x->n, k, v);
    return SONDE_OK;
}

static sonde_status transpose_input(const gemm *x)
{
    static const int64_t turned[] = {1, 0};
    const sn_attr perm = {.name = "perm", .kind = SN_ATTR_INTS, .n = 2, .ints = turned};
    sn_value *from = x->n->in[0].value, *to;
    sn_node *made;
    const char *base = sn_node_called(x->n);
    const char *name = sn_arena_printf(&x->m->arena, "%s_transA", base[0] ? base : "Gemm");
    if (!name)
        return sn_fail_memory(x->err, strlen(base));
    SN_TRY(sn_graph_add_node(x->g, x->n, "", "Transpose", name, 1, 1, &made, x->err));
    made->opset = x->n->opset;
    made->n_formal_in = 1;
    SN_TRY(sn_node_set_attr(x->g, made, &perm, x->err));
    SN_TRY(sn_graph_add_value(x->g, name, &to, x->err));
    sn_node_set_input(made, 0, from);
    sn_node_set_output(made, 0, to);
    to->fact.type = from->fact.type;
    to->fact.type.rank = -1;
    to->fact.type.dims = NULL;
    sn_node_set_input(x->n, 0, to);
    sn_node_remove_attr(x->n, "transA");
    return SONDE_OK;
}

static sonde_status make_plain(const gemm *x)
{
    sn_node *n = x->n;
    const sn_tensor *w = numbers(n, 1), *bias = numbers(n, 2);
    const float alpha = sn_q_float(n, "alpha", 1.0f), beta = sn_q_float(n, "beta", 1.0f);
    if (!w || w->rank != 2 || !n->in[0].value || sn_value_is_const(n->in[0].value))
        return SONDE_OK;
    if (alpha != 1.0f) {
        SN_TRY(fold(x, 1, alpha, w->dims, w->rank));
        sn_node_remove_attr(n, "alpha");
    }
    if (bias && (beta != 1.0f || sn_tensor_count(bias) == 1)) {
        const int64_t columns = w->dims[!sn_q_int(n, "transB", 0)];
        const bool one = sn_tensor_count(bias) == 1;
        SN_TRY(fold(x, 2, beta, one ? &columns : bias->dims, one ? 1 : bias->rank));
        sn_node_remove_attr(n, "beta");
    }
    return sn_q_int(n, "transA", 0) ? transpose_input(x) : SONDE_OK;
}

sonde_status sn_q_plain_gemms(sn_model *m, sn_graph *g, sonde_error *err)
{
    sn_graph_each (n, g) {
        sn_graph *body;
        if (sn_q_is(n, "Gemm") && n->n_in >= 2 && n->n_out && n->out[0])
            SN_TRY(make_plain(&(gemm){m, g, n, err}));
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(sn_q_plain_gemms(m, body, err)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}
