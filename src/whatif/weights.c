/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of products: where they are, which of them may have zeros, and the constants that take
 * their place. */
#include "whatif/whatif.h"

static bool is_onnx(const sn_node *n, const char *op_type)
{
    return !*n->domain && strcmp(n->op_type, op_type) == 0;
}

static int64_t attr_or(const sn_node *n, const char *name, int64_t otherwise)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_INT ? a->i : otherwise;
}

/* The constant behind an input: an initializer, or what a Constant node makes. */
static const sn_tensor *constant_of(const sn_value *v)
{
    if (!v)
        return NULL;
    if (sn_value_is_const(v))
        return v->fact.data;
    const sn_attr *a =
        v->producer && is_onnx(v->producer, "Constant") ? sn_node_attr(v->producer, "value") : NULL;
    return a && a->kind == SN_ATTR_TENSOR ? a->tensor : NULL;
}

static bool find_weight(const sn_node *n, uint32_t input, sn_weight *w)
{
    if (input >= n->n_in || !n->in[input].value)
        return false;
    *w = (sn_weight){.holder = (sn_node *)n, .input = input};
    w->data = constant_of(n->in[input].value);
    sn_node *from = n->in[input].value->producer;
    if (!w->data && from && is_onnx(from, "DequantizeLinear")) {
        w->data = constant_of(from->in[0].value);
        w->holder = from;
        w->input = 0;
    }
    return w->data && sn_tensor_is_plain(w->data);
}

bool sn_weight_of(const sn_node *n, sn_weight *w)
{
    static const struct {
        const char *op_type;
        uint32_t input;
        bool conv;
    } products[] = {{"MatMul", 1, false},     {"Gemm", 1, false},
                    {"Conv", 1, true},        {"QLinearMatMul", 3, false},
                    {"QLinearConv", 3, true}, {"MatMulInteger", 1, false},
                    {"ConvInteger", 1, true}};
    size_t k = 0;
    while (k < sizeof products / sizeof *products && !is_onnx(n, products[k].op_type))
        k++;
    if (k == sizeof products / sizeof *products || !find_weight(n, products[k].input, w))
        return false;
    const sn_tensor *t = w->data;
    const bool turned = products[k].conv || attr_or(n, "transB", 0);
    if ((products[k].conv ? t->rank < 3 : t->rank != 2) || t->dims[0] < 1)
        return false;
    w->outputs = t->dims[turned ? 0 : 1];
    w->inputs = sn_tensor_count(t) / (w->outputs > 0 ? w->outputs : 1);
    w->output_step = turned ? w->inputs : 1;
    w->input_step = turned ? 1 : w->outputs;
    return w->outputs > 0 && w->inputs > 0;
}

bool sn_weight_may_be_sparse(const sn_weight *w)
{
    const sn_tensor *t = w->data;
    return (t->rank == 2 || t->dims[1] > 1) && t->dtype != SONDE_DTYPE_U8 &&
           t->dtype != SONDE_DTYPE_STRING && sn_dtype_bytes(t->dtype) > 0;
}

int sn_variant_sparsity(const sn_variant *v, const sn_node *n)
{
    const uint32_t origin = n->n_origins ? n->origins[0] : SN_NO_ORIGIN;
    return v->forms && origin < v->source->origins.list.n ? v->forms[origin].sparsity : 0;
}

sonde_status sn_variant_constant(const sn_variant *v, sn_graph *g, sonde_dtype dtype,
                                 const int64_t *dims, int rank, sn_value **value, void **data)
{
    sn_allocator *alloc = v->m->ctx->alloc;
    sn_tensor *t = SN_NEW(&v->m->arena, sn_tensor);
    size_t bytes = 0;
    if (!t || !sn_tensor_bytes(dtype, dims, rank, &bytes))
        return sn_fail_memory(v->err, sizeof *t);
    sn_buffer *b = sn_buffer_new(alloc, bytes);
    if (!b || !sn_vec_push(&v->parts->buffers.list, alloc, b)) {
        sn_buffer_unref(b);
        return sn_fail_memory(v->err, bytes);
    }
    *t = (sn_tensor){.dtype = dtype, .rank = rank, .data = b->data, .bytes = bytes};
    for (int d = 0; d < rank; d++)
        t->dims[d] = dims[d];
    SN_TRY(sn_graph_add_constant(g, "", t, value, v->err));
    (*value)->is_initializer = true;
    *data = b->data;
    return SONDE_OK;
}
