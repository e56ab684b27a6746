/* SPDX-License-Identifier: Apache-2.0 */
/* CausalConvWithState: a depthwise convolution over time that sees only the past, and hands the
 * last inputs on as the state of the next call. Channels run side by side. */
#include <math.h>
#include <string.h>

#include "compute/codec.h"
#include "compute/eltwise.h"
#include "ops/shared/heads.h"

enum { X, W, BIAS, PAST, N_IN };

typedef struct causal_params {
    bool silu;
} causal_params;

typedef struct causal_bound {
    int64_t batch, channels, len, taps;
    size_t in[N_IN], row; /* workspace; row: past and input of one channel, per channel */
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
    causal_bound *k = SN_NEW(b->arena, causal_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    k->batch = x->dims[0];
    k->channels = x->dims[1];
    k->len = x->dims[2];
    k->taps = w->dims[2];
    if (!dims_are(b->in[W], 3, k->channels, 1, k->taps) ||
        (b->n_in > BIAS && b->in[BIAS] && !dims_are(b->in[BIAS], 1, k->channels, 0, 0)) ||
        (b->n_in > PAST && b->in[PAST] &&
         !dims_are(b->in[PAST], 3, k->batch, k->channels, k->taps - 1)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "weight, bias or past_state do not fit the input");
    sn_room ws = {0};
    int64_t count = 0, row;
    for (uint32_t i = 0; i < b->n_in && i < N_IN; i++) {
        if (!b->in[i])
            continue;
        if (sn_attn_compute_type(b->in[i]->type.dtype) != SONDE_DTYPE_F32 ||
            b->in[i]->type.dtype != x->dtype || !sn_type_count(&b->in[i]->type, &count))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                                sn_dtype_onnx_name(b->in[i]->type.dtype));
        if (x->dtype != SONDE_DTYPE_F32)
            k->in[i] = sn_room_take(&ws, count, sizeof(float));
    }
    if (!sn_i64_add(k->len, k->taps, &row) || !sn_i64_mul(row, k->batch * k->channels, &row))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->row = sn_room_take(&ws, row, sizeof(float));
    if (ws.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    b->workspace_bytes = ws.bytes;
    b->bound = k;
    b->kernel = "f32_causal_conv";
    b->flops = 2 * (uint64_t)(k->batch * k->channels) * (uint64_t)(k->len * k->taps);
    return SONDE_OK;
}

typedef struct causal_job {
    const causal_bound *k;
    bool silu;
    const float *x, *w, *bias, *past;
    float *row;
    sn_tensor *y, *present; /* present may be NULL */
} causal_job;

static void causal_range(void *arg, size_t lo, size_t hi)
{
    const causal_job *j = arg;
    const causal_bound *k = j->k;
    const int64_t before = k->taps - 1;
    const size_t elem = sn_dtype_bytes(j->y->dtype);
    for (size_t i = lo; i < hi; i++) {
        const int64_t at = (int64_t)i, c = at % k->channels;
        const float *w = j->w + c * k->taps;
        float *row = j->row + at * (k->len + k->taps);
        if (j->past)
            memcpy(row, j->past + at * before, sizeof(float) * (size_t)before);
        else
            memset(row, 0, sizeof(float) * (size_t)before);
        memcpy(row + before, j->x + at * k->len, sizeof(float) * (size_t)k->len);
        if (j->present)
            sn_store_f32(0, j->present->dtype,
                         (uint8_t *)j->present->data + i * (size_t)before * elem, row + k->len,
                         (size_t)before, (sn_rounding){0});
        /* Sum t reads the row from t on: it may overwrite it there. */
        for (int64_t t = 0; t < k->len; t++) {
            float sum = j->bias ? j->bias[c] : 0.0f;
            for (int64_t n = 0; n < k->taps; n++)
                sum += row[t + n] * w[n];
            row[t] = j->silu ? sum / (1.0f + expf(-sum)) : sum;
        }
        sn_store_f32(0, j->y->dtype, (uint8_t *)j->y->data + i * (size_t)k->len * elem, row,
                     (size_t)k->len, (sn_rounding){0});
    }
}

static sonde_status run_causal(const sn_step *s, sn_frame *f)
{
    const causal_params *p = s->params;
    const causal_bound *k = s->bound;
    const float *in[N_IN] = {NULL};
    for (uint32_t i = 0; i < N_IN; i++)
        if (sn_has(s, i))
            in[i] = sn_as_f32(sn_in(s, f, i), f->workspace + k->in[i]);
    causal_job j = {.k = k,
                    .silu = p->silu,
                    .x = in[X],
                    .w = in[W],
                    .bias = in[BIAS],
                    .past = in[PAST],
                    .row = (float *)(void *)(f->workspace + k->row),
                    .y = sn_out(s, f, 0),
                    .present = sn_wants(s, 1) ? sn_out(s, f, 1) : NULL};
    sn_parallel_range(f->pool, (size_t)(k->batch * k->channels), (size_t)(k->len * k->taps) + 1,
                      causal_range, &j);
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
