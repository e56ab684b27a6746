/* SPDX-License-Identifier: Apache-2.0 */
/* BiasSoftmax and Inverse of com.microsoft. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "compute/softmax.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"
#include "ops/shared/half_workspace.h"

/* ------------------------------------------------------------------ BiasSoftmax */
typedef struct softmax_params {
    int64_t axis;
    bool inner; /* the bias repeats inside, else outside */
} softmax_params;

typedef struct softmax_bound {
    sn_softmax_plan plan;
    int64_t bias_rows, repeat; /* row r of the data takes bias row r / repeat % bias_rows */
    size_t x, bias, y;
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
        count % n || rows % (count / n))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the bias does not broadcast to the scores");
    if (bias->dtype != x->dtype || sn_compute_float(x->dtype) == SONDE_DTYPE_UNDEFINED)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    k->plan = (sn_softmax_plan){
        .kind = SN_SOFTMAX, .dtype = sn_via_dtype(x->dtype), .outer = rows, .n = n, .inner = 1};
    sn_softmax_choose(&k->plan, b->cpu_flags);
    k->bias_rows = count / n;
    k->repeat = m->inner ? rows / k->bias_rows : 1;
    sn_room ws = {0};
    if (sn_is_half(x->dtype)) {
        k->x = sn_room_take(&ws, total, sizeof(float));
        k->bias = sn_room_take(&ws, count, sizeof(float));
        k->y = sn_room_take(&ws, total, sizeof(float));
    }
    b->bound = k;
    b->kernel = "bias_softmax";
    b->flops = (uint64_t)total * 12;
    return sn_room_done(b, &ws);
}

typedef struct bias_job {
    const softmax_bound *k;
    const void *x, *bias;
    void *y;
} bias_job;

#define BIAS_ROWS(T, NAME)                                                                         \
    static void NAME(void *arg, size_t lo, size_t hi)                                              \
    {                                                                                              \
        const bias_job *j = arg;                                                                   \
        const int64_t n = j->k->plan.n;                                                            \
        for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {                                      \
            const T *x = (const T *)j->x + r * n;                                                  \
            const T *bias = (const T *)j->bias + r / j->k->repeat % j->k->bias_rows * n;           \
            T *y = (T *)j->y + r * n;                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i] + bias[i];                                                             \
        }                                                                                          \
    }
BIAS_ROWS(float, bias_rows_f32)
BIAS_ROWS(double, bias_rows_f64)

static sonde_status run_softmax(const sn_step *s, sn_frame *f)
{
    const softmax_bound *k = s->bound;
    sn_tensor *y = sn_out(s, f, 0);
    bias_job j = {.k = k,
                  .x = sn_via_in(f, sn_in(s, f, 0), k->x),
                  .bias = sn_via_in(f, sn_in(s, f, 1), k->bias),
                  .y = sn_via_out(f, y, k->y)};
    sn_parallel_range(f->pool, (size_t)k->plan.outer, (size_t)k->plan.n,
                      k->plan.dtype == SONDE_DTYPE_F64 ? bias_rows_f64 : bias_rows_f32, &j);
    sn_softmax_run(&k->plan, j.y, j.y, f->pool);
    sn_via_done(f, y, k->y);
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
                                        .types = "f32 f64 f16"},
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

static sonde_status bind_inverse(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type;
    const int64_t n = x->dims[x->rank - 1];
    int64_t count;
    sn_room ws = {0};
    if (sn_compute_float(x->dtype) == SONDE_DTYPE_UNDEFINED)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    if (!sn_i64_mul(n, n, &count) || !sn_i64_mul(count, 2, &count))
        return sn_bind_fail(b, SONDE_LIMIT, "the matrix is too large");
    sn_room_take(&ws, count, sizeof(double));
    b->kernel = "f64_gauss_jordan";
    int64_t total = 0;
    if (sn_type_count(x, &total))
        b->flops = 2 * (uint64_t)total * (uint64_t)n;
    return sn_room_done(b, &ws);
}

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b)
{
    for (int64_t c = 0; a != b && c < n; c++) {
        const double t = m[a * n + c];
        m[a * n + c] = m[b * n + c];
        m[b * n + c] = t;
    }
}

/* Gauss-Jordan with partial pivoting; `m` is destroyed. A singular matrix gives infinities or NaN.
 */
static void invert(double *m, double *inv, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            inv[i * n + j] = i == j;
    for (int64_t col = 0; col < n; col++) {
        int64_t pivot = col;
        for (int64_t r = col + 1; r < n; r++)
            if (fabs(m[r * n + col]) > fabs(m[pivot * n + col]))
                pivot = r;
        swap_rows(m, n, col, pivot);
        swap_rows(inv, n, col, pivot);
        const double d = 1.0 / m[col * n + col];
        for (int64_t c = 0; c < n; c++) {
            m[col * n + c] *= d;
            inv[col * n + c] *= d;
        }
        for (int64_t r = 0; r < n; r++) {
            const double k = m[r * n + col];
            if (r == col || k == 0)
                continue;
            for (int64_t c = 0; c < n; c++) {
                m[r * n + c] -= k * m[col * n + c];
                inv[r * n + c] -= k * inv[col * n + c];
            }
        }
    }
}

static sonde_status run_inverse(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    const int64_t n = x->dims[x->rank - 1], each = n * n;
    const int64_t count = each > 0 ? sn_tensor_count(x) / each : 0;
    const size_t bytes = sn_dtype_bytes(x->dtype) * (size_t)each;
    double *m = (double *)(void *)f->workspace, *inv = m + each;
    for (int64_t i = 0; i < count; i++) {
        sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F64, m, x->dtype,
                    (const uint8_t *)x->data + (size_t)i * bytes, (size_t)each, (sn_rounding){0},
                    NULL);
        invert(m, inv, n);
        sn_cast_run(f->ctx->cpu.flags, y->dtype, (uint8_t *)y->data + (size_t)i * bytes,
                    SONDE_DTYPE_F64, inv, (size_t)each, (sn_rounding){0}, NULL);
    }
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
