/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors: RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial. Numbers
 * come from splitmix64; a node with a seed gives the same tensor in every run, one without takes
 * its seed from the clock. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "ops/shared/data_movement.h"

typedef struct random_params {
    float a, b; /* mean and scale, or low and high */
    int64_t dtype;
    bool seeded;
    float seed;
    const int64_t *shape;
    size_t rank;
    int64_t samples; /* Multinomial */
} random_params;

typedef struct random_state {
    uint64_t s;
} random_state;

static uint64_t next_bits(random_state *r)
{
    uint64_t z = (r->s += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* In [0, 1). */
static double next_uniform(random_state *r)
{
    return (double)(next_bits(r) >> 11) * 0x1p-53;
}

static random_state start_random(const random_params *p)
{
    uint32_t bits;
    memcpy(&bits, &p->seed, sizeof bits);
    random_state r = {p->seeded ? bits : sn_ticks()};
    next_bits(&r);
    return r;
}

/* ------------------------------------------------------------------ prepare */
static sonde_status prepare_common(sn_prep *p, int64_t dtype)
{
    random_params *r = p->params;
    r->seeded = sn_node_attr(p->node, "seed") != NULL;
    SN_TRY(sn_prep_float(p, "seed", 0, &r->seed));
    SN_TRY(sn_prep_int(p, "dtype", dtype, &r->dtype));
    if (r->dtype != 0 && !sn_dtype_valid(r->dtype))
        return sn_prep_fail(p, "attribute 'dtype' is %lld, not an element type",
                            (long long)r->dtype);
    return SONDE_OK;
}

static sonde_status prepare_like(sn_prep *p, const char *a, float a_def, const char *b,
                                 int64_t dtype)
{
    random_params *r = p->params;
    SN_TRY(sn_prep_float(p, a, a_def, &r->a));
    SN_TRY(sn_prep_float(p, b, 1, &r->b));
    return prepare_common(p, dtype);
}

static sonde_status prepare_shape(sn_prep *p)
{
    random_params *r = p->params;
    SN_TRY(sn_prep_ints(p, "shape", &r->shape, &r->rank));
    return r->rank > SN_MAX_RANK ? sn_prep_fail(p, "attribute 'shape' is too long") : SONDE_OK;
}

static sonde_status prepare_normal_like(sn_prep *p)
{
    return prepare_like(p, "mean", 0, "scale", 0);
}

static sonde_status prepare_uniform_like(sn_prep *p)
{
    return prepare_like(p, "low", 0, "high", 0);
}

static sonde_status prepare_normal(sn_prep *p)
{
    SN_TRY(prepare_shape(p));
    return prepare_like(p, "mean", 0, "scale", SONDE_DTYPE_F32);
}

static sonde_status prepare_uniform(sn_prep *p)
{
    SN_TRY(prepare_shape(p));
    return prepare_like(p, "low", 0, "high", SONDE_DTYPE_F32);
}

static sonde_status prepare_bernoulli(sn_prep *p)
{
    return prepare_common(p, 0);
}

static sonde_status prepare_multinomial(sn_prep *p)
{
    random_params *r = p->params;
    SN_TRY(sn_prep_int(p, "sample_size", 1, &r->samples));
    if (r->samples < 0)
        return sn_prep_fail(p, "attribute 'sample_size' is %lld", (long long)r->samples);
    return prepare_common(p, SONDE_DTYPE_I32);
}

/* ------------------------------------------------------------------ infer */
static sonde_status infer_shape(sn_infer *c)
{
    const random_params *r = c->params;
    return sn_move_out(c, 0, (sn_dtype)r->dtype, r->shape, (int)r->rank);
}

static sonde_status infer_like(sn_infer *c)
{
    const random_params *r = c->params;
    sn_move_type x;
    SN_TRY(sn_move_in(c, 0, &x));
    return sn_move_out(c, 0, r->dtype ? (sn_dtype)r->dtype : x.dtype, x.dims, x.rank);
}

static sonde_status infer_multinomial(sn_infer *c)
{
    const random_params *r = c->params;
    sn_move_type x;
    SN_TRY(sn_move_in(c, 0, &x));
    if (x.rank >= 0 && x.rank != 2)
        return sn_infer_fail(c, "the input has rank %d, expected 2", x.rank);
    sn_dim dims[2] = {x.rank == 2 ? x.dims[0] : SN_DIM_UNKNOWN, r->samples};
    return sn_move_out(c, 0, (sn_dtype)r->dtype, dims, 2);
}

/* ------------------------------------------------------------------ run */
static sonde_status run_uniform(const sn_step *s, sn_frame *f)
{
    const random_params *p = s->params;
    sn_tensor *y = sn_out(s, f, 0);
    random_state r = start_random(p);
    double low = (double)p->a, width = (double)p->b - low;
    for (int64_t i = 0, n = sn_tensor_count(y); i < n; i++)
        sn_elem_set_f64(y->dtype, y->data, i, low + width * next_uniform(&r));
    return SONDE_OK;
}

/* Box and Muller's transform, one of its two numbers at a time. */
static sonde_status run_normal(const sn_step *s, sn_frame *f)
{
    const random_params *p = s->params;
    sn_tensor *y = sn_out(s, f, 0);
    random_state r = start_random(p);
    for (int64_t i = 0, n = sn_tensor_count(y); i < n; i++) {
        double radius = sqrt(-2 * log(1 - next_uniform(&r))),
               angle = 6.283185307179586 * next_uniform(&r);
        sn_elem_set_f64(y->dtype, y->data, i, (double)p->a + (double)p->b * radius * cos(angle));
    }
    return SONDE_OK;
}

static sonde_status run_bernoulli(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    random_state r = start_random(s->params);
    for (int64_t i = 0, n = sn_tensor_count(y); i < n; i++)
        sn_elem_set_f64(y->dtype, y->data, i,
                        next_uniform(&r) < sn_elem_f64(x->dtype, x->data, i) ? 1 : 0);
    return SONDE_OK;
}

/* Rows of unnormalised log probabilities; a sample is where the running sum passes a random part of
 * the whole. */
static sonde_status run_multinomial(const sn_step *s, sn_frame *f)
{
    const random_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    random_state r = start_random(p);
    int64_t classes = x->dims[1];
    if (classes == 0 && sn_tensor_count(y) > 0)
        return sn_run_fail(s, f, "there are no classes to sample from");
    for (int64_t b = 0; b < x->dims[0]; b++) {
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            top = fmax(top, sn_elem_f64(x->dtype, x->data, b * classes + c));
        for (int64_t c = 0; c < classes; c++)
            sum += exp(sn_elem_f64(x->dtype, x->data, b * classes + c) - top);
        for (int64_t k = 0; k < p->samples; k++) {
            double left = next_uniform(&r) * sum;
            int64_t c = 0;
            for (; c + 1 < classes; c++) {
                left -= exp(sn_elem_f64(x->dtype, x->data, b * classes + c) - top);
                if (left < 0)
                    break;
            }
            sn_elem_set_f64(y->dtype, y->data, b * p->samples + k, (double)c);
        }
    }
    return SONDE_OK;
}

#define RANDOM_OP(NAME, SINCE, N_IN, PREPARE, INFER, RUN)                                          \
    {                                                                                              \
        {SN_MOVE_HEAD(NAME, SINCE, 0, N_IN, N_IN, 1, 1),                                           \
         .flags = SN_OP_RANDOM | SN_OP_NO_FOLD,                                                    \
         .params_size = sizeof(random_params),                                                     \
         .prepare = PREPARE,                                                                       \
         .infer = INFER,                                                                           \
         .run = RUN,                                                                               \
         .types = "f16 bf16 f32 f64"},                                                             \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }
const sn_op sn_op_random_normal[] =
    RANDOM_OP("RandomNormal", 1, 0, prepare_normal, infer_shape, run_normal);
const sn_op sn_op_random_uniform[] =
    RANDOM_OP("RandomUniform", 1, 0, prepare_uniform, infer_shape, run_uniform);
const sn_op sn_op_random_normal_like[] =
    RANDOM_OP("RandomNormalLike", 1, 1, prepare_normal_like, infer_like, run_normal);
const sn_op sn_op_random_uniform_like[] =
    RANDOM_OP("RandomUniformLike", 1, 1, prepare_uniform_like, infer_like, run_uniform);
const sn_op sn_op_bernoulli[] =
    RANDOM_OP("Bernoulli", 15, 1, prepare_bernoulli, infer_like, run_bernoulli);
const sn_op sn_op_multinomial[] =
    RANDOM_OP("Multinomial", 7, 1, prepare_multinomial, infer_multinomial, run_multinomial);
