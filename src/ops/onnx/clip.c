/* SPDX-License-Identifier: Apache-2.0 */
/* Clip. The bounds are attributes up to opset 6 and optional scalar inputs since 11; either way
 * they reach the loop as two numbers of the element type. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/shared/elementwise.h"
#include "ops/shared/layouts.h"

typedef struct clip_params {
    bool attributes; /* else inputs 1 and 2 */
    float lo, hi;
} clip_params;

typedef struct clip_bound {
    sn_elt elt;
    sn_elt_plan plan;
    sn_dtype dtype;
} clip_bound;

static sonde_status prepare_clip_6(sn_prep *p)
{
    clip_params *c = p->params;
    c->attributes = true;
    SN_TRY(sn_prep_float(p, "min", -FLT_MAX, &c->lo));
    return sn_prep_float(p, "max", FLT_MAX, &c->hi);
}

static sn_dim clip_value(int op, sn_dim a, sn_dim b)
{
    (void)b;
    (void)op;
    return a;
}

static sonde_status infer_clip(sn_infer *c)
{
    SN_TRY(sn_infer_same(c, 0, 0));
    int64_t one;
    for (uint32_t i = 1; i <= 2; i++)
        if (sn_infer_has(c, i) && sn_type_count(&c->in[i]->type, &one) && one != 1)
            return sn_infer_fail(c, "bound %u must be one element", i);
    if (c->n_in == 1)
        return SONDE_OK;
    /* Values: only when every bound is known. */
    const sn_dim *bound[3] = {NULL, NULL, NULL};
    int64_t n;
    for (uint32_t i = 1; i <= 2; i++) {
        SN_TRY(sn_infer_ints(c, i, &bound[i], &n));
        if (sn_infer_has(c, i) && (!bound[i] || n != 1 || !sn_dim_known(bound[i][0])))
            return SONDE_OK;
    }
    SN_TRY(sn_infer_ints_1(c, clip_value, 0));
    if (c->n_out == 0 || !c->out[0].ints)
        return SONDE_OK;
    sn_dim v[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < c->out[0].n_ints; i++) {
        v[i] = c->out[0].ints[i];
        if (!sn_dim_known(v[i])) {
            v[i] = SN_DIM_UNKNOWN;
            continue;
        }
        if (bound[1] && v[i] < bound[1][0])
            v[i] = bound[1][0];
        if (bound[2] && v[i] > bound[2][0])
            v[i] = bound[2][0];
    }
    return sn_infer_set_ints(c, 0, v, c->out[0].n_ints);
}

static sonde_status bind_clip(sn_bind *b)
{
    clip_bound *k = SN_NEW(b->arena, clip_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    k->dtype = b->in[0]->type.dtype;
    for (uint32_t i = 1; i < b->n_in; i++)
        if (b->in[i] && b->in[i]->type.dtype != k->dtype)
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "bound %u has a different dtype than the input", i);
    if (!sn_unary_get(&k->elt, SN_UNARY_CLIP, k->dtype, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(k->dtype));
    SN_TRY(sn_elt_plan_make(b, 0, 1, &k->plan));
    b->bound = k;
    b->kernel = k->elt.name;
    b->flops = (uint64_t)k->plan.bcast.total * k->elt.cost;
    return SONDE_OK;
}

typedef union bounds {
    float f32[2];
    double f64[2];
    int8_t i8[2];
    uint8_t u8[2];
    int16_t i16[2];
    uint16_t u16[2];
    int32_t i32[2];
    uint32_t u32[2];
    int64_t i64[2];
    uint64_t u64[2];
} bounds;

/* The bounds that change nothing. */
static void widest(bounds *p, sn_dtype t)
{
    switch (t) {
#define CASE(D, field, low, high)                                                                  \
    case SONDE_DTYPE_##D:                                                                          \
        p->field[0] = low;                                                                         \
        p->field[1] = high;                                                                        \
        break;
        CASE(F64, f64, -INFINITY, INFINITY)
        CASE(I8, i8, INT8_MIN, INT8_MAX)
        CASE(U8, u8, 0, UINT8_MAX)
        CASE(I16, i16, INT16_MIN, INT16_MAX)
        CASE(U16, u16, 0, UINT16_MAX)
        CASE(I32, i32, INT32_MIN, INT32_MAX)
        CASE(U32, u32, 0, UINT32_MAX)
        CASE(I64, i64, INT64_MIN, INT64_MAX)
        CASE(U64, u64, 0, UINT64_MAX)
#undef CASE
    default: /* f32, and 16-bit floats in f32 */
        p->f32[0] = -INFINITY;
        p->f32[1] = INFINITY;
    }
}

static void set_bound(bounds *p, int which, const sn_tensor *t)
{
    if (t->dtype == SONDE_DTYPE_F16)
        p->f32[which] = sn_f16_to_f32(*(const uint16_t *)t->data);
    else if (t->dtype == SONDE_DTYPE_BF16)
        p->f32[which] = sn_bf16_to_f32(*(const uint16_t *)t->data);
    else
        memcpy((uint8_t *)p + (size_t)which * sn_dtype_bytes(t->dtype), t->data,
               sn_dtype_bytes(t->dtype));
}

static sonde_status run_clip(const sn_step *s, sn_frame *f)
{
    const clip_bound *k = s->bound;
    const clip_params *c = s->params;
    bounds p;
    widest(&p, k->dtype);
    if (c->attributes && k->dtype == SONDE_DTYPE_F64) {
        p.f64[0] = (double)c->lo;
        p.f64[1] = (double)c->hi;
    } else if (c->attributes && sn_dtype_is_float(k->dtype)) {
        p.f32[0] = c->lo;
        p.f32[1] = c->hi;
    }
    for (uint32_t i = 1; i <= 2; i++)
        if (sn_has(s, i))
            set_bound(&p, (int)i - 1, sn_in(s, f, i));
    sn_tensor *y = sn_out(s, f, 0);
    sn_unary_run(&k->elt, y->data, sn_in(s, f, 0)->data, k->plan.bcast.total, &p, f->pool);
    sn_elt_plan_finish(&k->plan, y->data);
    return SONDE_OK;
}

static const sn_op_signature *in_blocks_clip(const sn_node *node, const void *params, int block)
{
    (void)params;
    (void)block;
    const sn_type *t = &node->in[0].value->fact.type;
    return t->dtype == SONDE_DTYPE_F32 && t->rank >= 3 ? &sn_layout_follows : NULL;
}

#define CLIP(SINCE, UNTIL, MAX_IN, PREPARE, TYPES)                                                 \
    {                                                                                              \
        SN_ELT_HEAD("Clip", SINCE, UNTIL, 1, MAX_IN),                                              \
            .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE, .params_size = sizeof(clip_params),       \
            .prepare = PREPARE, .infer = infer_clip, .bind = bind_clip, .run = run_clip,           \
            .half = SN_HALF_IN_F32, .in_blocks = in_blocks_clip, .types = TYPES                    \
    }
const sn_op sn_op_clip[] = {CLIP(1, 10, 1, prepare_clip_6, SN_FLOATS),
                            CLIP(11, 0, 3, NULL, SN_FLOATS " " SN_INTS),
                            {.name = NULL}};
