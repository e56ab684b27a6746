/* SPDX-License-Identifier: Apache-2.0 */
/* The static form: QuantizeLinear ► DequantizeLinear behind every value that is bytes, weights int8
 * and biases int32 behind a DequantizeLinear each. Runtimes see from these pairs what computes with
 * integers. Values of the float model keep their names, so that both models can be compared. */
#include <math.h>
#include <string.h>

#include "shrink/quantizer.h"

/* ------------------------------------------------------------------ activations */
typedef struct params {
    sn_value *scale, *zero;
} params;

static sonde_status make_params(sn_q_writer *w, const sn_value *v, params *p)
{
    const sn_q_value *d = &w->q->values[v->id];
    const bool is_signed = w->q->o.signed_activations;
    void *scale, *zero;
    SN_TRY(sn_q_constant(w->m, w->g, v->name, "_scale", SONDE_DTYPE_F32, NULL, 0, &p->scale, &scale,
                         w->err));
    SN_TRY(sn_q_constant(w->m, w->g, v->name, "_zero_point",
                         is_signed ? SONDE_DTYPE_I8 : SONDE_DTYPE_U8, NULL, 0, &p->zero, &zero,
                         w->err));
    *(float *)scale = d->scale;
    *(uint8_t *)zero = (uint8_t)d->zero;
    return SONDE_OK;
}

/* Readers of v read `to` instead: all if a node of integers makes v, else those that want bytes. */
static void redirect(sn_q_writer *w, sn_value *v, sn_value *to, const sn_node *q)
{
    const bool all = v->producer && w->q->nodes[v->producer->id].role != SN_Q_FLOAT;
    for (sn_edge *e = v->uses, *next; e; e = next) {
        next = e->next;
        if (e->node != q && (all || sn_q_reads_bytes(w->q, w->q->g_nodes[e->node->id], e->index)))
            sn_node_set_input(e->node, e->index, to);
    }
}

static sonde_status add_pair(sn_q_writer *w, sn_value *v, const params *p)
{
    sn_node *before = v->producer ? v->producer->next : w->g->first, *q;
    sn_value *bytes, *floats;
    SN_TRY(sn_q_add(w, before, "", "QuantizeLinear", v->name, "_QuantizeLinear",
                    (sn_value *[]){v, p->scale, p->zero}, 3, &q, &bytes));
    SN_TRY(sn_q_add(w, before, "", "DequantizeLinear", v->name, "_DequantizeLinear",
                    (sn_value *[]){bytes, p->scale, p->zero}, 3, NULL, &floats));
    redirect(w, v, floats, q);
    return SONDE_OK;
}

static sonde_status add_pairs(sn_q_writer *w, params *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const sn_q_value *d = &w->q->values[i];
        if (d->bytes && d->scale_of == i)
            SN_TRY(make_params(w, w->g->values.data[i], &all[i]));
    }
    for (size_t i = 0; i < n; i++) {
        const sn_q_value *d = &w->q->values[i];
        if (d->bytes)
            SN_TRY(add_pair(w, w->g->values.data[i], &all[d->scale_of]));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ weights */
typedef struct product {
    sn_node *n;
    const sn_q_product *p;
    const float *w;
    sn_q_layout l;
    float *scales;   /* l.channels */
    float *bias;     /* outputs; NULL: none */
    int64_t outputs; /* channels of the result */
    const sn_q_value *x;
    float x_scale;
    const int8_t *rounded;
    bool shared; /* another node above has the same weights */
} product;

/* The channel of the weights that output c has. */
static int64_t channel_of(const product *p, int64_t c)
{
    return p->l.channels == 1 ? 0 : c % p->l.channels;
}

/* A bias is an integer in units of x_scale · w_scale: where these are so small that it would not
 * fit, the scale of the weights grows. */
static void widen_scales(product *p)
{
    for (int64_t c = 0; p->bias && c < p->outputs; c++) {
        const double least = fabs((double)p->bias[c]) / (double)p->x_scale / 0x1p30;
        float *scale = &p->scales[channel_of(p, c)];
        if ((double)*scale < least)
            *scale = nextafterf((float)least, INFINITY);
    }
}

/* The mean error of output c that rounded weights make, from the means of the inputs. */
static double mean_error(const product *p, int64_t c)
{
    const sn_tensor *t = p->p->w->fact.data;
    const bool gemm = t->rank == 2;
    const int64_t inputs = gemm ? t->dims[!p->p->axis] : t->dims[1];
    const int64_t taps = gemm ? 1 : sn_tensor_count(t) / (t->dims[0] * t->dims[1]);
    const int64_t group = gemm ? 0 : c / (p->outputs / p->p->groups);
    double sum = 0;
    for (int64_t i = 0; i < inputs; i++) {
        const int64_t channel = group * inputs + i;
        const int64_t at = !gemm        ? (c * inputs + i) * taps
                           : p->p->axis ? i * t->dims[1] + c
                                        : c * t->dims[1] + i;
        double d = 0;
        for (int64_t k = 0; k < taps; k++)
            d += (double)p->rounded[at + k] * (double)p->scales[channel_of(p, c)] -
                 (double)p->w[at + k];
        sum += channel < p->x->channels ? d * p->x->means[channel] : 0;
    }
    return sum;
}

static void correct_bias(product *p)
{
    if (!p->bias || !p->x->means || sn_q_is(p->n, "ConvTranspose"))
        return;
    for (int64_t c = 0; c < p->outputs; c++)
        p->bias[c] -= (float)mean_error(p, c);
}

/* ------------------------------------------------------------------ constants of a product */
static sonde_status make_weights(sn_q_writer *w, product *p, int axis, sn_q_made *made)
{
    const sn_value *old = p->p->w;
    const sn_tensor *t = old->fact.data;
    void *data, *scale, *zero;
    const int rank = axis < 0 ? 0 : 1;
    SN_TRY(sn_q_constant(w->m, w->g, old->name, "_quantized", SONDE_DTYPE_I8, t->dims, t->rank,
                         &made->values[0], &data, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, old->name, "_scale", SONDE_DTYPE_F32, &p->l.channels, rank,
                         &made->values[1], &scale, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, old->name, "_zero_point", SONDE_DTYPE_I8, &p->l.channels, rank,
                         &made->values[2], &zero, w->err));
    sn_q_weight_round(p->w, p->l, p->scales, data);
    memcpy(scale, p->scales, (size_t)p->l.channels * sizeof(float));
    memset(zero, 0, (size_t)p->l.channels);
    made->sqnr_db = sn_q_weight_sqnr(p->w, p->l, p->scales, data);
    return sn_q_made_add(w, made);
}

/* Constants are shared; a DequantizeLinear belongs to one node, which is what runtimes look for. */
static sonde_status add_weights(sn_q_writer *w, product *p, int axis, double *sqnr_db)
{
    const sn_value *old = p->p->w;
    const sn_q_made *made;
    sn_value *out;
    sn_node *dq;
    SN_TRY(sn_q_made_find(w, old->fact.data, axis, p->scales, &made));
    p->shared = made != NULL;
    if (!made) {
        SN_TRY(make_weights(w, p, axis, &(sn_q_made){.of = old->fact.data, .form = axis}));
        SN_TRY(sn_q_made_find(w, old->fact.data, axis, p->scales, &made));
    }
    p->rounded = made->values[0]->fact.data->data;
    *sqnr_db = made->sqnr_db;
    SN_TRY(sn_q_add(w, p->n, "", "DequantizeLinear", old->name, "_DequantizeLinear", made->values,
                    3, &dq, &out));
    if (axis >= 0)
        SN_TRY(sn_q_set_int(w, dq, "axis", axis));
    sn_node_set_input(p->n, 1, out);
    return SONDE_OK;
}

static sonde_status add_bias(sn_q_writer *w, product *p, const char *name)
{
    sn_value *in[2], *out;
    void *data, *scale;
    sn_node *dq;
    const int rank = p->l.channels == 1 ? 0 : 1;
    SN_TRY(sn_q_constant(w->m, w->g, name, "_quantized", SONDE_DTYPE_I32, &p->outputs, 1, &in[0],
                         &data, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, name, "_quantized_scale", SONDE_DTYPE_F32, &p->outputs, rank,
                         &in[1], &scale, w->err));
    for (int64_t c = 0; c < p->outputs; c++) {
        const float unit = p->x_scale * p->scales[channel_of(p, c)];
        ((float *)scale)[rank ? c : 0] = unit;
        ((int32_t *)data)[c] =
            (int32_t)fmax(-0x1p31, fmin(0x1p31 - 1, rint((double)p->bias[c] / (double)unit)));
    }
    SN_TRY(sn_q_add(w, p->n, "", "DequantizeLinear", name, "_DequantizeLinear", in, 2, &dq, &out));
    if (rank)
        SN_TRY(sn_q_set_int(w, dq, "axis", 0));
    if (p->n->n_in > 2)
        sn_node_set_input(p->n, 2, out);
    else
        SN_TRY(sn_node_add_input(w->g, p->n, out, w->err));
    p->n->n_formal_in = p->n->n_in;
    return SONDE_OK;
}

static sonde_status copy_bias(sn_q_writer *w, product *p, bool make)
{
    const sn_tensor *b = p->p->bias ? p->p->bias->fact.data : NULL;
    if (!b && !make)
        return SONDE_OK;
    p->bias = SN_NEW_N(&w->m->arena, float, (size_t)p->outputs);
    if (!p->bias)
        return sn_fail_memory(w->err, (size_t)p->outputs * sizeof(float));
    if (b)
        memcpy(p->bias, b->data, (size_t)p->outputs * sizeof(float));
    return SONDE_OK;
}

static sonde_status write_product(sn_q_writer *w, sn_node *n, sn_q_node *d)
{
    sn_q_product found;
    const sn_node *old = w->q->g_nodes[n->id];
    (void)sn_q_product_of(old, &found);
    const sn_value *x = old->in[0].value;
    const bool matmul = sn_q_is(n, "MatMul");
    const int axis = w->q->o.per_tensor || found.channels == 1 ? -1 : found.axis;
    product p = {.n = n,
                 .p = &found,
                 .l = sn_q_layout_of(found.w->fact.data, axis),
                 .outputs =
                     sn_q_is(n, "ConvTranspose") ? found.channels * found.groups : found.channels,
                 .x = &w->q->values[x->id],
                 .x_scale = w->q->values[x->id].scale};
    SN_TRY(sn_q_weight_numbers(w, found.w, &p.w));
    p.scales = SN_NEW_N(&w->m->arena, float, (size_t)p.l.channels);
    if (!p.scales)
        return sn_fail_memory(w->err, (size_t)p.l.channels * sizeof(float));
    sn_q_weight_scales(p.w, p.l, p.scales);
    if (!matmul)
        SN_TRY(copy_bias(w, &p, !w->q->o.no_bias_correction));
    widen_scales(&p);
    SN_TRY(add_weights(w, &p, axis, &d->sqnr_db));
    if (!w->q->o.no_bias_correction)
        correct_bias(&p);
    const char *name =
        found.bias ? found.bias->name : sn_arena_printf(&w->m->arena, "%s_bias", n->out[0]->name);
    if (!name)
        return sn_fail_memory(w->err, 64);
    if (p.bias)
        SN_TRY(add_bias(w, &p, name));
    const uint64_t count = p.shared ? 0 : (uint64_t)sn_tensor_count(found.w->fact.data);
    d->made = "int8";
    d->weights = axis < 0 ? "per tensor" : "per channel";
    d->bytes_before =
        (count + (found.bias ? (uint64_t)p.outputs : 0)) * (w->q->widened ? 2 : sizeof(float));
    d->bytes_after = count + (p.shared ? 0 : (uint64_t)p.l.channels * 5) +
                     (p.bias ? (uint64_t)p.outputs * 8 : 0);
    return SONDE_OK;
}

static sonde_status write_all(sn_q_writer *w)
{
    const size_t n_values = w->q->g->values.n;
    params *all = SN_NEW_N(&w->m->arena, params, n_values + 1);
    if (!all)
        return sn_fail_memory(w->err, n_values * sizeof *all);
    SN_TRY(add_pairs(w, all, n_values));
    return sn_q_write_products(w, write_product);
}

sonde_status sn_q_write_static(sn_quantizer *q, sonde_model **made)
{
    sn_q_writer w;
    SN_TRY(sn_q_writer_open(&w, q));
    return sn_q_writer_close(&w, write_all(&w), made);
}
