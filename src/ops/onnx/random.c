/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors: RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial. A node
 * with a seed gives the same tensor in every run, one without takes its seed from the clock. */
#include <string.h>

#include "base/clock.h"
#include "compute/random.h"
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

static uint64_t seed_of(const random_params *p)
{
    uint32_t bits;
    memcpy(&bits, &p->seed, sizeof bits);
    return p->seeded ? bits : sn_ticks();
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
    return sn_infer_bounded(c, 0, (sn_dtype)r->dtype, r->shape, (int)r->rank);
}

static sonde_status infer_like(sn_infer *c)
{
    const random_params *r = c->params;
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    return sn_infer_bounded(c, 0, r->dtype ? (sn_dtype)r->dtype : x.dtype, x.dims, x.rank);
}

static sonde_status infer_multinomial(sn_infer *c)
{
    const random_params *r = c->params;
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank >= 0 && x.rank != 2)
        return sn_infer_fail(c, "the input has rank %d, expected 2", x.rank);
    sn_dim dims[2] = {x.rank == 2 ? x.dims[0] : SN_DIM_UNKNOWN, r->samples};
    return sn_infer_bounded(c, 0, (sn_dtype)r->dtype, dims, 2);
}

/* ------------------------------------------------------------------ run */
static sonde_status run_uniform(const sn_step *s, sn_frame *f)
{
    const random_params *p = s->params;
    const sn_tensor *y = sn_out(s, f, 0);
    sn_random_uniform(seed_of(p), (double)p->a, (double)p->b, sn_tensor_elems(y),
                      sn_tensor_count(y));
    return SONDE_OK;
}

static sonde_status run_normal(const sn_step *s, sn_frame *f)
{
    const random_params *p = s->params;
    const sn_tensor *y = sn_out(s, f, 0);
    sn_random_normal(seed_of(p), (double)p->a, (double)p->b, sn_tensor_elems(y),
                     sn_tensor_count(y));
    return SONDE_OK;
}

static sonde_status run_bernoulli(const sn_step *s, sn_frame *f)
{
    const sn_tensor *y = sn_out(s, f, 0);
    sn_random_bernoulli(seed_of(s->params), sn_tensor_elems(y), sn_tensor_elems(sn_in(s, f, 0)),
                        sn_tensor_count(y));
    return SONDE_OK;
}

static sonde_status run_multinomial(const sn_step *s, sn_frame *f)
{
    const random_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *y = sn_out(s, f, 0);
    if (x->dims[1] == 0 && sn_tensor_count(y) > 0)
        return sn_run_fail(s, f, "there are no classes to sample from");
    sn_random_multinomial(seed_of(p), sn_tensor_elems(y), sn_tensor_elems(x), x->dims[0],
                          x->dims[1], p->samples);
    return SONDE_OK;
}

#define RANDOM_OP(NAME, SINCE, N_IN, PREPARE, INFER, RUN)                                          \
    {                                                                                              \
        {SN_OP_HEAD(NAME, SINCE, 0, N_IN, N_IN, 1, 1),                                             \
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
