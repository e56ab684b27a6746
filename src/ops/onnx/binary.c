/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of two tensors with broadcasting: arithmetic, comparison, logic, bits; PRelu too, whose
 * slope broadcasts to its input. Integer values flow through where shapes are computed from them.
 */
#include <string.h>

#include "ops/shared/elementwise.h"
#include "ops/shared/layouts.h"

typedef struct binary_params {
    sn_binary op;
    sn_legacy legacy;
} binary_params;

typedef struct binary_bound {
    sn_elt elt;
    sn_elt_plan plan;
} binary_bound;

static const struct {
    const char *name;
    sn_binary op;
} rows[] = {
    {"Add", SN_BINARY_ADD},
    {"Sub", SN_BINARY_SUB},
    {"Mul", SN_BINARY_MUL},
    {"Div", SN_BINARY_DIV},
    {"PRelu", SN_BINARY_PRELU},
    {"And", SN_BINARY_AND},
    {"Or", SN_BINARY_OR},
    {"Xor", SN_BINARY_XOR},
    {"Equal", SN_BINARY_EQUAL},
    {"Greater", SN_BINARY_GREATER},
    {"GreaterOrEqual", SN_BINARY_GREATER_EQUAL},
    {"Less", SN_BINARY_LESS},
    {"LessOrEqual", SN_BINARY_LESS_EQUAL},
    {"BitwiseAnd", SN_BINARY_BIT_AND},
    {"BitwiseOr", SN_BINARY_BIT_OR},
    {"BitwiseXor", SN_BINARY_BIT_XOR},
};

static sonde_status prepare_binary(sn_prep *p)
{
    binary_params *b = p->params;
    size_t k = 0;
    while (strcmp(rows[k].name, p->node->op_type) != 0)
        k++; /* every operator that comes here has a row */
    b->op = rows[k].op;
    return SONDE_OK;
}

static sonde_status prepare_legacy(sn_prep *p)
{
    SN_TRY(prepare_binary(p));
    return sn_prep_legacy(p, &((binary_params *)p->params)->legacy);
}

/* The slope has one element per channel, or one for all. */
static sonde_status prepare_prelu_1(sn_prep *p)
{
    SN_TRY(prepare_binary(p));
    ((binary_params *)p->params)->legacy = (sn_legacy){true, 1};
    return SONDE_OK;
}

static sonde_status prepare_mod(sn_prep *p)
{
    binary_params *b = p->params;
    int64_t fmod;
    SN_TRY(sn_prep_int(p, "fmod", 0, &fmod));
    b->op = fmod ? SN_BINARY_FMOD : SN_BINARY_MOD;
    return SONDE_OK;
}

static sonde_status prepare_shift(sn_prep *p)
{
    binary_params *b = p->params;
    const char *direction;
    SN_TRY(sn_prep_string(p, "direction", "", &direction));
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return sn_prep_fail(p, "attribute 'direction' is '%s', expected 'LEFT' or 'RIGHT'",
                            direction);
    b->op = direction[0] == 'L' ? SN_BINARY_SHIFT_LEFT : SN_BINARY_SHIFT_RIGHT;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ values */
static sn_dim known_value(sn_binary op, int64_t a, int64_t b)
{
    switch (op) {
    case SN_BINARY_DIV:
        return b == 0 ? SN_DIM_UNKNOWN : b == -1 ? -a : a / b;
    case SN_BINARY_FMOD:
        return b == 0 || b == -1 ? SN_DIM_UNKNOWN : a % b;
    case SN_BINARY_MOD:
        if (b == 0 || b == -1)
            return SN_DIM_UNKNOWN;
        return a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
    case SN_BINARY_EQUAL:
        return a == b;
    case SN_BINARY_GREATER:
        return a > b;
    case SN_BINARY_GREATER_EQUAL:
        return a >= b;
    case SN_BINARY_LESS:
        return a < b;
    case SN_BINARY_LESS_EQUAL:
        return a <= b;
    case SN_BINARY_AND:
        return a && b;
    case SN_BINARY_OR:
        return a || b;
    case SN_BINARY_XOR:
        return !a != !b;
    default:
        return SN_DIM_UNKNOWN;
    }
}

/* Symbols are dims, so never negative. */
static bool is_symbol(sn_dim d)
{
    return !sn_dim_known(d) && d != SN_DIM_UNKNOWN;
}

static sn_dim int_value(int op, sn_dim a, sn_dim b)
{
    switch (op) {
    case SN_BINARY_ADD:
        return sn_dim_add(a, b);
    case SN_BINARY_SUB:
        if (sn_dim_same(a, b))
            return 0;
        if (b == 0)
            return a;
        return sn_dim_known(b) && sn_dim_known(a) ? sn_dim_add(a, -b) : SN_DIM_UNKNOWN;
    case SN_BINARY_MUL:
        return sn_dim_mul(a, b);
    case SN_BINARY_DIV:
        if (b == 1)
            return a;
        break;
    case SN_BINARY_EQUAL:
        if (sn_dim_same(a, b))
            return 1;
        if ((is_symbol(a) && sn_dim_known(b) && b < 0) ||
            (is_symbol(b) && sn_dim_known(a) && a < 0))
            return 0; /* is this dim -1? exporters ask that of what they expand to */
        break;
    default:
        break;
    }
    return sn_dim_known(a) && sn_dim_known(b) ? known_value((sn_binary)op, a, b) : SN_DIM_UNKNOWN;
}

static sonde_status infer_as(sn_infer *c, sn_dtype dtype)
{
    const binary_params *p = c->params;
    sn_dim dims[SN_MAX_RANK];
    sn_fact second;
    sn_legacy_align(&p->legacy, c->in[0], c->in[1], &second, dims);
    const sn_fact *in[2] = {c->in[0], &second};
    sn_infer aligned = *c;
    aligned.in = in;
    SN_TRY(sn_infer_elementwise(&aligned, 0, dtype));
    return sn_infer_ints_2(&aligned, int_value, (int)p->op);
}

static sonde_status infer_arithmetic(sn_infer *c)
{
    return infer_as(c, SONDE_DTYPE_UNDEFINED);
}
static sonde_status infer_compare(sn_infer *c)
{
    return infer_as(c, SONDE_DTYPE_BOOL);
}

/* The slope broadcasts to the input, never the other way. */
static sonde_status infer_prelu(sn_infer *c)
{
    SN_TRY(infer_as(c, SONDE_DTYPE_UNDEFINED));
    const sn_type *x = &c->in[0]->type, *y = &c->out[0].type;
    if (x->rank >= 0 && y->rank >= 0) {
        bool same = x->rank == y->rank;
        for (int i = 0; i < x->rank && same; i++)
            same =
                !(sn_dim_known(x->dims[i]) && sn_dim_known(y->dims[i])) || x->dims[i] == y->dims[i];
        if (!same)
            return sn_infer_fail(c, "the slope does not broadcast to the input");
    }
    return sn_infer_same(c, 0, 0);
}

/* ------------------------------------------------------------------ running */
static sonde_status run_equal_strings(const sn_step *s, sn_frame *f)
{
    const binary_bound *k = s->bound;
    const sn_tensor *a = sn_in(s, f, 0), *b = sn_in(s, f, 1);
    const sonde_string *sa = a->data, *sb = b->data;
    sn_tensor *y = sn_out(s, f, 0);
    uint8_t *r = y->data;
    const sn_type ty = {.rank = y->rank, .dims = y->dims};
    const sn_type ta = {.rank = a->rank, .dims = a->dims}, tb = {.rank = b->rank, .dims = b->dims};
    for (size_t i = 0; i < k->plan.bcast.total; i++) {
        const sonde_string *p = &sa[sn_bcast_index(&ty, &ta, (int64_t)i)];
        const sonde_string *q = &sb[sn_bcast_index(&ty, &tb, (int64_t)i)];
        r[i] = p->size == q->size && (p->size == 0 || memcmp(p->data, q->data, p->size) == 0);
    }
    return SONDE_OK;
}

static sonde_status bind_binary(sn_bind *b)
{
    const binary_params *p = b->params;
    binary_bound *k = SN_NEW(b->arena, binary_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    sn_dim dims[SN_MAX_RANK];
    sn_fact second;
    sn_legacy_align(&p->legacy, b->in[0], b->in[1], &second, dims);
    const sn_fact *in[2] = {b->in[0], &second};
    sn_bind aligned = *b;
    aligned.in = in;
    SN_TRY(sn_elt_plan_make(&aligned, 0, 2, &k->plan));
    b->bound = k;
    sn_dtype t = b->in[0]->type.dtype;
    if (t != b->in[1]->type.dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "inputs have different element types: %s and %s", sn_dtype_onnx_name(t),
                            sn_dtype_onnx_name(b->in[1]->type.dtype));
    b->flops = k->plan.bcast.total;
    if (t == SONDE_DTYPE_STRING && p->op == SN_BINARY_EQUAL) {
        b->run = run_equal_strings;
        b->kernel = "str_equal";
        return SONDE_OK;
    }
    if (!sn_binary_get(&k->elt, p->op, t, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t));
    b->kernel = k->elt.name;
    return SONDE_OK;
}

static sonde_status run_binary(const sn_step *s, sn_frame *f)
{
    const binary_bound *k = s->bound;
    sn_tensor *y = sn_out(s, f, 0);
    sn_binary_run(&k->elt, &k->plan.bcast, y->data, sn_in(s, f, 0)->data, sn_in(s, f, 1)->data,
                  NULL, f->pool);
    sn_elt_plan_finish(&k->plan, y->data);
    return SONDE_OK;
}

bool sn_node_binary(const sn_node *n, sn_binary *op)
{
    const binary_params *p = n->params;
    if (!n->op || n->op->bind != bind_binary || !p || p->legacy.on)
        return false;
    *op = p->op;
    return true;
}

#define VERSION(NAME, SINCE, UNTIL, PREPARE, INFER, FLAGS, HALF, LAYOUT, TYPES)                    \
    {                                                                                              \
        SN_ELT_HEAD(NAME, SINCE, UNTIL, 2, 2),                                                     \
            .flags = (FLAGS) | SN_OP_ELEMENTWISE, .params_size = sizeof(binary_params),            \
            .prepare = PREPARE, .infer = INFER, .bind = bind_binary, .run = run_binary,            \
            .half = (HALF), .in_blocks = (LAYOUT), .types = TYPES                                  \
    }
/* Old: with the broadcasting of before opset 7 (which allowed floats, or bool, only). */
#define OLD_AND_NEW(symbol, NAME, INFER, FLAGS, HALF, LAYOUT, TYPES)                               \
    const sn_op sn_op_##symbol[] = {                                                               \
        VERSION(NAME, 1, 6, prepare_legacy, INFER, FLAGS, HALF, NULL, TYPES),                      \
        VERSION(NAME, 7, 0, prepare_binary, INFER, FLAGS, HALF, LAYOUT, TYPES),                    \
        {.name = NULL}};
#define ARITHMETIC(symbol, NAME)                                                                   \
    OLD_AND_NEW(symbol, NAME, infer_arithmetic, INPLACE, SN_HALF_IN_F32, sn_layout_operands,       \
                NUMBERS)
#define COMPARISON(symbol, NAME, FLAGS, TYPES)                                                     \
    OLD_AND_NEW(symbol, NAME, infer_compare, FLAGS, SN_HALF_AS_TYPED, NULL, TYPES)
#define NEW(symbol, NAME, SINCE, PREPARE, INFER, FLAGS, TYPES)                                     \
    const sn_op sn_op_##symbol[] = {                                                               \
        VERSION(NAME, SINCE, 0, PREPARE, INFER, FLAGS, SN_HALF_AS_TYPED, NULL, TYPES),             \
        {.name = NULL}};
enum { INPLACE = SN_OP_INPLACE0 | SN_OP_INPLACE1 };
#define NUMBERS SN_FLOATS " " SN_INTS

ARITHMETIC(add, "Add")
ARITHMETIC(sub, "Sub")
ARITHMETIC(mul, "Mul")
ARITHMETIC(div, "Div")
COMPARISON(equal, "Equal", 0, "bool " NUMBERS " str")
COMPARISON(greater, "Greater", 0, NUMBERS)
COMPARISON(less, "Less", 0, NUMBERS)
COMPARISON(and, "And", INPLACE, "bool")
COMPARISON(or, "Or", INPLACE, "bool")
COMPARISON(xor, "Xor", INPLACE, "bool")
NEW(greater_or_equal, "GreaterOrEqual", 12, prepare_binary, infer_compare, 0, NUMBERS)
NEW(less_or_equal, "LessOrEqual", 12, prepare_binary, infer_compare, 0, NUMBERS)
NEW(bitwise_and, "BitwiseAnd", 18, prepare_binary, infer_arithmetic, INPLACE, SN_INTS)
NEW(bitwise_or, "BitwiseOr", 18, prepare_binary, infer_arithmetic, INPLACE, SN_INTS)
NEW(bitwise_xor, "BitwiseXor", 18, prepare_binary, infer_arithmetic, INPLACE, SN_INTS)
NEW(mod, "Mod", 10, prepare_mod, infer_arithmetic, INPLACE, NUMBERS)
NEW(bit_shift, "BitShift", 11, prepare_shift, infer_arithmetic, INPLACE, SN_INTS)
#define SLOPED "bf16 f16 f32 f64 i32 i64 u32 u64"
const sn_op sn_op_prelu[] = {VERSION("PRelu", 1, 6, prepare_prelu_1, infer_prelu, SN_OP_INPLACE0,
                                     SN_HALF_IN_F32, NULL, SN_FLOATS),
                             VERSION("PRelu", 7, 0, prepare_binary, infer_prelu, SN_OP_INPLACE0,
                                     SN_HALF_IN_F32, NULL, SLOPED),
                             {.name = NULL}};
