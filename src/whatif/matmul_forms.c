/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products whose weights alone change: in 8 bits with scales computed in every run
 * (DynamicQuantizeLinear, MatMulInteger), or in 4 bits (MatMulNBits). */
#include "whatif/whatif.h"

static sonde_status set_int(const sn_variant *v, sn_graph *g, sn_node *n, const char *name,
                            int64_t i)
{
    const sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = i};
    return sn_node_set_attr(g, n, &a, v->err);
}

/* ------------------------------------------------------------------ 8 bits, dynamic */
/* The node that quantises x: made once for all that read x. */
static sonde_status quantizer(const sn_variant *v, sn_graph *g, sn_value *x, sn_node *before,
                              sn_node **found)
{
    for (const sn_edge *e = x->uses; e; e = e->next)
        if (sn_is_onnx(e->node, "DynamicQuantizeLinear")) {
            *found = e->node;
            return SONDE_OK;
        }
    SN_TRY(sn_variant_node(v, g, before, "DynamicQuantizeLinear", 1, 3, found));
    sn_node_set_input(*found, 0, x);
    return SONDE_OK;
}

/* y = float(integers) · (scale of x · scales of w); n becomes the product of integers. */
static sonde_status make_dynamic(const sn_variant *v, sn_graph *g, sn_node *n, const sn_weight *w)
{
    sn_node *quantize = NULL, *cast = NULL, *scale = NULL, *scaled = NULL;
    sn_value *q = NULL, *scales = NULL, *sums = NULL, *y = n->out[0];
    SN_TRY(sn_variant_int8_weight(v, g, w, &q, &scales));
    SN_TRY(quantizer(v, g, n->in[0].value, n, &quantize));
    SN_TRY(sn_variant_node(v, g, n->next, "Mul", 2, 1, &scaled));
    SN_TRY(sn_variant_node(v, g, scaled, "Mul", 2, 1, &scale));
    SN_TRY(sn_variant_node(v, g, scaled, "Cast", 1, 1, &cast));
    SN_TRY(set_int(v, g, cast, "to", SONDE_DTYPE_F32));
    SN_TRY(sn_graph_add_value(g, "", &sums, v->err));
    sn_node_set_output(scaled, 0, y);
    sn_node_set_output(n, 0, sums);
    n->op_type = "MatMulInteger";
    n->opset = 13;
    sn_node_set_input(n, 0, quantize->out[0]);
    sn_node_set_input(n, 1, q);
    SN_TRY(sn_node_add_input(g, n, quantize->out[2], v->err));
    n->n_formal_in = n->n_in;
    sn_node_set_input(cast, 0, sums);
    sn_node_set_input(scale, 0, quantize->out[1]);
    sn_node_set_input(scale, 1, scales);
    sn_node_set_input(scaled, 0, cast->out[0]);
    sn_node_set_input(scaled, 1, scale->out[0]);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ 4 bits */
static sonde_status make_int4(const sn_variant *v, sn_graph *g, sn_node *n, const sn_weight *w)
{
    enum { BITS = 4, BLOCK = 32, BLOB = BLOCK * BITS / 8 };
    const int64_t blocks = (w->inputs + BLOCK - 1) / BLOCK;
    const int64_t dims[] = {w->outputs, blocks, BLOB};
    sn_value *q = NULL, *scales = NULL;
    void *data = NULL, *scale = NULL;
    SN_TRY(sn_variant_constant(v, g, SONDE_DTYPE_U8, dims, 3, &q, &data));
    SN_TRY(sn_variant_constant(v, g, SONDE_DTYPE_F32, dims, 2, &scales, &scale));
    for (int64_t i = 0; i < w->outputs * blocks * BLOB; i++)
        ((uint8_t *)data)[i] = (uint8_t)(i * 167 >> 3);
    for (int64_t i = 0; i < w->outputs * blocks; i++)
        ((float *)scale)[i] = 0x1p-6f;
    n->op_type = "MatMulNBits";
    n->domain = "com.microsoft";
    n->opset = 1;
    sn_node_set_input(n, 1, q);
    SN_TRY(sn_node_add_input(g, n, scales, v->err));
    n->n_formal_in = n->n_in;
    SN_TRY(set_int(v, g, n, "K", w->inputs));
    SN_TRY(set_int(v, g, n, "N", w->outputs));
    SN_TRY(set_int(v, g, n, "bits", BITS));
    return set_int(v, g, n, "block_size", BLOCK);
}

sonde_status sn_variant_matmuls(const sn_variant *v, sn_graph *g)
{
    sn_graph_each (n, g) {
        const sn_bits form = (sn_bits)sn_variant_form(v, n).form;
        sn_weight w;
        if (form == SN_BITS_INT8 || !sn_variant_bits_weight(v, n, &w))
            continue;
        if (form == SN_BITS_INT4)
            SN_TRY(make_int4(v, g, n, &w));
        else
            SN_TRY(make_dynamic(v, g, n, &w));
    }
    return SONDE_OK;
}
