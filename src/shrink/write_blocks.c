/* SPDX-License-Identifier: Apache-2.0 */
/* Weights alone, in blocks along the inner dimension with a scale each: MatMulNBits of
 * com.microsoft, 4 or 8 bits. Symmetric: the number of the largest magnitude becomes the lowest
 * integer, so that no level is lost. */
#include <math.h>
#include <string.h>

#include "base/codec.h"
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

static void round_block(blocks *b, int64_t column, int64_t first, uint8_t *out, float scale)
{
    const int zero = 1 << (b->bits - 1), most = 2 * zero - 1;
    for (int64_t i = 0; i < b->size; i++) {
        const float x = at(b, column, first + i);
        const int q = (int)fmaxf(0, fminf((float)most, rintf(x / scale) + (float)zero));
        const double d = (double)(q - zero) * (double)scale - (double)x;
        b->signal += (double)x * (double)x;
        b->noise += d * d;
        if (b->bits == 8)
            out[i] = (uint8_t)q;
        else
            out[i / 2] = (uint8_t)(out[i / 2] | q << (i % 2 ? 4 : 0));
    }
}

/* Scales have the type of the activations, and weights are rounded with what that leaves. */
static void set_scale(void *scales, sn_dtype dtype, int64_t i, float *scale)
{
    if (dtype == SONDE_DTYPE_F32) {
        ((float *)scales)[i] = *scale;
        return;
    }
    uint16_t half = sn_f32_to_f16(*scale);
    half = half & 0x7fff ? half : 1; /* a block of numbers that are almost 0 */
    ((uint16_t *)scales)[i] = half;
    *scale = sn_f16_to_f32(half);
}

static sonde_status add_weights(sn_q_writer *w, const sn_q_product *p, blocks *b, sn_q_made *made)
{
    const sn_dtype dtype = p->w->fact.data->dtype;
    const int64_t blob = b->size * b->bits / 8;
    const int64_t dims[3] = {b->n, b->count, blob}, n_scales = b->n * b->count;
    void *data, *scales;
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, b->bits == 4 ? "_q4" : "_q8", SONDE_DTYPE_U8, dims,
                         3, &made->values[0], &data, w->err));
    SN_TRY(sn_q_constant(w->m, w->g, p->w->name, "_scales", dtype, &n_scales, 1, &made->values[1],
                         &scales, w->err));
    memset(data, 0, (size_t)(n_scales * blob));
    for (int64_t c = 0; c < b->n; c++)
        for (int64_t i = 0; i < b->count; i++) {
            float scale = scale_of(b, c, i * b->size);
            set_scale(scales, dtype, c * b->count + i, &scale);
            round_block(b, c, i * b->size, (uint8_t *)data + (c * b->count + i) * blob, scale);
        }
    made->sqnr_db = sn_q_decibel(b->signal, b->noise);
    return sn_q_made_add(w, made);
}

static sonde_status find_weights(sn_q_writer *w, const sn_q_product *p, blocks *b, sn_q_node *d,
                                 const sn_q_made **made)
{
    const sn_tensor *t = p->w->fact.data;
    SN_TRY(sn_q_made_find(w, t, p->axis, NULL, made));
    if (!*made) {
        SN_TRY(sn_q_weight_numbers(w, p->w, &b->w));
        SN_TRY(add_weights(w, p, b, &(sn_q_made){.of = t, .form = p->axis}));
        SN_TRY(sn_q_made_find(w, t, p->axis, NULL, made));
        d->bytes_before = t->bytes;
        d->bytes_after =
            (*made)->values[0]->fact.data->bytes + (*made)->values[1]->fact.data->bytes;
    }
    d->made = b->bits == 4 ? "int4" : "int8";
    d->weights = "per block";
    d->sqnr_db = (*made)->sqnr_db;
    return SONDE_OK;
}

static sonde_status write_product(sn_q_writer *w, sn_node *n, sn_q_node *d)
{
    sn_q_product p;
    const sn_q_made *weights;
    sn_value *result;
    sn_node *made;
    const char *base = n->name[0] ? n->name : n->out[0]->name;
    (void)sn_q_product_of(w->scope->g_nodes[n->id], &p);
    const sn_tensor *t = p.w->fact.data;
    const int64_t size = w->q->o.block_size ? w->q->o.block_size : 32;
    blocks b = {.n = t->dims[p.axis],
                .k = t->dims[!p.axis],
                .row_step = p.axis ? t->dims[1] : 1,
                .column_step = p.axis ? 1 : t->dims[1],
                .size = size,
                .bits = w->q->o.bits ? w->q->o.bits : 4};
    b.count = (b.k + size - 1) / size;
    SN_TRY(find_weights(w, &p, &b, d, &weights));
    SN_TRY(sn_q_add(w, n, "com.microsoft", "MatMulNBits", base, b.bits == 4 ? "_Q4" : "_Q8",
                    (sn_value *[]){n->in[0].value, weights->values[0], weights->values[1]}, 3,
                    &made, &result));
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

sonde_status sn_q_write_blocks(sn_quantizer *q, sonde_model **made)
{
    sn_q_writer w;
    SN_TRY(sn_q_writer_open(&w, q));
    sonde_status st = sn_q_import(&w, "com.microsoft", 1);
    if (st == SONDE_OK)
        st = sn_q_write_products(&w, write_product);
    return sn_q_writer_close(&w, st, made);
}
