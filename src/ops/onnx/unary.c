/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one tensor, element by element: activations, rounding, trigonometry, tests. One
 * table says which function each is and which attributes it takes. */
#include <string.h>

#include "ops/shared/elementwise.h"
#include "ops/shared/layouts.h"

typedef struct unary_params {
    sn_unary op;
    float p[2];
} unary_params;

typedef struct unary_bound {
    sn_elt elt;
    sn_elt_plan plan;
    size_t n;
    union {
        float f32[2];
        double f64[2];
    } p;
} unary_bound;

/* Functions with float attributes; a NULL name: none. */
typedef struct unary_row {
    const char *name;
    sn_unary op;
    struct {
        const char *name;
        float def;
    } attr[2];
} unary_row;

static const unary_row rows[] = {
    {"Relu", SN_UNARY_RELU, {{NULL, 0}}},
    {"LeakyRelu", SN_UNARY_LEAKY_RELU, {{"alpha", 0.01f}}},
    {"Elu", SN_UNARY_ELU, {{"alpha", 1.0f}}},
    {"Selu",
     SN_UNARY_SELU,
     {{"gamma", 1.05070102214813232421875f}, {"alpha", 1.67326319217681884765625f}}},
    {"Celu", SN_UNARY_CELU, {{"alpha", 1.0f}}},
    {"ThresholdedRelu", SN_UNARY_THRESHOLDED_RELU, {{"alpha", 1.0f}}},
    {"HardSigmoid", SN_UNARY_HARD_SIGMOID, {{"alpha", 0.2f}, {"beta", 0.5f}}},
    {"HardSwish", SN_UNARY_HARD_SWISH, {{NULL, 0}}},
    {"Sigmoid", SN_UNARY_SIGMOID, {{NULL, 0}}},
    {"Tanh", SN_UNARY_TANH, {{NULL, 0}}},
    {"Softplus", SN_UNARY_SOFTPLUS, {{NULL, 0}}},
    {"Softsign", SN_UNARY_SOFTSIGN, {{NULL, 0}}},
    {"Mish", SN_UNARY_MISH, {{NULL, 0}}},
    {"Swish", SN_UNARY_SWISH, {{"alpha", 1.0f}}},
    {"Erf", SN_UNARY_ERF, {{NULL, 0}}},
    {"Exp", SN_UNARY_EXP, {{NULL, 0}}},
    {"Log", SN_UNARY_LOG, {{NULL, 0}}},
    {"Sqrt", SN_UNARY_SQRT, {{NULL, 0}}},
    {"Reciprocal", SN_UNARY_RECIPROCAL, {{NULL, 0}}},
    {"Abs", SN_UNARY_ABS, {{NULL, 0}}},
    {"Neg", SN_UNARY_NEG, {{NULL, 0}}},
    {"Sign", SN_UNARY_SIGN, {{NULL, 0}}},
    {"Ceil", SN_UNARY_CEIL, {{NULL, 0}}},
    {"Floor", SN_UNARY_FLOOR, {{NULL, 0}}},
    {"Round", SN_UNARY_ROUND, {{NULL, 0}}},
    {"Sin", SN_UNARY_SIN, {{NULL, 0}}},
    {"Cos", SN_UNARY_COS, {{NULL, 0}}},
    {"Tan", SN_UNARY_TAN, {{NULL, 0}}},
    {"Asin", SN_UNARY_ASIN, {{NULL, 0}}},
    {"Acos", SN_UNARY_ACOS, {{NULL, 0}}},
    {"Atan", SN_UNARY_ATAN, {{NULL, 0}}},
    {"Sinh", SN_UNARY_SINH, {{NULL, 0}}},
    {"Cosh", SN_UNARY_COSH, {{NULL, 0}}},
    {"Asinh", SN_UNARY_ASINH, {{NULL, 0}}},
    {"Acosh", SN_UNARY_ACOSH, {{NULL, 0}}},
    {"Atanh", SN_UNARY_ATANH, {{NULL, 0}}},
    {"Not", SN_UNARY_NOT, {{NULL, 0}}},
    {"BitwiseNot", SN_UNARY_BIT_NOT, {{NULL, 0}}},
    {"IsNaN", SN_UNARY_IS_NAN, {{NULL, 0}}},
};

static sonde_status prepare_unary(sn_prep *p)
{
    unary_params *u = p->params;
    const unary_row *row = rows;
    while (strcmp(row->name, p->node->op_type) != 0)
        row++; /* every operator that comes here has a row */
    u->op = row->op;
    for (int i = 0; i < 2 && row->attr[i].name; i++)
        SN_TRY(sn_prep_float(p, row->attr[i].name, row->attr[i].def, &u->p[i]));
    return SONDE_OK;
}

static sonde_status prepare_gelu(sn_prep *p)
{
    unary_params *u = p->params;
    const char *how;
    SN_TRY(sn_prep_string(p, "approximate", "none", &how));
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return sn_prep_fail(p, "attribute 'approximate' is '%s', expected 'none' or 'tanh'", how);
    u->op = strcmp(how, "tanh") == 0 ? SN_UNARY_GELU_TANH : SN_UNARY_GELU;
    return SONDE_OK;
}

static sonde_status prepare_is_inf(sn_prep *p)
{
    unary_params *u = p->params;
    int64_t negative, positive;
    SN_TRY(sn_prep_int(p, "detect_negative", 1, &negative));
    SN_TRY(sn_prep_int(p, "detect_positive", 1, &positive));
    u->op = SN_UNARY_IS_INF;
    u->p[0] = negative != 0;
    u->p[1] = positive != 0;
    return SONDE_OK;
}

static sn_dim int_value(int op, sn_dim a, sn_dim b)
{
    (void)b;
    if (!sn_dim_known(a))
        return SN_DIM_UNKNOWN;
    switch (op) {
    case SN_UNARY_RELU:
        return a < 0 ? 0 : a;
    case SN_UNARY_ABS:
        return a < 0 ? -a : a;
    case SN_UNARY_NEG:
        return -a;
    case SN_UNARY_SIGN:
        return (a > 0) - (a < 0);
    case SN_UNARY_NOT:
        return a == 0;
    default:
        return SN_DIM_UNKNOWN;
    }
}

static sonde_status infer_unary(sn_infer *c)
{
    const unary_params *u = c->params;
    SN_TRY(sn_infer_same(c, 0, 0));
    return sn_infer_ints_1(c, int_value, (int)u->op);
}

static sonde_status infer_test(sn_infer *c)
{
    const sn_type *t = &c->in[0]->type;
    return sn_infer_tensor(c, 0, SONDE_DTYPE_BOOL, t->dims, t->rank);
}

static sonde_status bind_unary(sn_bind *b)
{
    const unary_params *u = b->params;
    unary_bound *k = SN_NEW(b->arena, unary_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    sn_dtype t = b->in[0]->type.dtype;
    if (!sn_unary_get(&k->elt, u->op, t, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t));
    SN_TRY(sn_elt_plan_make(b, 0, 1, &k->plan));
    for (int i = 0; i < 2; i++) {
        if (t == SONDE_DTYPE_F64)
            k->p.f64[i] = (double)u->p[i];
        else
            k->p.f32[i] = u->p[i];
    }
    k->n = k->plan.bcast.total;
    b->bound = k;
    b->kernel = k->elt.name;
    b->flops = (uint64_t)k->n * k->elt.cost;
    return SONDE_OK;
}

static sonde_status run_unary(const sn_step *s, sn_frame *f)
{
    const unary_bound *k = s->bound;
    sn_tensor *y = sn_out(s, f, 0);
    sn_unary_run(&k->elt, y->data, sn_in(s, f, 0)->data, k->n, &k->p, f->pool);
    sn_elt_plan_finish(&k->plan, y->data);
    return SONDE_OK;
}

bool sn_node_unary(const sn_node *n, sn_unary *op, float params[2])
{
    const unary_params *u = n->params;
    if (!n->op || n->op->bind != bind_unary || !u)
        return false;
    *op = u->op;
    memcpy(params, u->p, sizeof u->p);
    return true;
}

#define ROW(NAME, SINCE, PREPARE, INFER, FLAGS, HALF, LAYOUT, TYPES)                               \
    {                                                                                              \
        {SN_ELT_HEAD(NAME, SINCE, 0, 1, 1),                                                        \
         .flags = (FLAGS) | SN_OP_ELEMENTWISE,                                                     \
         .params_size = sizeof(unary_params),                                                      \
         .prepare = PREPARE,                                                                       \
         .infer = INFER,                                                                           \
         .bind = bind_unary,                                                                       \
         .run = run_unary,                                                                         \
         .half = (HALF),                                                                           \
         .in_blocks = (LAYOUT),                                                                    \
         .types = TYPES},                                                                          \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }
/* Those that have steps, or that nobody needs in 16 bits, are AS_TYPED. */
enum { IN_F32 = SN_HALF_IN_F32, AS_TYPED = SN_HALF_AS_TYPED };
#define ELEMENT_OP(symbol, NAME, SINCE, PREPARE, HALF, TYPES)                                      \
    const sn_op sn_op_##symbol[] = ROW(NAME, SINCE, PREPARE, infer_unary, SN_OP_INPLACE0, HALF,    \
                                       sn_layout_elementwise, TYPES);
#define FLOAT_OP(symbol, NAME, SINCE, HALF)                                                        \
    ELEMENT_OP(symbol, NAME, SINCE, prepare_unary, HALF, SN_FLOATS)
#define NUMBER_OP(symbol, NAME, SINCE, HALF)                                                       \
    ELEMENT_OP(symbol, NAME, SINCE, prepare_unary, HALF, SN_FLOATS " " SN_INTS)

NUMBER_OP(relu, "Relu", 1, IN_F32)
NUMBER_OP(abs, "Abs", 1, IN_F32)
NUMBER_OP(neg, "Neg", 1, IN_F32)
NUMBER_OP(sign, "Sign", 9, AS_TYPED)
FLOAT_OP(leaky_relu, "LeakyRelu", 1, IN_F32)
FLOAT_OP(elu, "Elu", 1, IN_F32)
FLOAT_OP(selu, "Selu", 6, IN_F32)
FLOAT_OP(celu, "Celu", 12, IN_F32)
FLOAT_OP(thresholded_relu, "ThresholdedRelu", 10, AS_TYPED)
FLOAT_OP(hard_sigmoid, "HardSigmoid", 1, IN_F32)
FLOAT_OP(hard_swish, "HardSwish", 14, IN_F32)
FLOAT_OP(sigmoid, "Sigmoid", 1, IN_F32)
FLOAT_OP(tanh, "Tanh", 1, IN_F32)
FLOAT_OP(softplus, "Softplus", 1, IN_F32)
FLOAT_OP(softsign, "Softsign", 1, IN_F32)
FLOAT_OP(mish, "Mish", 18, IN_F32)
FLOAT_OP(swish, "Swish", 24, IN_F32)
FLOAT_OP(erf, "Erf", 9, IN_F32)
FLOAT_OP(exp, "Exp", 1, IN_F32)
FLOAT_OP(log, "Log", 1, IN_F32)
FLOAT_OP(sqrt, "Sqrt", 1, IN_F32)
FLOAT_OP(reciprocal, "Reciprocal", 1, IN_F32)
FLOAT_OP(ceil, "Ceil", 1, AS_TYPED)
FLOAT_OP(floor, "Floor", 1, AS_TYPED)
FLOAT_OP(round, "Round", 11, AS_TYPED)
FLOAT_OP(sin, "Sin", 7, IN_F32)
FLOAT_OP(cos, "Cos", 7, IN_F32)
FLOAT_OP(tan, "Tan", 7, AS_TYPED)
FLOAT_OP(asin, "Asin", 7, AS_TYPED)
FLOAT_OP(acos, "Acos", 7, AS_TYPED)
FLOAT_OP(atan, "Atan", 7, AS_TYPED)
FLOAT_OP(sinh, "Sinh", 9, AS_TYPED)
FLOAT_OP(cosh, "Cosh", 9, AS_TYPED)
FLOAT_OP(asinh, "Asinh", 9, AS_TYPED)
FLOAT_OP(acosh, "Acosh", 9, AS_TYPED)
FLOAT_OP(atanh, "Atanh", 9, AS_TYPED)
ELEMENT_OP(gelu, "Gelu", 20, prepare_gelu, IN_F32, SN_FLOATS)
const sn_op sn_op_not[] =
    ROW("Not", 1, prepare_unary, infer_unary, SN_OP_INPLACE0, AS_TYPED, NULL, "bool");
const sn_op sn_op_bitwise_not[] =
    ROW("BitwiseNot", 18, prepare_unary, infer_unary, SN_OP_INPLACE0, AS_TYPED, NULL, SN_INTS);
const sn_op sn_op_is_nan[] = ROW("IsNaN", 9, prepare_unary, infer_test, 0, AS_TYPED, NULL,
                                 SN_FLOATS " f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz");
const sn_op sn_op_is_inf[] = ROW("IsInf", 10, prepare_is_inf, infer_test, 0, AS_TYPED, NULL,
                                 SN_FLOATS " f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz");
