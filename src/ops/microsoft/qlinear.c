/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise 8-bit operators of com.microsoft: QLinearAdd and QLinearMul with broadcasting,
 * QLinearSigmoid and QLinearLeakyRelu through a table of 256 results, and QLinearConcat. */
#include "ops/microsoft/qlinear.h"

#include <string.h>

#include "ops/shared/layouts.h"

sonde_status sn_qparam_check(sn_bind *b, uint32_t i, sn_dtype t)
{
    int64_t n = 0;
    if (i >= b->n_in || !b->in[i] || b->in[i]->type.dtype != SONDE_DTYPE_F32 ||
        !sn_type_count(&b->in[i]->type, &n) || n != 1)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "input %u must be one number of type f32, a scale", i);
    if (i + 1 < b->n_in && b->in[i + 1] &&
        (b->in[i + 1]->type.dtype != t || !sn_type_count(&b->in[i + 1]->type, &n) || n != 1))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u must be one %s, a zero point", i + 1,
                            sn_dtype_onnx_name(t));
    if (!sn_is_byte(t))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t));
    return SONDE_OK;
}

sn_qparam sn_qparam_read(const sn_step *s, const sn_frame *f, uint32_t i)
{
    sn_qparam q = {*(const float *)sn_in(s, f, i)->data, 0};
    if (sn_has(s, i + 1))
        q.zero = sn_byte_at(sn_in(s, f, i + 1)->dtype, sn_in(s, f, i + 1)->data, 0);
    return q;
}

/* ------------------------------------------------------------------ two operands */
enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C_SCALE, C_ZERO };

static sonde_status infer_binary(sn_infer *c)
{
    sn_dim dims[SN_MAX_RANK];
    int rank;
    if (!sn_infer_has(c, B) || !sn_infer_has(c, B_SCALE) || !sn_infer_has(c, C_SCALE))
        return sn_infer_fail(c, "B and the scales of B and C are required");
    const sn_type *a = &c->in[A]->type, *b = &c->in[B]->type;
    if (a->dtype && b->dtype && a->dtype != b->dtype)
        return sn_infer_fail(c, "A and B have different dtypes");
    SN_TRY(sn_infer_broadcast(c, a, b, dims, &rank));
    return sn_infer_tensor(c, 0, a->dtype, dims, rank);
}

static const sn_op_signature *in_last_binary(const sn_node *node, const void *params)
{
    (void)params;
    return sn_last_operands(node, B);
}

/* The dims of an operand of y's rank in the order in which they lie. */
static const int64_t *dims_of(sn_bind *b, const sn_fact *v)
{
    const sn_type *t = &v->type;
    if (!sn_layout_is_last(b->out[0].form.layout) || t->rank != b->out[0].type.rank)
        return t->dims;
    int64_t *dims = SN_NEW_N(b->arena, int64_t, (size_t)t->rank);
    for (int i = 0; dims && i < t->rank; i++)
        dims[i] = t->dims[i == 0 ? 0 : i + 1 < t->rank ? i + 1 : 1];
    return dims;
}

static sonde_status bind_binary(sn_bind *b)
{
    sn_bcast *k = SN_NEW(b->arena, sn_bcast);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *a = &b->in[A]->type, *t = &b->in[B]->type, *y = &b->out[0].type;
    SN_TRY(sn_qparam_check(b, A_SCALE, a->dtype));
    SN_TRY(sn_qparam_check(b, B_SCALE, a->dtype));
    SN_TRY(sn_qparam_check(b, C_SCALE, a->dtype));
    const int64_t *dims[3] = {dims_of(b, b->in[A]), dims_of(b, b->in[B]), dims_of(b, &b->out[0])};
    const int ranks[2] = {a->rank, t->rank};
    if (!dims[0] || !dims[1] || !dims[2])
        return sn_fail_memory(b->err, SN_MAX_RANK * sizeof **dims);
    sn_bcast_plan(k, dims[2], y->rank, 2, dims, ranks);
    b->bound = k;
    b->kernel = "q8_binary";
    b->flops = 6 * (uint64_t)k->total;
    return SONDE_OK;
}

static sonde_status run_binary(const sn_step *s, sn_frame *f)
{
    const sn_q8_binary p = {.bcast = s->bound,
                            .dtype = sn_out(s, f, 0)->dtype,
                            .a = sn_qparam_read(s, f, A_SCALE),
                            .b = sn_qparam_read(s, f, B_SCALE),
                            .y = sn_qparam_read(s, f, C_SCALE),
                            .add = strcmp(s->node->op_type, "QLinearAdd") == 0};
    sn_q8_binary_run(f->ctx->cpu.flags, &p, sn_out(s, f, 0)->data, sn_in(s, f, A)->data,
                     sn_in(s, f, B)->data, f->pool);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ one operand */
enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

typedef struct unary_params {
    bool sigmoid;
    float alpha;
} unary_params;

static sonde_status prepare_unary(sn_prep *p)
{
    unary_params *u = p->params;
    u->sigmoid = strcmp(p->node->op_type, "QLinearSigmoid") == 0;
    return sn_prep_float(p, "alpha", 0.01f, &u->alpha);
}

static sonde_status infer_unary(sn_infer *c)
{
    if (!sn_infer_has(c, Y_SCALE))
        return sn_infer_fail(c, "the scale of Y is required");
    return sn_infer_same(c, 0, X);
}

static sonde_status bind_unary(sn_bind *b)
{
    int64_t n = 0;
    SN_TRY(sn_qparam_check(b, X_SCALE, b->in[X]->type.dtype));
    SN_TRY(sn_qparam_check(b, Y_SCALE, b->in[X]->type.dtype));
    b->kernel = "q8_table";
    if (sn_type_count(&b->in[X]->type, &n))
        b->flops = (uint64_t)n;
    return SONDE_OK;
}

static sonde_status run_unary(const sn_step *s, sn_frame *f)
{
    const unary_params *u = s->params;
    const sn_tensor *x = sn_in(s, f, X);
    uint8_t table[256];
    sn_q8_table(table, u->sigmoid ? SN_Q8_SIGMOID : SN_Q8_LEAKY_RELU, u->alpha, x->dtype,
                sn_qparam_read(s, f, X_SCALE), sn_qparam_read(s, f, Y_SCALE));
    sn_q8_table_run(f->ctx->cpu.flags, table, sn_out(s, f, 0)->data, x->data, sn_tensor_count(x),
                    f->pool);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ Concat */
typedef struct concat_params {
    int64_t axis;
} concat_params;

enum { OUT_SCALE, OUT_ZERO, FIRST };

static sonde_status prepare_concat(sn_prep *p)
{
    concat_params *c = p->params;
    return sn_prep_int(p, "axis", 0, &c->axis);
}

static sonde_status infer_concat(sn_infer *c)
{
    const concat_params *p = c->params;
    sn_dim dims[SN_MAX_RANK];
    int axis = 0, rank = -1;
    if (c->n_in < FIRST + 3 || (c->n_in - FIRST) % 3)
        return sn_infer_fail(c, "inputs must be groups of three: tensor, scale, zero point");
    for (uint32_t i = FIRST; i < c->n_in; i += 3) {
        if (!c->in[i] || !c->in[i + 1])
            return sn_infer_fail(c, "input %u is missing", i);
        const sn_type *t = &c->in[i]->type;
        if (t->rank < 0)
            return sn_infer_tensor(c, 0, c->in[FIRST]->type.dtype, NULL, -1);
        if (rank < 0) {
            rank = t->rank;
            SN_TRY(sn_infer_axis(c, p->axis, rank, false, &axis));
            memcpy(dims, t->dims, sizeof(sn_dim) * (size_t)rank);
            continue;
        }
        if (t->rank != rank)
            return sn_infer_fail(c, "the inputs differ in rank");
        for (int k = 0; k < rank; k++) {
            if (k == axis)
                dims[k] = sn_dim_add(dims[k], t->dims[k]);
            else if (sn_dim_known(dims[k]) && sn_dim_known(t->dims[k]) && dims[k] != t->dims[k])
                return sn_infer_fail(c, "the inputs differ in dimension %d", k);
            else if (!sn_dim_known(dims[k]))
                dims[k] = t->dims[k];
        }
    }
    return sn_infer_tensor(c, 0, c->in[FIRST]->type.dtype, dims, rank);
}

static const sn_op_signature *in_last_concat(const sn_node *node, const void *params)
{
    /* Every third input from FIRST on is a tensor. */
    static const sn_op_signature parts = {.in = {[2] = SN_PORT_SAME,
                                                 [5] = SN_PORT_SAME,
                                                 [8] = SN_PORT_SAME,
                                                 [11] = SN_PORT_SAME,
                                                 [14] = SN_PORT_SAME,
                                                 [17] = SN_PORT_SAME,
                                                 [20] = SN_PORT_SAME,
                                                 [23] = SN_PORT_SAME,
                                                 [26] = SN_PORT_SAME,
                                                 [29] = SN_PORT_SAME},
                                          .out = SN_PORT_SAME};
    const concat_params *p = params;
    if (node->n_in > SN_SIGNATURE_INPUTS || node->n_in <= FIRST)
        return NULL;
    for (uint32_t i = FIRST; i < node->n_in; i += 3) {
        const sn_value *v = node->in[i].value;
        if (!v || v->fact.data || !sn_value_is_byte_image(v) ||
            (p->axis != 1 && p->axis != 1 - v->fact.type.rank))
            return NULL;
    }
    return &parts;
}

static sonde_status bind_concat(sn_bind *b)
{
    const sn_dtype t = b->out[0].type.dtype;
    SN_TRY(sn_qparam_check(b, OUT_SCALE, t));
    for (uint32_t i = FIRST; i < b->n_in; i += 3) {
        if (b->in[i]->type.dtype != t)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the inputs have different dtypes");
        SN_TRY(sn_qparam_check(b, i + 1, t));
    }
    b->kernel = "q8_concat";
    return SONDE_OK;
}

static sonde_status run_concat(const sn_step *s, sn_frame *f)
{
    const concat_params *p = s->params;
    sn_tensor *y = sn_out(s, f, 0);
    const sn_qparam qy = sn_qparam_read(s, f, OUT_SCALE);
    const int axis = (int)(p->axis < 0 ? p->axis + y->rank : p->axis);
    int64_t outer = 1, inner = 1, done = 0;
    const bool last = sn_layout_is_last(y->layout); /* then the channels are what is joined */
    for (int i = 0; i < y->rank; i++) {
        outer *= last ? i != axis ? y->dims[i] : 1 : i < axis ? y->dims[i] : 1;
        inner *= i > axis && !last ? y->dims[i] : 1;
    }
    const int64_t row = y->dims[axis] * inner;
    for (uint32_t i = FIRST; i < s->n_in; i += 3) {
        const sn_tensor *x = sn_in(s, f, i);
        const int64_t part = x->dims[axis] * inner;
        uint8_t table[256];
        sn_q8_table(table, SN_Q8_COPY, 0.0f, x->dtype, sn_qparam_read(s, f, i + 1), qy);
        sn_q8_table_rows_run(f->ctx->cpu.flags, table, (uint8_t *)y->data + done, row, x->data,
                             outer, part, f->pool);
        done += part;
    }
    return SONDE_OK;
}

#define QLINEAR(symbol, NAME, MIN_IN, MAX_IN, SIZE, PREPARE, INFER, BIND, RUN, LAST, FLAGS)        \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = SN_MS_DOMAIN,                                               \
                             .since = 1,                                                           \
                             .min_in = MIN_IN,                                                     \
                             .max_in = MAX_IN,                                                     \
                             .min_out = 1,                                                         \
                             .max_out = 1,                                                         \
                             .params_size = SIZE,                                                  \
                             .prepare = PREPARE,                                                   \
                             .infer = INFER,                                                       \
                             .bind = BIND,                                                         \
                             .run = RUN,                                                           \
                             .flags = FLAGS,                                                       \
                             .in_last = LAST,                                                      \
                             .types = "u8 i8"},                                                    \
                            {.name = NULL}};
QLINEAR(sn_op_ms_qlinear_add, "QLinearAdd", 2, 8, 0, NULL, infer_binary, bind_binary, run_binary,
        in_last_binary, SN_OP_ELEMENTWISE)
QLINEAR(sn_op_ms_qlinear_mul, "QLinearMul", 2, 8, 0, NULL, infer_binary, bind_binary, run_binary,
        in_last_binary, SN_OP_ELEMENTWISE)
QLINEAR(sn_op_ms_qlinear_sigmoid, "QLinearSigmoid", 2, 5, sizeof(unary_params), prepare_unary,
        infer_unary, bind_unary, run_unary, sn_last_follows, SN_OP_ELEMENTWISE)
QLINEAR(sn_op_ms_qlinear_leaky_relu, "QLinearLeakyRelu", 2, 5, sizeof(unary_params), prepare_unary,
        infer_unary, bind_unary, run_unary, sn_last_follows, SN_OP_ELEMENTWISE)
QLINEAR(sn_op_ms_qlinear_concat, "QLinearConcat", 5, -1, sizeof(concat_params), prepare_concat,
        infer_concat, bind_concat, run_concat, in_last_concat, 0)
