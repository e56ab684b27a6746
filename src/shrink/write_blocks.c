/* SPDX-License-Identifier: Apache-2.0 */
/* Weights alone, in blocks along the inner dimension with a scale each: MatMulNBits of
 * com.microsoft, 4 or 8 bits. Symmetric: the number of the largest magnitude becomes the lowest
 * integer, so that no level is lost. */
#include <math.h>
#include <string.h>

#include "shrink/quantizer.h"

typedef struct blocks {
    const float *w;
    int64_t n, k, row_step, column_step; /* w[column · column_step + row · row_step] */
    int64_t size, count, bits;           /* of a block; blocks of a column */
    double signal, noise;
} blocks;

static float at(const blocks *b, int64_t column, int64_t row)
{
    return row < b->k ? b->w[column * b->column_step + row * b->row_step] : 0.0f;
}

static float scale_of(const blocks *b, int64_t column, int64_t first)
{
    float extreme = 0;
    for (int64_t i = first; i < first + b->size; i++) {
        const float x = at(b, column, i);
        extreme = fabsf(x) > fabsf(extreme) ? x : extreme;
    }
    const float scale = extreme / -(float)(1 << (b->bits - 1));
    return fabsf(scale) >= 0x1p-120f ? scale : 1.0f;
}

static void round_block(blocks *b, int64_t column, int64_t first, uint8_t *out, float *scale)
{
    const int zero = 1 << (b->bits - 1), most = 2 * zero - 1;
    *scale = scale_of(b, column, first);
    for (int64_t i = 0; i < b->size; i++) {
        const float x = at(b, column, first + i);
        const int q = (int)fmaxf(0, fminf((float)most, rintf(x / *scale) + (float)zero));
        const double d = (double)(q - zero) * (double)*scale - (double)x;
        b->signal += (double)x * (double)x;
        b->noise += d * d;
        if (b->bits == 8)
            out[i] = (uint8_t)q;
        else
            out[i / 2] = (uint8_t)(out[i / 2] | q << (i % 2 ? 4 : 0));
    }
}

static sonde_status add_weights(sn_q_writer *w, const sn_q_product *p, blocks *b, sn_q_node *d,
                                sn_value **bytes, sn_value **scales)
{
    const int64_t blob = b->size * b->bits / 8;
    const int64_t dims[3] = {b->n, b->count, blob}, n_scales = b->n * b->count;
    void *data, *numbers;
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, b->bits == 4 ? "_q4" : "_q8", SONDE_DTYPE_U8, dims,
                         3, bytes, &data, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, "_scales", SONDE_DTYPE_F32, &n_scales, 1, scales,
                         &numbers, w->err));
    memset(data, 0, (size_t)(n_scales * blob));
    for (int64_t c = 0; c < b->n; c++)
        for (int64_t i = 0; i < b->count; i++)
            round_block(b, c, i * b->size, (uint8_t *)data + (c * b->count + i) * blob,
                        (float *)numbers + c * b->count + i);
    d->made = b->bits == 4 ? "int4" : "int8";
    d->weights = "per block";
    d->bytes_before = p->w->fact.data->bytes;
    d->bytes_after = (uint64_t)(n_scales * (blob + 4));
    d->sqnr_db = sn_q_decibel(b->signal, b->noise);
    return SONDE_OK;
}

static sonde_status check_finite(const sn_q_writer *w, const sn_q_product *p)
{
    const float *x = p->w->fact.data->data;
    for (int64_t i = 0; i < sn_tensor_count(p->w->fact.data); i++)
        if (!isfinite(x[i]))
            return sn_fail(w->err, SONDE_INVALID_MODEL,
                           "weight '%.300s' has a number that is not finite; leave its node in "
                           "float",
                           p->w->name);
    return SONDE_OK;
}

static sonde_status write_product(sn_q_writer *w, sn_node *n, sn_q_node *d)
{
    sn_q_product p;
    sn_value *bytes, *scales, *result;
    sn_node *made;
    const char *base = n->name[0] ? n->name : n->out[0]->name;
    (void)sn_q_product_of(w->q->g_nodes[n->id], &p);
    const sn_tensor *t = p.w->fact.data;
    const int64_t size = w->q->o.block_size ? w->q->o.block_size : 32;
    blocks b = {.w = t->data,
                .n = t->dims[p.axis],
                .k = t->dims[!p.axis],
                .row_step = p.axis ? t->dims[1] : 1,
                .column_step = p.axis ? 1 : t->dims[1],
                .size = size,
                .bits = w->q->o.bits ? w->q->o.bits : 4};
    b.count = (b.k + size - 1) / size;
    SN_TRY(check_finite(w, &p));
    SN_TRY(add_weights(w, &p, &b, d, &bytes, &scales));
    SN_TRY(sn_q_add(w, n, "com.microsoft", "MatMulNBits", base, b.bits == 4 ? "_Q4" : "_Q8",
                    (sn_value *[]){n->in[0].value, bytes, scales}, 3, &made, &result));
    SN_TRY(sn_q_set_int(w, made, "K", b.k));
    SN_TRY(sn_q_set_int(w, made, "N", b.n));
    SN_TRY(sn_q_set_int(w, made, "bits", b.bits));
    SN_TRY(sn_q_set_int(w, made, "block_size", size));
    if (p.bias)
        SN_TRY(sn_q_add(w, n, "", "Add", base, "_bias",
                        (sn_value *[]){result, w->g->values.data[p.bias->id]}, 2, &made, &result));
    sn_node_set_output(made, 0, n->out[0]);
    return sn_graph_remove(w->g, n, w->err);
}

static sonde_status write_all(sn_q_writer *w)
{
    SN_TRY(sn_q_import(w, "com.microsoft", 1));
    sn_graph_each (n, w->g)
        if (n->id < w->q->g->n_nodes && w->q->nodes[n->id].role == SN_Q_PRODUCT)
            SN_TRY(write_product(w, n, &w->q->nodes[n->id]));
    return SONDE_OK;
}

sonde_status sn_q_write_blocks(sn_quantizer *q, sonde_model **made)
{
    sn_q_writer w;
    SN_TRY(sn_q_writer_open(&w, q));
    return sn_q_writer_close(&w, write_all(&w), made);
}
