/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic form: the range of an activation is found in each run. DynamicQuantizeLinear ►
 * MatMulInteger ► Cast ► Mul by both scales ► Add of the bias, which runtimes fuse again. Values
 * that several products read are quantised once. */
#include <string.h>

#include "shrink/quantizer.h"

typedef struct dynamic {
    sn_value *bytes, *scale, *zero; /* NULL: not made yet */
} dynamic;

/* The writer, and what was made of each value of the graph that it is at. */
typedef struct dynamic_writer {
    sn_q_writer w;
    const sn_graph *g;
    dynamic *made; /* by value id */
} dynamic_writer;

/* DynamicQuantizeLinear takes f32 alone. */
static sonde_status quantize_input(sn_q_writer *w, sn_value *x, bool half, dynamic *d)
{
    static const char *const suffixes[] = {"_quantized", "_scale", "_zero_point"};
    sn_value **const made[] = {&d->bytes, &d->scale, &d->zero};
    sn_node *n, *before = x->producer ? x->producer->next : w->g->first;
    sn_value *floats = x;
    const char *name = NULL;
    if (half) {
        SN_TRY(sn_q_add(w, before, "", "Cast", x->name, "_float", &x, 1, &n, &floats));
        SN_TRY(sn_q_set_int(w, n, "to", SONDE_DTYPE_F32));
    }
    SN_TRY(sn_q_node_name(w, x->name, "_QuantizeLinear", &name));
    SN_TRY(sn_graph_add_node(w->g, before, "", "DynamicQuantizeLinear", name, 1, 3, &n, w->err));
    n->opset = (int32_t)sn_model_opset(w->m, "");
    n->n_formal_in = 1;
    sn_node_set_input(n, 0, floats);
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
static sonde_status matrix(sn_q_writer *w, const sn_q_product *p, int64_t *dims, const float **out)
{
    const sn_tensor *t = p->w->fact.data;
    const float *from;
    SN_TRY(sn_q_weight_numbers(w, p->w, &from));
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    *out = from;
    if (t->rank != 2 || p->axis == 1)
        return SONDE_OK;
    float *to = SN_NEW_N(&w->scratch, float, (size_t)sn_tensor_count(t));
    if (!to)
        return sn_fail_memory(w->err, t->bytes);
    dims[0] = t->dims[1];
    dims[1] = t->dims[0];
    for (int64_t k = 0; k < dims[0]; k++)
        for (int64_t n = 0; n < dims[1]; n++)
            to[k * dims[1] + n] = from[n * dims[0] + k];
    *out = to;
    return SONDE_OK;
}

static sonde_status add_weights(sn_q_writer *w, const sn_q_product *p, bool channels,
                                sn_q_made *made)
{
    int64_t dims[SN_MAX_RANK];
    const sn_tensor *t = p->w->fact.data;
    const float *x;
    SN_TRY(matrix(w, p, dims, &x));
    const sn_tensor turned = {.rank = t->rank, .dims = {dims[0], dims[1]}};
    const sn_q_layout l = sn_q_layout_of(t->rank == 2 ? &turned : t, channels ? 1 : -1);
    void *numbers, *scales;
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, "_quantized", SONDE_DTYPE_I8, dims, t->rank,
                         &made->values[0], &numbers, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, "_scale", SONDE_DTYPE_F32, &l.channels,
                         channels ? 1 : 0, &made->values[1], &scales, w->err));
    sn_q_weight_scales(x, l, scales);
    sn_q_weight_round(x, l, scales, numbers);
    made->sqnr_db = sn_q_weight_sqnr(x, l, scales, numbers);
    return sn_q_made_add(w, made);
}

static sonde_status find_weights(sn_q_writer *w, const sn_q_product *p, sn_q_node *d,
                                 const sn_q_made **made)
{
    const sn_tensor *t = p->w->fact.data;
    const bool channels = t->rank == 2 && !w->q->o.per_tensor;
    SN_TRY(sn_q_made_find(w, t, p->axis, NULL, made));
    if (!*made) {
        SN_TRY(add_weights(w, p, channels, &(sn_q_made){.of = t, .form = p->axis}));
        SN_TRY(sn_q_made_find(w, t, p->axis, NULL, made));
        d->bytes_before = t->bytes;
        d->bytes_after =
            (*made)->values[0]->fact.data->bytes + (*made)->values[1]->fact.data->bytes;
    }
    d->made = "int8";
    d->weights = channels ? "per channel" : "per tensor";
    d->sqnr_db = (*made)->sqnr_db;
    return SONDE_OK;
}

static sonde_status input_of(dynamic_writer *w, sn_value *x, bool half, const dynamic **found)
{
    if (w->g != w->w.g) { /* ids of values that were there before: x is one of them */
        w->made = SN_NEW_N(&w->w.m->arena, dynamic, w->w.scope->g->values.n + 1);
        if (!w->made)
            return sn_fail_memory(w->w.err, w->w.scope->g->values.n * sizeof *w->made);
        w->g = w->w.g;
    }
    if (!w->made[x->id].bytes)
        SN_TRY(quantize_input(&w->w, x, half, &w->made[x->id]));
    *found = &w->made[x->id];
    return SONDE_OK;
}

static sonde_status write_product(sn_q_writer *w, sn_node *n, sn_q_node *d)
{
    sn_q_product p;
    const sn_q_made *weights;
    const dynamic *x = NULL;
    sn_value *sum, *floats, *factor, *result;
    sn_node *cast, *last;
    const char *base = n->name[0] ? n->name : n->out[0]->name;
    (void)sn_q_product_of(w->scope->g_nodes[n->id], &p);
    const bool half = p.w->fact.data->dtype != SONDE_DTYPE_F32;
    SN_TRY(input_of((dynamic_writer *)w, n->in[0].value, half, &x));
    SN_TRY(find_weights(w, &p, d, &weights));
    SN_TRY(sn_q_add(w, n, "", "MatMulInteger", base, "_quant",
                    (sn_value *[]){x->bytes, weights->values[0], x->zero}, 3, NULL, &sum));
    SN_TRY(sn_q_add(w, n, "", "Cast", base, "_cast", &sum, 1, &cast, &floats));
    SN_TRY(sn_q_set_int(w, cast, "to", SONDE_DTYPE_F32));
    SN_TRY(sn_q_add(w, n, "", "Mul", base, "_scales", (sn_value *[]){x->scale, weights->values[1]},
                    2, NULL, &factor));
    SN_TRY(sn_q_add(w, n, "", "Mul", base, "_scaled", (sn_value *[]){floats, factor}, 2, &last,
                    &result));
    if (half) {
        SN_TRY(sn_q_add(w, n, "", "Cast", base, "_half", &result, 1, &last, &result));
        SN_TRY(sn_q_set_int(w, last, "to", SONDE_DTYPE_F16));
    }
    if (p.bias) {
        sn_value *bias = w->g->values.data[p.bias->id];
        SN_TRY(sn_q_add(w, n, "", "Add", base, "_bias", (sn_value *[]){result, bias}, 2, &last,
                        &result));
    }
    sn_node_set_output(last, 0, n->out[0]);
    return sn_graph_remove(w->g, n, w->err);
}

sonde_status sn_q_write_dynamic(sn_quantizer *q, sonde_model **made)
{
    dynamic_writer w = {.made = NULL};
    SN_TRY(sn_q_writer_open(&w.w, q));
    return sn_q_writer_close(&w.w, sn_q_write_products(&w.w, write_product), made);
}
