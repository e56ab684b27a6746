/* SPDX-License-Identifier: Apache-2.0 */
/* BiasGelu, FastGelu and QuickGelu of com.microsoft: an optional bias along the last dim, then one
 * activation. */
#include <string.h>

#include "ops/shared/elementwise.h"

typedef struct gelu_params {
    sn_unary op;
    float alpha;
} gelu_params;

typedef struct gelu_bound {
    sn_elt add, act;
    sn_elt_plan plan;
    bool bias;
    union {
        float f32[2];
        double f64[2];
    } p;
} gelu_bound;

static sonde_status prepare_gelu(sn_prep *p)
{
    gelu_params *g = p->params;
    const char *name = p->node->op_type;
    g->op = strcmp(name, "BiasGelu") == 0   ? SN_UNARY_GELU
            : strcmp(name, "FastGelu") == 0 ? SN_UNARY_GELU_TANH
                                            : SN_UNARY_SWISH;
    return sn_prep_float(p, "alpha", 1.702f, &g->alpha);
}

static sonde_status infer_gelu(sn_infer *c)
{
    if (sn_infer_has(c, 1)) {
        const sn_type *x = &c->in[0]->type, *bias = &c->in[1]->type;
        if (bias->rank >= 0 && bias->rank != 1)
            return sn_infer_fail(c, "the bias must have rank 1");
        if (bias->rank == 1 && x->rank >= 0 &&
            (x->rank == 0 || (sn_dim_known(x->dims[x->rank - 1]) && sn_dim_known(bias->dims[0]) &&
                              x->dims[x->rank - 1] != bias->dims[0])))
            return sn_infer_fail(c, "the bias does not fit the last dimension");
    }
    return sn_infer_same(c, 0, 0);
}

static sonde_status bind_gelu(sn_bind *b)
{
    const gelu_params *g = b->params;
    gelu_bound *k = SN_NEW(b->arena, gelu_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_dtype t = b->in[0]->type.dtype;
    k->bias = b->n_in > 1 && b->in[1];
    if (k->bias && b->in[1]->type.dtype != t)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the bias has a different dtype than the input");
    if (!sn_unary_get(&k->act, g->op, t, b->cpu_flags) ||
        !sn_binary_get(&k->add, SN_BINARY_ADD, t, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t));
    SN_TRY(sn_elt_plan_make(b, 0, k->bias ? 2 : 1, &k->plan));
    if (t == SONDE_DTYPE_F64)
        k->p.f64[0] = (double)g->alpha;
    else
        k->p.f32[0] = g->alpha;
    b->bound = k;
    b->kernel = k->act.name;
    b->flops = (uint64_t)k->plan.bcast.total * (k->act.cost + (k->bias ? 1u : 0u));
    return SONDE_OK;
}

static sonde_status run_gelu(const sn_step *s, sn_frame *f)
{
    const gelu_bound *k = s->bound;
    void *y = sn_out(s, f, 0)->data;
    const void *x = sn_in(s, f, 0)->data;
    if (k->bias) {
        sn_binary_run(&k->add, &k->plan.bcast, y, x, sn_in(s, f, 1)->data, NULL, f->pool);
        x = y;
    }
    sn_unary_run(&k->act, y, x, k->plan.bcast.total, &k->p, f->pool);
    return SONDE_OK;
}

#define GELU(symbol, NAME, MIN_IN, MAX_IN)                                                         \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = SN_MS_DOMAIN,                                               \
                             .since = 1,                                                           \
                             .min_in = MIN_IN,                                                     \
                             .max_in = MAX_IN,                                                     \
                             .min_out = 1,                                                         \
                             .max_out = 1,                                                         \
                             .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE,                          \
                             .params_size = sizeof(gelu_params),                                   \
                             .prepare = prepare_gelu,                                              \
                             .infer = infer_gelu,                                                  \
                             .bind = bind_gelu,                                                    \
                             .run = run_gelu,                                                      \
                             .half = SN_HALF_IN_F32,                                               \
                             .types = SN_FLOATS},                                                  \
                            {.name = NULL}};
GELU(sn_op_ms_bias_gelu, "BiasGelu", 2, 2)
GELU(sn_op_ms_fast_gelu, "FastGelu", 1, 2)
GELU(sn_op_ms_quick_gelu, "QuickGelu", 1, 1)
