/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of an optimiser over any number
 * of tensors. Inputs are the rate, the update count, then groups of equally many tensors
 * (parameters, gradients, states); outputs are new parameters and new states, in the same order. */
#include <string.h>

#include "compute/optimizer.h"
#include "ops/shared/checks.h"
#include "ops/shared/data_movement.h"

enum { RATE, COUNT, FIRST };

static sonde_status number(sn_prep *p, const char *name, float def, double *out)
{
    float v;
    SN_TRY(sn_prep_float(p, name, def, &v));
    *out = (double)v;
    return SONDE_OK;
}

static sonde_status prepare_step(sn_prep *p, sn_optimizer_kind kind)
{
    sn_optimizer *r = p->params;
    r->kind = kind;
    SN_TRY(number(p, "alpha", 0.9f, &r->alpha));
    SN_TRY(number(p, "beta", 0.999f, &r->beta));
    SN_TRY(number(p, "epsilon", 1e-6f, &r->epsilon));
    SN_TRY(number(p, "norm_coefficient", 0.0f, &r->norm));
    SN_TRY(number(p, "norm_coefficient_post", 0.0f, &r->norm_post));
    SN_TRY(number(p, "decay_factor", 0.0f, &r->decay));
    const uint32_t groups = sn_optimizer_inputs(kind);
    const uint32_t tensors = p->node->n_formal_in - FIRST, n = tensors / groups;
    if (tensors % groups != 0 || p->node->n_out > n * (groups - 1))
        return sn_prep_fail(p, "has %u tensors and %u outputs, which do not match", tensors,
                            p->node->n_out);
    return SONDE_OK;
}

static sonde_status prepare_adagrad(sn_prep *p)
{
    return prepare_step(p, SN_ADAGRAD);
}
static sonde_status prepare_adam(sn_prep *p)
{
    return prepare_step(p, SN_ADAM);
}
static sonde_status prepare_momentum(sn_prep *p)
{
    const char *mode;
    SN_TRY(sn_prep_string(p, "mode", "standard", &mode));
    if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0)
        return sn_prep_fail(p, "mode '%s' is unknown", mode);
    return prepare_step(p, strcmp(mode, "nesterov") == 0 ? SN_NESTEROV : SN_MOMENTUM);
}

/* Input that output o updates. */
static uint32_t source_of(uint32_t n, uint32_t o)
{
    return FIRST + (o < n ? o : o + n); /* states lie behind the gradients */
}

static sonde_status infer(sn_infer *c)
{
    const sn_optimizer *r = c->params;
    static const sn_dtype floats[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64},
                          int64[] = {SONDE_DTYPE_I64};
    const uint32_t n = (c->n_in - FIRST) / sn_optimizer_inputs(r->kind);
    SN_TRY(sn_check_dtype(c, RATE, floats, 2));
    SN_TRY(sn_check_dtype(c, COUNT, int64, 1));
    for (uint32_t i = FIRST; i < c->n_in; i++) {
        const uint32_t x = FIRST + (i - FIRST) % n;
        if (!sn_infer_has(c, i))
            return sn_infer_fail(c, "input %u is missing", i);
        SN_TRY(sn_check_dtype(c, i, floats, 2));
        SN_TRY(sn_check_same_dtype(c, i, x));
        const sn_type *a = &c->in[i]->type, *b = &c->in[x]->type;
        if (sn_type_is_concrete(a) && sn_type_is_concrete(b) && !sn_type_same_shape(a, b))
            return sn_infer_fail(c, "inputs %u and %u must have the same shape", x, i);
    }
    for (uint32_t o = 0; o < c->n_out; o++)
        SN_TRY(sn_infer_same(c, o, source_of(n, o)));
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    static const char *const names[] = {"adagrad", "adam", "momentum", "nesterov"};
    b->kernel = names[((const sn_optimizer *)b->params)->kind];
    for (uint32_t i = FIRST; i < b->n_in; i++)
        if (b->in[i]->type.dtype != SONDE_DTYPE_F32 && b->in[i]->type.dtype != SONDE_DTYPE_F64)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                                sn_dtype_name(b->in[i]->type.dtype));
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const sn_optimizer *r = s->params;
    const sn_tensor *rate = sn_in(s, f, RATE), *count = sn_in(s, f, COUNT);
    if (sn_tensor_count(rate) != 1 || sn_tensor_count(count) != 1)
        return sn_run_fail(s, f, "the rate and the update count must be one number each");
    const double lr = sn_elem_f64(rate->dtype, rate->data, 0), t = (double)sn_tensor_int(count, 0);
    const uint32_t groups = sn_optimizer_inputs(r->kind), n = (s->n_in - FIRST) / groups;
    for (uint32_t i = 0; i < n; i++) {
        sn_elems in[4], out[3];
        for (uint32_t k = 0; k < groups; k++)
            in[k] = sn_tensor_elems(sn_in(s, f, FIRST + k * n + i));
        for (uint32_t k = 0; k + 1 < groups; k++)
            out[k] = sn_tensor_elems(sn_wants(s, k * n + i) ? sn_out(s, f, k * n + i) : NULL);
        sn_optimizer_run(r, lr, t, sn_tensor_count(sn_in(s, f, FIRST + i)), in, out, f->pool);
    }
    return SONDE_OK;
}

#define OPTIMIZER(NAME, PREPARE)                                                                   \
    {                                                                                              \
        .name = NAME, .domain = "ai.onnx.preview.training", .since = 1, .min_in = 3, .max_in = -1, \
        .min_out = 1, .max_out = -1, .params_size = sizeof(sn_optimizer), .prepare = PREPARE,      \
        .infer = infer, .bind = bind, .run = run, .types = "f32 f64"                               \
    }
const sn_op sn_op_adagrad[] = {OPTIMIZER("Adagrad", prepare_adagrad), {.name = NULL}};
const sn_op sn_op_adam[] = {OPTIMIZER("Adam", prepare_adam), {.name = NULL}};
const sn_op sn_op_momentum[] = {OPTIMIZER("Momentum", prepare_momentum), {.name = NULL}};
