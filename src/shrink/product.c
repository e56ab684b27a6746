/* SPDX-License-Identifier: Apache-2.0 */
/* Small questions about nodes, and the one that decides: is this a product with constant weights
 * that integers can compute, and which axis of the weights has its output channels? */
#include <string.h>

#include "shrink/quantizer.h"

bool sn_q_is(const sn_node *n, const char *op_type)
{
    return !n->domain[0] && strcmp(n->op_type, op_type) == 0;
}

int64_t sn_q_int(const sn_node *n, const char *name, int64_t otherwise)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_INT ? a->i : otherwise;
}

float sn_q_float(const sn_node *n, const char *name, float otherwise)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_FLOAT ? a->f : otherwise;
}

const sn_tensor *sn_q_floats(const sn_value *v)
{
    return v && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_F32 &&
                   sn_tensor_is_plain(v->fact.data)
               ? v->fact.data
               : NULL;
}

static bool is_of(const sn_value *v, sn_dtype dtype)
{
    return v && v->fact.type.kind == SN_KIND_TENSOR && v->fact.type.dtype == dtype;
}

bool sn_q_is_f32(const sn_value *v)
{
    return is_of(v, SONDE_DTYPE_F32);
}

static bool is_constant(const sn_value *v, bool half)
{
    return sn_value_is_const(v) && sn_tensor_is_plain(v->fact.data) &&
           v->fact.data->dtype == (half ? SONDE_DTYPE_F16 : SONDE_DTYPE_F32);
}

/* ------------------------------------------------------------------ products */
bool sn_q_is_product(const sn_node *n)
{
    return sn_q_is(n, "Conv") || sn_q_is(n, "ConvTranspose") || sn_q_is(n, "Gemm") ||
           sn_q_is(n, "MatMul");
}

static const char *conv_of(const sn_node *n, sn_q_product *p)
{
    const bool transposed = sn_q_is(n, "ConvTranspose");
    const sn_tensor *w = p->w->fact.data;
    if (w->rank < 3 || w->rank > 5)
        return "weights of this rank have no 8-bit form";
    p->groups = sn_q_int(n, "group", 1);
    p->axis = transposed ? 1 : 0; /* [inputs, outputs of a group, …] where it is transposed */
    p->channels = w->dims[p->axis];
    const int64_t outputs = transposed ? p->channels * p->groups : p->channels;
    if (p->groups < 1 || p->channels < 1)
        return "its weights have no channels";
    if (p->bias && sn_tensor_count(p->bias->fact.data) != outputs)
        return "its bias has another number of channels";
    return NULL;
}

static const char *gemm_of(const sn_node *n, sn_q_product *p)
{
    const bool turned = sn_q_int(n, "transB", 0) != 0;
    const sn_tensor *w = p->w->fact.data;
    if (sn_q_int(n, "transA", 0) || sn_q_float(n, "alpha", 1.0f) != 1.0f ||
        (p->bias && sn_q_float(n, "beta", 1.0f) != 1.0f))
        return "it scales or transposes what it reads";
    if (w->rank != 2)
        return "its weights are no matrix";
    p->axis = !turned;
    p->channels = w->dims[p->axis];
    if (p->bias && (sn_tensor_count(p->bias->fact.data) != p->channels ||
                    (p->bias->fact.data->rank > 0 &&
                     p->bias->fact.data->dims[p->bias->fact.data->rank - 1] != p->channels)))
        return "its bias is not one number per column";
    return NULL;
}

const char *sn_q_product_of(const sn_node *n, sn_q_product *p)
{
    const bool matmul = sn_q_is(n, "MatMul");
    *p = (sn_q_product){.groups = 1};
    if (n->n_in < 2 || !n->in[0].value || !n->in[1].value || n->n_out < 1 || !n->out[0])
        return "an input is missing";
    p->half = is_of(n->in[0].value, SONDE_DTYPE_F16) && is_of(n->in[1].value, SONDE_DTYPE_F16);
    if (!p->half && (!sn_q_is_f32(n->in[0].value) || !sn_q_is_f32(n->in[1].value)))
        return "it computes neither in f32 nor in f16";
    if (sn_value_is_const(n->in[0].value))
        return "its left side is constant";
    if (!is_constant(n->in[1].value, p->half))
        return matmul ? "a product of two activations" : "its weights are not constant";
    p->w = n->in[1].value;
    p->bias = n->n_in > 2 ? n->in[2].value : NULL;
    if (p->bias && !is_constant(p->bias, p->half))
        return "its bias is not constant";
    if (sn_tensor_count(p->w->fact.data) == 0)
        return "its weights are empty";
    if (sn_q_is(n, "Gemm"))
        return gemm_of(n, p);
    if (!matmul)
        return conv_of(n, p);
    const sn_tensor *w = p->w->fact.data;
    if (w->rank < 2)
        return "its weights are a vector";
    /* Columns have scales of their own only in a matrix: runtimes do not load others. */
    p->axis = w->rank == 2 ? 1 : -1;
    p->channels = w->rank == 2 ? w->dims[1] : 1;
    return NULL;
}
