/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.FusedRotary: y = x * cos + turned(x) * sin in f32, made by the passes; turned(x) is x with
 * the halves of each row of a head swapped and the new first one negated, or with its neighbours.
 * x is a view (head_view.h), y is dense [batch, heads, positions, size], and the tables broadcast
 * over its first three axes. */
#include <string.h>

#include "compute/eltwise.h"
#include "ops/shared/head_view.h"
#include "ops/shared/heads.h"

enum { X, COS, SIN };

typedef struct rotary_params {
    int64_t heads, size;
    const int64_t *view;
    bool interleaved;
} rotary_params;

typedef struct rotary_bound {
    int64_t batch, len;
    ptrdiff_t x[3], table[2][3]; /* strides over batch, head and position */
} rotary_bound;

static sonde_status prepare_rotary(sn_prep *p)
{
    rotary_params *r = p->params;
    int64_t interleaved;
    SN_TRY(sn_prep_int(p, "heads", 1, &r->heads));
    SN_TRY(sn_prep_int(p, "head_size", 0, &r->size));
    SN_TRY(sn_prep_int(p, "interleaved", 0, &interleaved));
    if (r->heads < 1 || r->heads > INT32_MAX || r->size < 2 || r->size > INT32_MAX || r->size % 2)
        return sn_prep_fail(p, "heads or their size are out of range");
    r->interleaved = interleaved != 0;
    return sn_view_prepare(p, "x_view", &r->view);
}

/* Dims of a table against [batch, heads, positions, size]. */
static bool table_dims(const rotary_params *r, const sn_type *t, sn_dim out[4])
{
    if (t->rank < 1 || t->rank > 4)
        return false;
    for (int i = 0; i < 4; i++)
        out[i] = i < 4 - t->rank ? 1 : t->dims[i - (4 - t->rank)];
    return (!sn_dim_known(out[3]) || out[3] == r->size) &&
           (!sn_dim_known(out[1]) || out[1] == 1 || out[1] == r->heads);
}

/* Batch and positions of the result; false: a table does not broadcast against x. */
static bool sizes(const rotary_params *r, const sn_type *const in[3], sn_dim *batch, sn_dim *len)
{
    *batch = sn_view_dim(in[X], r->view[SN_VIEW_BATCH]);
    *len = sn_view_dim(in[X], r->view[SN_VIEW_LEN]);
    for (int i = COS; i <= SIN; i++) {
        sn_dim d[4];
        if (!table_dims(r, in[i], d) || !sn_dim_broadcast(batch, d[0]) ||
            !sn_dim_broadcast(len, d[2]))
            return false;
    }
    return true;
}

static sonde_status infer_rotary(sn_infer *c)
{
    const rotary_params *r = c->params;
    const sn_type *const in[3] = {&c->in[X]->type, &c->in[COS]->type, &c->in[SIN]->type};
    sn_dim dims[4] = {1, r->heads, 1, r->size};
    for (int i = 0; i < 3; i++)
        if (in[i]->rank < 0)
            return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
    if (!sn_view_fits(in[X], r->view) || !sizes(r, in, &dims[0], &dims[2]))
        return sn_infer_fail(c, "shapes do not broadcast: the tables against the heads");
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 4);
}

static sonde_status bind_rotary(sn_bind *b)
{
    const rotary_params *r = b->params;
    rotary_bound *k = SN_NEW(b->arena, rotary_bound);
    const sn_type *const in[3] = {&b->in[X]->type, &b->in[COS]->type, &b->in[SIN]->type};
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    bool fit = sn_view_fits(in[X], r->view) && sizes(r, in, &k->batch, &k->len) &&
               sn_view_strides(in[X], r->view, r->heads, r->size, k->x);
    for (int i = COS; i <= SIN && fit; i++) {
        sn_attention_mask m;
        sn_dim dims[4];
        fit = table_dims(r, in[i], dims) && dims[3] == r->size &&
              sn_attn_mask_strides(dims, 4, k->batch, r->heads, k->len, r->size, false, &m);
        if (fit)
            memcpy(k->table[i - COS], m.stride, sizeof k->table[0]);
    }
    for (int i = 0; i < 3; i++)
        fit = fit && in[i]->dtype == SONDE_DTYPE_F32;
    if (!fit)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the tables do not fit the heads");
    b->bound = k;
    b->kernel = r->interleaved ? "f32_rotary_pairs" : "f32_rotary_halves";
    b->flops = 3 * (uint64_t)(k->batch * r->heads) * (uint64_t)(k->len * r->size);
    return SONDE_OK;
}

typedef struct rotary_call {
    const rotary_params *r;
    const rotary_bound *k;
    const float *x, *cos, *sin;
    float *y;
} rotary_call;

static void turn_halves(float *y, const float *x, const float *cosine, const float *sine,
                        int64_t half)
{
    for (int64_t c = 0; c < half; c++)
        y[c] = x[c] * cosine[c] - x[c + half] * sine[c];
    for (int64_t c = half; c < 2 * half; c++)
        y[c] = x[c] * cosine[c] + x[c - half] * sine[c];
}

static void turn_pairs(float *y, const float *x, const float *cosine, const float *sine,
                       int64_t size)
{
    for (int64_t c = 0; c < size; c += 2) {
        y[c] = x[c] * cosine[c] - x[c + 1] * sine[c];
        y[c + 1] = x[c + 1] * cosine[c + 1] + x[c] * sine[c + 1];
    }
}

/* Heads lo … hi - 1 of all batches. */
static void rotate_heads(void *arg, size_t lo, size_t hi)
{
    const rotary_call *c = arg;
    const rotary_bound *k = c->k;
    const int64_t size = c->r->size;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / c->r->heads, h = (int64_t)i % c->r->heads;
        float *y = c->y + (int64_t)i * k->len * size;
        for (int64_t s = 0; s < k->len; s++, y += size) {
            const float *x = c->x + b * k->x[0] + h * k->x[1] + s * k->x[2];
            const ptrdiff_t *t = k->table[0], *u = k->table[1];
            const float *cosine = c->cos + b * t[0] + h * t[1] + s * t[2];
            const float *sine = c->sin + b * u[0] + h * u[1] + s * u[2];
            if (c->r->interleaved)
                turn_pairs(y, x, cosine, sine, size);
            else
                turn_halves(y, x, cosine, sine, size / 2);
        }
    }
}

static sonde_status run_rotary(const sn_step *s, sn_frame *f)
{
    const rotary_params *r = s->params;
    const rotary_bound *k = s->bound;
    rotary_call c = {.r = r,
                     .k = k,
                     .x = (const float *)sn_in(s, f, X)->data + r->view[SN_VIEW_FIRST],
                     .cos = sn_in(s, f, COS)->data,
                     .sin = sn_in(s, f, SIN)->data,
                     .y = sn_out(s, f, 0)->data};
    sn_parallel_range(f->pool, (size_t)(k->batch * r->heads), (size_t)(k->len * r->size) + 1,
                      rotate_heads, &c);
    return SONDE_OK;
}

const sn_op sn_op_fused_rotary[] = {{.name = "FusedRotary",
                                     .domain = "sonde",
                                     .since = 1,
                                     .min_in = 3,
                                     .max_in = 3,
                                     .min_out = 1,
                                     .max_out = 1,
                                     .params_size = sizeof(rotary_params),
                                     .prepare = prepare_rotary,
                                     .infer = infer_rotary,
                                     .bind = bind_rotary,
                                     .run = run_rotary,
                                     .types = "f32"},
                                    {.name = NULL}};
