/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias per channel. Usually
 * a pass has folded it into a convolution; what remains runs here. training_mode takes mean and
 * variance from the batch and gives the running ones as outputs 1 and 2. */
#include <math.h>
#include <string.h>

#include "compute/codec.h"
#include "compute/norm.h"
#include "ops/framework/op.h"

typedef struct norm_params {
    float epsilon, momentum;
    int64_t training, spatial;
} norm_params;

enum { X, SCALE, BIAS, MEAN, VARIANCE };

static sonde_status prepare(sn_prep *p)
{
    norm_params *n = p->params;
    SN_TRY(sn_prep_float(p, "epsilon", 1e-5f, &n->epsilon));
    SN_TRY(sn_prep_float(p, "momentum", 0.9f, &n->momentum));
    SN_TRY(sn_prep_int(p, "training_mode", 0, &n->training));
    SN_TRY(sn_prep_int(p, "spatial", 1, &n->spatial));
    if (n->spatial != 1)
        return sn_prep_fail(p, "spatial = %lld is not supported", (long long)n->spatial);
    return SONDE_OK;
}

/* Until opset 6 an attribute said that this is not training. */
static sonde_status prepare_1(sn_prep *p)
{
    int64_t is_test;
    SN_TRY(prepare(p));
    SN_TRY(sn_prep_int(p, "is_test", 0, &is_test));
    return is_test ? SONDE_OK : sn_prep_fail(p, "is_test = 0 (training) is not supported");
}

static sonde_status infer(sn_infer *c)
{
    const norm_params *p = c->params;
    for (uint32_t i = X; i <= VARIANCE; i++)
        if (!sn_infer_has(c, i))
            return sn_infer_fail(c, "input %u is missing", i);
    const sn_type *x = &c->in[X]->type;
    if (x->rank == 0)
        return sn_infer_fail(c, "a scalar has no channels");
    const sn_dim channels = x->rank >= 2 ? x->dims[1] : x->rank == 1 ? 1 : SN_DIM_UNKNOWN;
    for (uint32_t i = SCALE; i <= VARIANCE; i++) {
        const sn_type *t = &c->in[i]->type;
        if (t->rank >= 0 && (t->rank != 1 || (sn_dim_known(t->dims[0]) && sn_dim_known(channels) &&
                                              t->dims[0] != channels)))
            return sn_infer_fail(c, "input %u must have one element per channel", i);
    }
    SN_TRY(sn_infer_same(c, 0, X));
    /* Outputs beyond the first exist in training only (until opset 13 they are deprecated). */
    for (uint32_t o = 1; o < c->n_out; o++) {
        if (!p->training && c->node->out[o])
            return sn_infer_fail(c, "output %u exists in training only", o);
        SN_TRY(sn_infer_same(c, o, o == 1 || o == 3 ? MEAN : VARIANCE));
    }
    return SONDE_OK;
}

static uint32_t blocking(const sn_node *node, const void *params, int block)
{
    const norm_params *p = params;
    const sn_value *x = node->in[X].value;
    (void)block;
    if (!x || p->training || x->fact.type.dtype != SONDE_DTYPE_F32 || x->fact.type.rank != 4)
        return 0;
    return SN_BLOCK_IN | SN_BLOCK_OUT;
}

typedef struct norm_bound {
    int64_t n, c, pixels, block;
} norm_bound;

/* ---- any float type, plain: one channel at a time, in double ---- */
static double load(const sn_tensor *t, int64_t i)
{
    float f;
    if (t->dtype == SONDE_DTYPE_F64)
        return ((const double *)t->data)[i];
    if (t->dtype == SONDE_DTYPE_F32)
        return (double)((const float *)t->data)[i];
    sn_load_f32(0, t->dtype, &f, (const uint8_t *)t->data + (size_t)i * sn_dtype_bytes(t->dtype),
                1);
    return (double)f;
}

static void store(const sn_tensor *t, int64_t i, double v)
{
    const float f = (float)v;
    if (t->dtype == SONDE_DTYPE_F64)
        ((double *)t->data)[i] = v;
    else if (t->dtype == SONDE_DTYPE_F32)
        ((float *)t->data)[i] = f;
    else
        sn_store_f32(0, t->dtype, (uint8_t *)t->data + (size_t)i * sn_dtype_bytes(t->dtype), &f, 1,
                     (sn_rounding){0});
}

typedef struct channel_call {
    const sn_step *s;
    const sn_frame *f;
} channel_call;

/* Mean and variance of channel c over the batch (population variance). */
static void measure(const norm_bound *b, const sn_tensor *x, int64_t c, double *mean, double *var)
{
    const double count = (double)(b->n * b->pixels);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t k = 0; k < b->pixels; k++)
            sum += load(x, (i * b->c + c) * b->pixels + k);
    *mean = sum / count;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t k = 0; k < b->pixels; k++) {
            const double d = load(x, (i * b->c + c) * b->pixels + k) - *mean;
            squares += d * d;
        }
    *var = squares / count;
}

static void channel(void *arg, size_t index, int worker)
{
    const channel_call *call = arg;
    const sn_step *s = call->s;
    const sn_frame *f = call->f;
    const norm_params *p = s->params;
    const norm_bound *b = s->bound;
    const sn_tensor *x = sn_in(s, f, X), *y = sn_out(s, f, 0);
    const int64_t c = (int64_t)index;
    double mean = load(sn_in(s, f, MEAN), c), var = load(sn_in(s, f, VARIANCE), c);
    (void)worker;
    if (p->training) {
        const double m = (double)p->momentum, old_mean = mean, old_var = var;
        measure(b, x, c, &mean, &var);
        if (sn_wants(s, 1))
            store(sn_out(s, f, 1), c, old_mean * m + mean * (1 - m));
        if (sn_wants(s, 2))
            store(sn_out(s, f, 2), c, old_var * m + var * (1 - m));
        if (sn_wants(s, 3))
            store(sn_out(s, f, 3), c, mean);
        if (sn_wants(s, 4))
            store(sn_out(s, f, 4), c, var);
    }
    const double scale = load(sn_in(s, f, SCALE), c) / sqrt(var + (double)p->epsilon);
    const double shift = load(sn_in(s, f, BIAS), c) - mean * scale;
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t at = (i * b->c + c) * b->pixels;
        if (x->dtype == SONDE_DTYPE_F32) {
            const float a = (float)scale, d = (float)shift;
            const float *from = (const float *)x->data + at;
            float *to = (float *)y->data + at;
            for (int64_t k = 0; k < b->pixels; k++)
                to[k] = from[k] * a + d;
            continue;
        }
        for (int64_t k = 0; k < b->pixels; k++)
            store(y, at + k, load(x, at + k) * scale + shift);
    }
}

static sonde_status run_plain(const sn_step *s, sn_frame *f)
{
    const norm_bound *b = s->bound;
    channel_call call = {s, f};
    sn_pool_run(f->pool, (size_t)b->c, channel, &call);
    return SONDE_OK;
}

/* ---- f32, blocked: one channel block of one image at a time ---- */
static void channel_block(void *arg, size_t index, int worker)
{
    const channel_call *call = arg;
    const sn_step *s = call->s;
    const sn_frame *f = call->f;
    const norm_params *p = s->params;
    const norm_bound *b = s->bound;
    const int64_t blocks = (b->c + b->block - 1) / b->block, cb = (int64_t)index % blocks;
    const float *x = (const float *)sn_in(s, f, X)->data + (int64_t)index * b->pixels * b->block;
    float *y = (float *)sn_out(s, f, 0)->data + (int64_t)index * b->pixels * b->block;
    float scale[16] = {0}, shift[16] = {0}; /* zero in the padding lanes */
    (void)worker;
    for (int64_t l = 0; l < b->block && cb * b->block + l < b->c; l++) {
        const int64_t c = cb * b->block + l;
        const double a =
            load(sn_in(s, f, SCALE), c) / sqrt(load(sn_in(s, f, VARIANCE), c) + (double)p->epsilon);
        scale[l] = (float)a;
        shift[l] = (float)(load(sn_in(s, f, BIAS), c) - load(sn_in(s, f, MEAN), c) * a);
    }
    sn_scale_lanes(f->ctx->cpu.flags, y, x, scale, shift, b->pixels, (unsigned)b->block);
}

static sonde_status run_blocked(const sn_step *s, sn_frame *f)
{
    const norm_bound *b = s->bound;
    channel_call call = {s, f};
    sn_pool_run(f->pool, (size_t)(b->n * ((b->c + b->block - 1) / b->block)), channel_block, &call);
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const sn_type *x = &b->in[X]->type;
    norm_bound *n = SN_NEW(b->arena, norm_bound);
    if (!n)
        return sn_fail_memory(b->err, sizeof *n);
    if (x->dtype != SONDE_DTYPE_F64 && x->dtype != SONDE_DTYPE_F32 && !sn_is_half(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "%s is not supported", sn_dtype_name(x->dtype));
    *n = (norm_bound){
        .n = x->dims[0], .c = x->rank > 1 ? x->dims[1] : 1, .pixels = 1, .block = b->in[X]->block};
    for (int i = 2; i < x->rank; i++)
        n->pixels *= x->dims[i];
    b->bound = n;
    b->run = n->block ? run_blocked : run_plain;
    b->kernel = n->block ? "f32_batchnorm_blocked" : "batchnorm_plain";
    return SONDE_OK;
}

#define NORM(from, to, outs, prep)                                                                 \
    {                                                                                              \
        .name = "BatchNormalization", .domain = "", .since = from, .until = to, .min_in = 5,       \
        .max_in = 5, .min_out = 1, .max_out = outs, .params_size = sizeof(norm_params),            \
        .prepare = prep, .infer = infer, .bind = bind, .run = run_plain, .blocking = blocking,     \
        .types = "f32 f64 f16 bf16"                                                                \
    }

const sn_op sn_op_batch_normalization[] = {NORM(1, 5, 5, prepare_1),
                                           NORM(6, 6, 5, prepare_1),
                                           NORM(7, 8, 5, prepare),
                                           NORM(9, 13, 5, prepare),
                                           NORM(14, 14, 3, prepare),
                                           NORM(15, 0, 3, prepare),
                                           {.name = NULL}};
