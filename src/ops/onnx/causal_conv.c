/* SPDX-License-Identifier: Apache-2.0 */
/* CausalConvWithState: a depthwise convolution over time that sees only the past, and hands the
 * last inputs on as the state of the next call. Computed in f32. */
#include <string.h>

#include "compute/causal_conv.h"
#include "ops/shared/converted.h"

enum { X, W, BIAS, PAST, N_IN };

typedef struct causal_params {
    bool silu;
} causal_params;

typedef struct causal_bound {
    sn_causal_conv_desc d;
    sn_piece in[N_IN], rows;
} causal_bound;

static sonde_status prepare_causal(sn_prep *p)
{
    causal_params *c = p->params;
    const char *act;
    SN_TRY(sn_prep_string(p, "activation", "none", &act));
    c->silu = strcmp(act, "silu") == 0 || strcmp(act, "swish") == 0;
    if (!c->silu && strcmp(act, "none") != 0 && act[0])
        return sn_prep_fail(p, "attribute 'activation' is '%s', expected 'silu', 'swish' or 'none'",
                            act);
    return SONDE_OK;
}

static sonde_status infer_causal(sn_infer *c)
{
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    sn_dim dims[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    if ((x->rank >= 0 && x->rank != 3) || (w->rank >= 0 && w->rank != 3))
        return sn_infer_fail(c, "input and weight must have rank 3");
    SN_TRY(sn_infer_same(c, 0, X));
    if (x->rank == 3)
        memcpy(dims, x->dims, 2 * sizeof *dims);
    if (w->rank == 3 && sn_dim_known(w->dims[2])) {
        if (w->dims[2] < 1)
            return sn_infer_fail(c, "the kernel is empty");
        dims[2] = w->dims[2] - 1;
    }
    return sn_infer_tensor(c, 1, x->dtype, dims, 3);
}

static bool dims_are(const sn_fact *f, int rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t want[3] = {a, b, c};
    return f->type.rank == rank && memcmp(f->type.dims, want, sizeof(int64_t) * (size_t)rank) == 0;
}

static sonde_status bind_causal(sn_bind *b)
{
    const causal_params *p = b->params;
    causal_bound *k = SN_NEW(b->arena, causal_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    sn_causal_conv_desc *d = &k->d;
    *d = (sn_causal_conv_desc){x->dims[0], x->dims[1], x->dims[2], w->dims[2], p->silu};
    if (!dims_are(b->in[W], 3, d->channels, 1, d->taps) ||
        (b->n_in > BIAS && b->in[BIAS] && !dims_are(b->in[BIAS], 1, d->channels, 0, 0)) ||
        (b->n_in > PAST && b->in[PAST] &&
         !dims_are(b->in[PAST], 3, d->batch, d->channels, d->taps - 1)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "weight, bias or past_state do not fit the input");
    for (uint32_t i = 0; i < b->n_in && i < N_IN; i++) {
        if (!b->in[i])
            continue;
        if (sn_compute_float(b->in[i]->type.dtype) != SONDE_DTYPE_F32 ||
            b->in[i]->type.dtype != x->dtype)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                                sn_dtype_onnx_name(b->in[i]->type.dtype));
        k->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
    }
    k->rows = sn_carve(&b->workspace, sn_causal_conv_scratch(d), sizeof(float));
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    b->bound = k;
    b->kernel = "f32_causal_conv";
    b->flops = 2 * (uint64_t)(d->batch * d->channels) * (uint64_t)(d->len * d->taps);
    return SONDE_OK;
}

static sonde_status run_causal(const sn_step *s, sn_frame *f)
{
    const causal_bound *k = s->bound;
    const float *in[N_IN];
    for (uint32_t i = 0; i < N_IN; i++)
        in[i] = sn_converted_in(s, f, i, SONDE_DTYPE_F32, k->in[i]);
    const sn_causal_conv_args a = {.x = in[X],
                                   .w = in[W],
                                   .bias = in[BIAS],
                                   .past = in[PAST],
                                   .rows = sn_piece_ptr(f, k->rows),
                                   .dtype = sn_out(s, f, 0)->dtype,
                                   .y = sn_out(s, f, 0)->data,
                                   .present = sn_wants(s, 1) ? sn_out(s, f, 1)->data : NULL};
    sn_causal_conv_run(&k->d, &a, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_causal_conv[] = {{.name = "CausalConvWithState",
                                    .domain = "",
                                    .since = 27,
                                    .min_in = 2,
                                    .max_in = 4,
                                    .min_out = 1,
                                    .max_out = 2,
                                    .params_size = sizeof(causal_params),
                                    .prepare = prepare_causal,
                                    .infer = infer_causal,
                                    .bind = bind_causal,
                                    .run = run_causal,
                                    .types = "f32 f16 bf16"},
                                   {.name = NULL}};
