/* SPDX-License-Identifier: Apache-2.0 */
/* BiasSoftmax and Inverse of com.microsoft. */
#include "compute/inverse.h"
#include "compute/row_sum.h"
#include "compute/softmax.h"
#include "compute/split.h"
#include "ops/shared/converted.h"

/* ------------------------------------------------------------------ BiasSoftmax */
typedef struct softmax_params {
    int64_t axis;
    bool inner; /* the bias repeats inside, else outside */
} softmax_params;

typedef struct softmax_bound {
    sn_softmax_plan plan;
    sn_row_sum sum;
    sn_piece x, bias, y;
} softmax_bound;

static sonde_status prepare_softmax(sn_prep *p)
{
    softmax_params *m = p->params;
    int64_t inner;
    SN_TRY(sn_prep_int(p, "axis", 1, &m->axis));
    SN_TRY(sn_prep_int(p, "is_inner_broadcast", 0, &inner));
    m->inner = inner != 0;
    return SONDE_OK;
}

static sonde_status infer_softmax(sn_infer *c)
{
    const softmax_params *m = c->params;
    const sn_type *x = &c->in[0]->type;
    int axis;
    if (x->rank >= 0)
        SN_TRY(sn_infer_axis(c, m->axis, x->rank, false, &axis));
    return sn_infer_same(c, 0, 0);
}

/* Of the dims before the axis, the last ones are 1 in the bias (`inner`), or the first ones; the
 * others are those of x. */
static bool bias_fits(const sn_type *bias, const sn_type *x, int axis, bool inner)
{
    bool ones = false;
    if (bias->rank != x->rank)
        return bias->rank < x->rank; /* the attribute alone says how it repeats */
    for (int i = 0; i < axis; i++) {
        const int at = inner ? i : axis - 1 - i;
        if (bias->dims[at] == 1 && x->dims[at] != 1)
            ones = true;
        else if (bias->dims[at] != x->dims[at] || (ones && x->dims[at] != 1))
            return false;
    }
    return true;
}

static sonde_status bind_softmax(sn_bind *b)
{
    const softmax_params *m = b->params;
    softmax_bound *k = SN_NEW(b->arena, softmax_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[0]->type, *bias = &b->in[1]->type;
    const int axis = (int)(m->axis < 0 ? m->axis + x->rank : m->axis);
    const int64_t rows = sn_dims_product(x->dims, 0, axis),
                  n = sn_dims_product(x->dims, axis, x->rank);
    int64_t count = 0, total = 0;
    if (!sn_type_count(bias, &count) || !sn_type_count(x, &total) || n == 0 || count == 0 ||
        count % n || rows % (count / n) || !bias_fits(bias, x, axis, m->inner))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the bias does not broadcast to the scores");
    const sn_dtype compute = sn_compute_float(x->dtype);
    if (bias->dtype != x->dtype || compute == SONDE_DTYPE_UNDEFINED)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    k->plan =
        (sn_softmax_plan){.kind = SN_SOFTMAX, .dtype = compute, .outer = rows, .n = n, .inner = 1};
    sn_softmax_choose_kernels(&k->plan, b->cpu_flags);
    k->sum = (sn_row_sum){.dtype = compute,
                          .rows = rows,
                          .n = n,
                          .b_rows = count / n,
                          .repeat = m->inner ? rows / (count / n) : 1};
    k->x = sn_converted_carve(&b->workspace, b->in[0], compute);
    k->bias = sn_converted_carve(&b->workspace, b->in[1], compute);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], compute);
    b->bound = k;
    b->kernel = "bias_softmax";
    b->flops = (uint64_t)total * 12;
    return SONDE_OK;
}

static sonde_status run_softmax(const sn_step *s, sn_frame *f)
{
    const softmax_bound *k = s->bound;
    const sn_dtype compute = k->plan.dtype;
    void *y = sn_converted_out(s, f, 0, compute, k->y);
    sn_row_sum_run(&k->sum, y, sn_converted_in(s, f, 0, compute, k->x),
                   sn_converted_in(s, f, 1, compute, k->bias), NULL, f->pool);
    sn_softmax_run(&k->plan, y, y, f->pool);
    sn_converted_done(s, f, 0, compute, k->y);
    return SONDE_OK;
}

const sn_op sn_op_ms_bias_softmax[] = {{.name = "BiasSoftmax",
                                        .domain = SN_MS_DOMAIN,
                                        .since = 1,
                                        .min_in = 2,
                                        .max_in = 2,
                                        .min_out = 1,
                                        .max_out = 1,
                                        .params_size = sizeof(softmax_params),
                                        .prepare = prepare_softmax,
                                        .infer = infer_softmax,
                                        .bind = bind_softmax,
                                        .run = run_softmax,
                                        .types = "f32 f64 f16",
                                        .attributes = "axis is_inner_broadcast"},
                                       {.name = NULL}};

/* ------------------------------------------------------------------ Inverse */
static sonde_status infer_inverse(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type;
    if (x->rank >= 0 && x->rank < 2)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is expected", x->rank);
    if (x->rank >= 2 && sn_dim_known(x->dims[x->rank - 1]) && sn_dim_known(x->dims[x->rank - 2]) &&
        x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return sn_infer_fail(c, "the matrices are not square");
    return sn_infer_same(c, 0, 0);
}

typedef struct inverse_bound {
    sn_piece matrix, inverse; /* in double */
} inverse_bound;

static sonde_status bind_inverse(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type;
    const int64_t n = x->dims[x->rank - 1];
    int64_t total = 0;
    inverse_bound *k = SN_NEW(b->arena, inverse_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (sn_compute_float(x->dtype) == SONDE_DTYPE_UNDEFINED)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    k->matrix = sn_carve(&b->workspace, sn_count(n, n, 1, 1), sizeof(double));
    k->inverse = sn_carve(&b->workspace, sn_count(n, n, 1, 1), sizeof(double));
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the matrix is too large");
    b->bound = k;
    b->kernel = "f64_gauss_jordan";
    b->arithmetic = SN_ARITH_F64;
    if (sn_type_count(x, &total))
        b->flops = 2 * (uint64_t)total * (uint64_t)n;
    return SONDE_OK;
}

static sonde_status run_inverse(const sn_step *s, sn_frame *f)
{
    const inverse_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, 0);
    const int64_t n = x->dims[x->rank - 1];
    if (n > 0)
        sn_inverse_run(f->ctx->cpu.flags, x->dtype, sn_out(s, f, 0)->data, x->data,
                       sn_tensor_count(x) / (n * n), n, sn_piece_ptr(f, k->matrix),
                       sn_piece_ptr(f, k->inverse));
    return SONDE_OK;
}

const sn_op sn_op_ms_inverse[] = {{.name = "Inverse",
                                   .domain = SN_MS_DOMAIN,
                                   .since = 1,
                                   .min_in = 1,
                                   .max_in = 1,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .infer = infer_inverse,
                                   .bind = bind_inverse,
                                   .run = run_inverse,
                                   .types = "f32 f64 f16"},
                                  {.name = NULL}};
