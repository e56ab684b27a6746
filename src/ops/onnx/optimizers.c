/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of an optimiser over any number
 * of tensors. Inputs are the rate, the update count, then groups of equally many tensors
 * (parameters, gradients, states); outputs are new parameters and new states, in the same order. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/data_movement.h"

typedef enum optimizer { ADAGRAD, ADAM, MOMENTUM, NESTEROV } optimizer;
enum { RATE, COUNT, FIRST };

typedef struct step_params {
    optimizer kind;
    uint32_t groups; /* of input tensors: 3, or 4 for Adam */
    double alpha, beta, epsilon, norm, norm_post, decay;
} step_params;

static sonde_status number(sn_prep *p, const char *name, float def, double *out)
{
    float v;
    SN_TRY(sn_prep_float(p, name, def, &v));
    *out = (double)v;
    return SONDE_OK;
}

static sonde_status prepare_step(sn_prep *p, optimizer kind)
{
    step_params *r = p->params;
    r->kind = kind;
    r->groups = kind == ADAM ? 4 : 3;
    SN_TRY(number(p, "alpha", 0.9f, &r->alpha));
    SN_TRY(number(p, "beta", 0.999f, &r->beta));
    SN_TRY(number(p, "epsilon", 1e-6f, &r->epsilon));
    SN_TRY(number(p, "norm_coefficient", 0.0f, &r->norm));
    SN_TRY(number(p, "norm_coefficient_post", 0.0f, &r->norm_post));
    SN_TRY(number(p, "decay_factor", 0.0f, &r->decay));
    const uint32_t tensors = p->node->n_formal_in - FIRST, n = tensors / r->groups;
    if (tensors % r->groups != 0 || p->node->n_out > n * (r->groups - 1))
        return sn_prep_fail(p, "has %u tensors and %u outputs, which do not match", tensors,
                            p->node->n_out);
    return SONDE_OK;
}

static sonde_status prepare_adagrad(sn_prep *p)
{
    return prepare_step(p, ADAGRAD);
}
static sonde_status prepare_adam(sn_prep *p)
{
    return prepare_step(p, ADAM);
}
static sonde_status prepare_momentum(sn_prep *p)
{
    const char *mode;
    SN_TRY(sn_prep_string(p, "mode", "standard", &mode));
    if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0)
        return sn_prep_fail(p, "mode '%s' is unknown", mode);
    return prepare_step(p, strcmp(mode, "nesterov") == 0 ? NESTEROV : MOMENTUM);
}

/* Input that output o updates. */
static uint32_t source_of(uint32_t n, uint32_t o)
{
    return FIRST + (o < n ? o : o + n); /* states lie behind the gradients */
}

static sonde_status infer(sn_infer *c)
{
    const step_params *r = c->params;
    static const sn_dtype floats[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64},
                          int64[] = {SONDE_DTYPE_I64};
    const uint32_t n = (c->n_in - FIRST) / r->groups;
    SN_TRY(sn_wide_dtype(c, RATE, floats, 2));
    SN_TRY(sn_wide_dtype(c, COUNT, int64, 1));
    for (uint32_t i = FIRST; i < c->n_in; i++) {
        const uint32_t x = FIRST + (i - FIRST) % n;
        if (!sn_infer_has(c, i))
            return sn_infer_fail(c, "input %u is missing", i);
        SN_TRY(sn_wide_dtype(c, i, floats, 2));
        SN_TRY(sn_wide_same_dtype(c, i, x));
        const sn_type *a = &c->in[i]->type, *b = &c->in[x]->type;
        if (sn_type_is_concrete(a) && sn_type_is_concrete(b) && !sn_type_same_shape(a, b))
            return sn_infer_fail(c, "inputs %u and %u must have one shape", x, i);
    }
    for (uint32_t o = 0; o < c->n_out; o++)
        SN_TRY(sn_infer_same(c, o, source_of(n, o)));
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    static const char *const names[] = {"adagrad", "adam", "momentum", "nesterov"};
    b->kernel = names[((const step_params *)b->params)->kind];
    for (uint32_t i = FIRST; i < b->n_in; i++)
        if (b->in[i]->type.dtype != SONDE_DTYPE_F32 && b->in[i]->type.dtype != SONDE_DTYPE_F64)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                                sn_dtype_name(b->in[i]->type.dtype));
    return SONDE_OK;
}

typedef struct update {
    const step_params *r;
    double rate;            /* adjusted */
    double beta;            /* Momentum: adjusted */
    const sn_tensor *in[4]; /* x, gradient, states */
    sn_tensor *out[3];      /* x, states; NULL: not wanted */
} update;

static void update_range(void *arg, size_t lo, size_t hi)
{
    const update *u = arg;
    const step_params *r = u->r;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        double v[4] = {0}, next[3] = {0};
        for (uint32_t k = 0; k < r->groups; k++)
            v[k] = sn_elem_f64(u->in[k]->dtype, u->in[k]->data, i);
        const double x = v[0], g = r->norm * x + v[1];
        switch (r->kind) {
        case ADAGRAD:
            next[1] = v[2] + g * g;
            next[0] = x - u->rate * g / (sqrt(next[1]) + r->epsilon);
            break;
        case ADAM:
            next[1] = r->alpha * v[2] + (1 - r->alpha) * g;
            next[2] = r->beta * v[3] + (1 - r->beta) * g * g;
            next[0] = (1 - r->norm_post) * (x - u->rate * next[1] / (sqrt(next[2]) + r->epsilon));
            break;
        case MOMENTUM:
        case NESTEROV:
            next[1] = r->alpha * v[2] + u->beta * g;
            next[0] = x - u->rate * (r->kind == NESTEROV ? g + r->alpha * next[1] : next[1]);
            break;
        }
        for (uint32_t k = 0; k + 1 < r->groups; k++)
            if (u->out[k])
                sn_elem_set_f64(u->out[k]->dtype, u->out[k]->data, i, next[k]);
    }
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const step_params *r = s->params;
    const sn_tensor *rate = sn_in(s, f, RATE), *count = sn_in(s, f, COUNT);
    if (sn_tensor_count(rate) != 1 || sn_tensor_count(count) != 1)
        return sn_run_fail(s, f, "the rate and the update count must be one number each");
    const double lr = sn_elem_f64(rate->dtype, rate->data, 0), t = (double)sn_move_int(count, 0);
    const uint32_t n = (s->n_in - FIRST) / r->groups;
    update u = {.r = r, .rate = lr, .beta = t > 0 ? r->beta : 1.0};
    if (r->kind == ADAGRAD)
        u.rate = lr / (1 + t * r->decay);
    if (r->kind == ADAM && t > 0)
        u.rate = lr * sqrt(1 - pow(r->beta, t)) / (1 - pow(r->alpha, t));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < r->groups; k++)
            u.in[k] = sn_in(s, f, FIRST + k * n + i);
        for (uint32_t k = 0; k + 1 < r->groups; k++)
            u.out[k] = sn_wants(s, k * n + i) ? sn_out(s, f, k * n + i) : NULL;
        sn_parallel_range(f->pool, (size_t)sn_tensor_count(u.in[0]), 40, update_range, &u);
    }
    return SONDE_OK;
}

#define OPTIMIZER(NAME, PREPARE)                                                                   \
    {                                                                                              \
        .name = NAME, .domain = "ai.onnx.preview.training", .since = 1, .min_in = 3, .max_in = -1, \
        .min_out = 1, .max_out = -1, .params_size = sizeof(step_params), .prepare = PREPARE,       \
        .infer = infer, .bind = bind, .run = run, .types = "f32 f64"                               \
    }
const sn_op sn_op_adagrad[] = {OPTIMIZER("Adagrad", prepare_adagrad), {.name = NULL}};
const sn_op sn_op_adam[] = {OPTIMIZER("Adam", prepare_adam), {.name = NULL}};
const sn_op sn_op_momentum[] = {OPTIMIZER("Momentum", prepare_momentum), {.name = NULL}};
