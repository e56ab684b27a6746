/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.FusedRotary: y = x * cos + turned(x) * sin in f32, made by the passes; turned(x) is x with
 * the halves of each row of a head swapped and the new first one negated, or with its neighbours.
 * x is a view (head_view.h), y is dense [batch, heads, positions, size], and the tables broadcast
 * over its first three axes. */
#include <string.h>

#include "compute/rotary.h"
#include "ops/shared/attention.h"
#include "ops/shared/head_view.h"

enum { X, COS, SIN };

typedef struct rotary_params {
    int64_t heads, size;
    const int64_t *view;
    bool interleaved;
} rotary_params;

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
    sn_turn *t = SN_NEW(b->arena, sn_turn);
    const sn_type *const in[3] = {&b->in[X]->type, &b->in[COS]->type, &b->in[SIN]->type};
    if (!t)
        return sn_fail_memory(b->err, sizeof *t);
    *t = (sn_turn){.heads = r->heads, .size = r->size, .interleaved = r->interleaved};
    bool fit = sn_view_fits(in[X], r->view) && sizes(r, in, &t->batch, &t->len) &&
               sn_view_strides(in[X], r->view, r->heads, r->size, t->x);
    for (int i = COS; i <= SIN && fit; i++) {
        sn_attention_mask m;
        sn_dim dims[4];
        fit = table_dims(r, in[i], dims) && dims[3] == r->size &&
              sn_attn_mask_strides(dims, 4, t->batch, r->heads, t->len, r->size, false, &m);
        if (fit)
            memcpy(i == COS ? t->cos : t->sin, m.stride, sizeof t->cos);
    }
    for (int i = 0; i < 3; i++)
        fit = fit && in[i]->dtype == SONDE_DTYPE_F32;
    if (!fit)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the tables do not fit the heads");
    b->bound = t;
    b->kernel = r->interleaved ? "f32_rotary_pairs" : "f32_rotary_halves";
    b->flops = 3 * (uint64_t)(t->batch * r->heads) * (uint64_t)(t->len * r->size);
    return SONDE_OK;
}

static sonde_status run_rotary(const sn_step *s, sn_frame *f)
{
    const rotary_params *r = s->params;
    sn_turn_run(s->bound, sn_out(s, f, 0)->data,
                (const float *)sn_in(s, f, X)->data + r->view[SN_VIEW_FIRST],
                sn_in(s, f, COS)->data, sn_in(s, f, SIN)->data, f->pool);
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
