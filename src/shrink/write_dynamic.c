/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic form: the range of an activation is found in each run. DynamicQuantizeLinear ►
 * MatMulInteger ► Cast ► Mul by both scales ► Add of the bias, which runtimes fuse again. Values
 * that several products read are quantised once. */
#include <math.h>
#include <string.h>

#include "shrink/quantizer.h"

typedef struct dynamic {
    sn_value *bytes, *scale, *zero; /* NULL: not made yet */
} dynamic;

static sonde_status quantize_input(sn_q_writer *w, sn_value *x, dynamic *d)
{
    static const char *const suffixes[] = {"_quantized", "_scale", "_zero_point"};
    sn_value **const made[] = {&d->bytes, &d->scale, &d->zero};
    sn_node *n;
    const char *name = NULL;
    SN_TRY(sn_q_node_name(w, x->name, "_QuantizeLinear", &name));
    SN_TRY(sn_graph_add_node(w->g, x->producer ? x->producer->next : w->g->first, "",
                             "DynamicQuantizeLinear", name, 1, 3, &n, w->err));
    n->opset = (int32_t)sn_model_opset(w->m, "");
    n->n_formal_in = 1;
    sn_node_set_input(n, 0, x);
    for (uint32_t i = 0; i < 3; i++) {
        const char *out = sn_arena_printf(&w->m->arena, "%s%s", x->name, suffixes[i]);
        if (!out)
            return sn_fail_memory(w->err, strlen(x->name));
        SN_TRY(sn_graph_add_value(w->g, out, made[i], w->err));
        sn_node_set_output(n, i, *made[i]);
    }
    return SONDE_OK;
}

/* Weights [k, n] as floats, turned where a Gemm has them as [n, k]. */
static const float *matrix(sn_q_writer *w, const sn_q_product *p, int64_t *dims)
{
    const sn_tensor *t = p->w->fact.data;
    const float *from = t->data;
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    if (t->rank != 2 || p->axis == 1)
        return from;
    float *to = SN_NEW_N(&w->m->arena, float, (size_t)sn_tensor_count(t));
    dims[0] = t->dims[1];
    dims[1] = t->dims[0];
    for (int64_t k = 0; to && k < dims[0]; k++)
        for (int64_t n = 0; n < dims[1]; n++)
            to[k * dims[1] + n] = from[n * dims[0] + k];
    return to;
}

static sonde_status add_weights(sn_q_writer *w, const sn_q_product *p, sn_q_node *d,
                                sn_value **bytes, sn_value **scale)
{
    int64_t dims[SN_MAX_RANK];
    const sn_tensor *t = p->w->fact.data;
    const float *x = matrix(w, p, dims);
    if (!x)
        return sn_fail_memory(w->err, t->bytes);
    for (int64_t i = 0; i < sn_tensor_count(t); i++)
        if (!isfinite(x[i]))
            return sn_fail(w->err, SONDE_INVALID_MODEL,
                           "weight '%.300s' has a number that is not finite; leave its node in "
                           "float",
                           p->w->name);
    const bool channels = t->rank == 2 && !w->q->o.per_tensor;
    const sn_tensor turned = {.rank = t->rank, .dims = {dims[0], dims[1]}};
    const sn_q_layout l = sn_q_layout_of(t->rank == 2 ? &turned : t, channels ? 1 : -1);
    void *numbers, *scales;
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, "_quantized", SONDE_DTYPE_I8, dims, t->rank, bytes,
                         &numbers, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, "_scale", SONDE_DTYPE_F32, &l.channels,
                         channels ? 1 : 0, scale, &scales, w->err));
    sn_q_weight_scales(x, l, scales);
    sn_q_weight_round(x, l, scales, numbers);
    d->made = "int8";
    d->weights = channels ? "per channel" : "per tensor";
    d->bytes_before = t->bytes;
    d->bytes_after = (uint64_t)sn_tensor_count(t) + (uint64_t)l.channels * 4;
    d->sqnr_db = sn_q_weight_sqnr(x, l, scales, numbers);
    return SONDE_OK;
}

static sonde_status write_product(sn_q_writer *w, sn_node *n, sn_q_node *d, dynamic *x)
{
    sn_q_product p;
    sn_value *weights, *w_scale, *sum, *floats, *factor, *result;
    sn_node *cast, *last;
    const char *base = n->name[0] ? n->name : n->out[0]->name;
    (void)sn_q_product_of(w->q->g_nodes[n->id], &p);
    if (!x->bytes)
        SN_TRY(quantize_input(w, n->in[0].value, x));
    SN_TRY(add_weights(w, &p, d, &weights, &w_scale));
    SN_TRY(sn_q_add(w, n, "", "MatMulInteger", base, "_quant",
                    (sn_value *[]){x->bytes, weights, x->zero}, 3, NULL, &sum));
    SN_TRY(sn_q_add(w, n, "", "Cast", base, "_cast", &sum, 1, &cast, &floats));
    SN_TRY(sn_q_set_int(w, cast, "to", SONDE_DTYPE_F32));
    SN_TRY(sn_q_add(w, n, "", "Mul", base, "_scales", (sn_value *[]){x->scale, w_scale}, 2, NULL,
                    &factor));
    SN_TRY(sn_q_add(w, n, "", "Mul", base, "_scaled", (sn_value *[]){floats, factor}, 2, &last,
                    &result));
    if (p.bias) {
        sn_value *bias = w->g->values.data[p.bias->id];
        SN_TRY(sn_q_add(w, n, "", "Add", base, "_bias", (sn_value *[]){result, bias}, 2, &last,
                        &result));
    }
    sn_node_set_output(last, 0, n->out[0]);
    return sn_graph_remove(w->g, n, w->err);
}

static sonde_status write_all(sn_q_writer *w)
{
    const size_t n_values = w->q->g->values.n;
    dynamic *made = SN_NEW_N(&w->m->arena, dynamic, n_values + 1);
    if (!made)
        return sn_fail_memory(w->err, n_values * sizeof *made);
    sn_graph_each (n, w->g)
        if (n->id < w->q->g->n_nodes && w->q->nodes[n->id].role == SN_Q_PRODUCT)
            SN_TRY(write_product(w, n, &w->q->nodes[n->id], &made[n->in[0].value->id]));
    return SONDE_OK;
}

sonde_status sn_q_write_dynamic(sn_quantizer *q, sonde_model **made)
{
    sn_q_writer w;
    SN_TRY(sn_q_writer_open(&w, q));
    return sn_q_writer_close(&w, write_all(&w), made);
}
