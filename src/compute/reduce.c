/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions. Whatever the axes, memory is read in order: either whole contiguous rows fold into
 * one number, or rows of kept elements fold into a row of accumulators. Floats accumulate in
 * double, integers in 64 bits. */
#include "compute/reduce.h"

#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "compute/small_floats.h"

enum {
    CHUNK = 512, /* elements at once */
    BATCH = 32   /* f32 rows added up before the sum goes into doubles */
};

/* What is done per element; several reductions share one. */
typedef enum step { STEP_SUM, STEP_SQUARE, STEP_ABS, STEP_PROD, STEP_MAX, STEP_MIN, STEP_EXP } step;

static step step_of(sn_reduce op)
{
    switch (op) {
    case SN_REDUCE_PROD:
        return STEP_PROD;
    case SN_REDUCE_MAX:
        return STEP_MAX;
    case SN_REDUCE_MIN:
        return STEP_MIN;
    case SN_REDUCE_L1:
        return STEP_ABS;
    case SN_REDUCE_L2:
    case SN_REDUCE_SUM_SQUARE:
        return STEP_SQUARE;
    case SN_REDUCE_LOG_SUM_EXP:
        return STEP_EXP;
    case SN_REDUCE_SUM:
    case SN_REDUCE_MEAN:
    case SN_REDUCE_LOG_SUM:
        break;
    }
    return STEP_SUM;
}

typedef union acc {
    double f;
    int64_t i;
    uint64_t u;
} acc;

/* X(DTYPE, type, class): class f, i or u is the accumulator. */
#define TYPE_LIST(X)                                                                               \
    X(F32, float, f)                                                                               \
    X(F64, double, f)                                                                              \
    X(I8, int8_t, i)                                                                               \
    X(I16, int16_t, i)                                                                             \
    X(I32, int32_t, i)                                                                             \
    X(I64, int64_t, i)                                                                             \
    X(U8, uint8_t, u)                                                                              \
    X(U16, uint16_t, u)                                                                            \
    X(U32, uint32_t, u)                                                                            \
    X(U64, uint64_t, u)

#define A_f double
#define A_i int64_t
#define A_u uint64_t
/* Signed sums wrap as unsigned ones do. */
#define ADD_f(a, x)    ((a) + (x))
#define ADD_i(a, x)    ((int64_t)((uint64_t)(a) + (uint64_t)(x)))
#define ADD_u(a, x)    ((a) + (x))
#define MUL_f(a, x)    ((a) * (x))
#define MUL_i(a, x)    ((int64_t)((uint64_t)(a) * (uint64_t)(x)))
#define MUL_u(a, x)    ((a) * (x))
#define ABS_f(x)       fabs(x)
#define ABS_i(x)       ((x) < 0 ? (int64_t)((uint64_t)0 - (uint64_t)(x)) : (x))
#define ABS_u(x)       (x)
#define MAX_f(a, x)    (isnan(a) || (a) > (x) ? (a) : (x))
#define MAX_i(a, x)    ((a) > (x) ? (a) : (x))
#define MAX_u(a, x)    ((a) > (x) ? (a) : (x))
#define MIN_f(a, x)    (isnan(a) || (a) < (x) ? (a) : (x))
#define MIN_i(a, x)    ((a) < (x) ? (a) : (x))
#define MIN_u(a, x)    ((a) < (x) ? (a) : (x))
#define EXP_f(a, x, m) ((a) + exp((x) - (m)))
#define EXP_i(a, x, m) ((void)(x), (void)(m), (a))
#define EXP_u(a, x, m) ((void)(x), (void)(m), (a))

/* fold: n elements into one accumulator. rows: element i into accumulator i. */
#define EACH(expr)                                                                                 \
    for (size_t i = 0; i < n; i++) {                                                               \
        A v = (A)x[i];                                                                             \
        a = (expr);                                                                                \
    }                                                                                              \
    break;
#define STEPS(c, DO, shift)                                                                        \
    switch (s) {                                                                                   \
    case STEP_SUM:                                                                                 \
        DO(ADD_##c(a, v))                                                                          \
    case STEP_SQUARE:                                                                              \
        DO(ADD_##c(a, MUL_##c(v, v)))                                                              \
    case STEP_ABS:                                                                                 \
        DO(ADD_##c(a, ABS_##c(v)))                                                                 \
    case STEP_PROD:                                                                                \
        DO(MUL_##c(a, v))                                                                          \
    case STEP_MAX:                                                                                 \
        DO(MAX_##c(a, v))                                                                          \
    case STEP_MIN:                                                                                 \
        DO(MIN_##c(a, v))                                                                          \
    case STEP_EXP:                                                                                 \
        DO(EXP_##c(a, v, shift))                                                                   \
    }

#define FOLD(D, T, c)                                                                              \
    static void fold_##D(step s, acc *out, const T *x, size_t n, double m)                         \
    {                                                                                              \
        typedef A_##c A;                                                                           \
        A a = out->c;                                                                              \
        (void)m;                                                                                   \
        STEPS(c, EACH, m)                                                                          \
        out->c = a;                                                                                \
    }
TYPE_LIST(FOLD)

#define ROWS_OF(D, T, c)                                                                           \
    static void rows_##D(step s, acc *row, const T *x, size_t n, const double *m)                  \
    {                                                                                              \
        typedef A_##c A;                                                                           \
        STEPS(c, EACH_ROW_##c, m[i])                                                               \
    }
#define EACH_ROW_AS(c, expr)                                                                       \
    for (size_t i = 0; i < n; i++) {                                                               \
        A v = (A)x[i], a = row[i].c;                                                               \
        row[i].c = (expr);                                                                         \
    }                                                                                              \
    break;
#define EACH_ROW_f(expr) EACH_ROW_AS(f, expr)
#define EACH_ROW_i(expr) EACH_ROW_AS(i, expr)
#define EACH_ROW_u(expr) EACH_ROW_AS(u, expr)
TYPE_LIST(ROWS_OF)

/* ------------------------------------------------------------------ one piece of memory */
static void fold(const sn_reduce_plan *p, step s, acc *a, const void *x, size_t n, double m)
{
    const sn_kernels *k = p->kernels;
    switch (p->dtype) {
    case SONDE_DTYPE_F32:
        if (s == STEP_SUM)
            a->f += (double)k->f32_sum(x, n);
        else if (s == STEP_SQUARE)
            a->f += (double)k->f32_sumsq(x, n);
        else if (s == STEP_MAX)
            a->f = MAX_f(a->f, (double)k->f32_rowmax(x, n));
        else if (s == STEP_MIN)
            a->f = MIN_f(a->f, (double)k->f32_rowmin(x, n));
        else
            fold_F32(s, a, x, n, m);
        return;
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16: {
        float tmp[CHUNK];
        for (size_t i = 0; i < n; i += CHUNK) {
            size_t c = n - i < CHUNK ? n - i : CHUNK;
            sn_load_f32(p->cpu_flags, p->dtype, tmp, (const uint16_t *)x + i, c);
            fold_F32(s, a, tmp, c, m);
        }
        return;
    }
#define CASE(D)                                                                                    \
    case SONDE_DTYPE_##D:                                                                          \
        fold_##D(s, a, x, n, m);                                                                   \
        return;
        CASE(F64)
        CASE(I8)
        CASE(I16)
        CASE(I32)
        CASE(I64)
        CASE(U8)
        CASE(U16)
        CASE(U32)
        CASE(U64)
#undef CASE
    case SONDE_DTYPE_BOOL:
        fold_U8(s, a, x, n, m);
        return;
    default:
        return;
    }
}

static void fold_rows(const sn_reduce_plan *p, step s, acc *row, const void *x, size_t n,
                      const double *m)
{
    switch (p->dtype) {
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16: {
        float tmp[CHUNK];
        sn_load_f32(p->cpu_flags, p->dtype, tmp, x, n);
        rows_F32(s, row, tmp, n, m);
        return;
    }
#define CASE(D)                                                                                    \
    case SONDE_DTYPE_##D:                                                                          \
        rows_##D(s, row, x, n, m);                                                                 \
        return;
        CASE(F32)
        CASE(F64)
        CASE(I8)
        CASE(I16)
        CASE(I32)
        CASE(I64)
        CASE(U8)
        CASE(U16)
        CASE(U32)
        CASE(U64)
#undef CASE
    case SONDE_DTYPE_BOOL:
        rows_U8(s, row, x, n, m);
        return;
    default:
        return;
    }
}

/* ------------------------------------------------------------------ start and finish */
static bool is_float(sonde_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || sn_is_half(t);
}
static bool is_signed(sonde_dtype t)
{
    return t == SONDE_DTYPE_I8 || t == SONDE_DTYPE_I16 || t == SONDE_DTYPE_I32 ||
           t == SONDE_DTYPE_I64;
}

static acc start_value(step s, sonde_dtype t)
{
    size_t bits = t == SONDE_DTYPE_BOOL ? 1 : sn_dtype_bytes(t) * 8;
    acc a;
    if (is_float(t))
        a.f = s == STEP_PROD ? 1.0 : s == STEP_MAX ? -INFINITY : s == STEP_MIN ? INFINITY : 0.0;
    else if (s == STEP_MAX)
        a.i = is_signed(t) ? (int64_t)((uint64_t)-1 << (bits - 1)) : 0;
    else if (s == STEP_MIN && is_signed(t))
        a.i = (int64_t) ~((uint64_t)-1 << (bits - 1));
    else if (s == STEP_MIN)
        a.u = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    else
        a.i = s == STEP_PROD;
    return a;
}

static double finish_float(const sn_reduce_plan *p, double a, double m)
{
    switch (p->op) {
    case SN_REDUCE_MEAN:
        return a / (double)p->red_count;
    case SN_REDUCE_L2:
        return sqrt(a);
    case SN_REDUCE_LOG_SUM:
        return log(a);
    case SN_REDUCE_LOG_SUM_EXP:
        return m + log(a);
    default:
        return a;
    }
}

static void finish(const sn_reduce_plan *p, uint8_t *y, size_t at, acc a, double m)
{
    if (is_float(p->dtype)) {
        double v = finish_float(p, a.f, m);
        float f = (float)v;
        if (p->dtype == SONDE_DTYPE_F64)
            ((double *)(void *)y)[at] = v;
        else if (p->dtype == SONDE_DTYPE_F32)
            ((float *)(void *)y)[at] = f;
        else
            sn_store_f32(p->cpu_flags, p->dtype, y + at * sn_dtype_bytes(p->dtype), &f, 1,
                         (sn_rounding){0});
        return;
    }
    if (p->op == SN_REDUCE_MEAN && p->red_count > 0) {
        if (is_signed(p->dtype))
            a.i /= p->red_count;
        else
            a.u /= (uint64_t)p->red_count;
    }
    switch (sn_dtype_bytes(p->dtype)) { /* the low bytes are the wrapped result */
    case 1:
        y[at] = (uint8_t)a.u;
        break;
    case 2:
        ((uint16_t *)(void *)y)[at] = (uint16_t)a.u;
        break;
    case 4:
        ((uint32_t *)(void *)y)[at] = (uint32_t)a.u;
        break;
    default:
        ((uint64_t *)(void *)y)[at] = a.u;
    }
}

/* ------------------------------------------------------------------ walking */
/* Adds one to a counter over dims; returns false after the last. *off follows along. */
static bool advance(int n, const int64_t *dims, const ptrdiff_t *stride, int64_t *at,
                    ptrdiff_t *off)
{
    for (int i = n - 1; i >= 0; i--) {
        *off += stride[i];
        if (++at[i] < dims[i])
            return true;
        *off -= stride[i] * (ptrdiff_t)dims[i];
        at[i] = 0;
    }
    return false;
}

static ptrdiff_t seek(int n, const int64_t *dims, const ptrdiff_t *stride, size_t k, int64_t *at)
{
    ptrdiff_t off = 0;
    for (int i = n - 1; i >= 0; i--) {
        at[i] = (int64_t)(k % (size_t)dims[i]);
        k /= (size_t)dims[i];
        off += at[i] * stride[i];
    }
    return off;
}

typedef struct job {
    const sn_reduce_plan *p;
    uint8_t *y;
    const uint8_t *x;
} job;

/* All rows that belong to the output element whose first input element is at `base`. */
static acc fold_element(const sn_reduce_plan *p, step s, const uint8_t *base, double m)
{
    acc a = start_value(s, p->dtype);
    if (p->red_count == 0)
        return a;
    int outer = p->n_red - 1;
    size_t inner = (size_t)p->red[outer], bytes = sn_dtype_bytes(p->dtype);
    int64_t at[SN_REDUCE_RANK] = {0};
    ptrdiff_t off = 0;
    do
        fold(p, s, &a, base + off * (ptrdiff_t)bytes, inner, m);
    while (advance(outer, p->red, p->red_stride, at, &off));
    return a;
}

static double finite_or_zero(double m)
{
    return isfinite(m) ? m : 0.0;
}

static void rows_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_reduce_plan *p = j->p;
    int64_t at[SN_REDUCE_RANK];
    ptrdiff_t off = seek(p->n_keep, p->keep, p->keep_stride, lo, at);
    size_t bytes = sn_dtype_bytes(p->dtype);
    step s = step_of(p->op);
    for (size_t k = lo; k < hi; k++) {
        const uint8_t *base = j->x + off * (ptrdiff_t)bytes;
        double m = 0;
        if (s == STEP_EXP)
            m = finite_or_zero(fold_element(p, STEP_MAX, base, 0).f);
        finish(p, j->y, k, fold_element(p, s, base, m), m);
        advance(p->n_keep, p->keep, p->keep_stride, at, &off);
    }
}

/* Sums, maxima and minima of f32 rows go elementwise through the kernels. */
static bool has_kernel(const sn_reduce_plan *p, step s)
{
    return p->dtype == SONDE_DTYPE_F32 && (s == STEP_SUM || s == STEP_MAX || s == STEP_MIN);
}

static sn_f32_binary_fn *join_of(const sn_reduce_plan *p, step s)
{
    const sn_kernels *k = p->kernels;
    return s == STEP_SUM ? k->f32_add : s == STEP_MAX ? k->f32_max : k->f32_min;
}

/* So few rows of f32 that their sum needs no doubles, and the result is that sum or its mean. */
static bool is_short(const sn_reduce_plan *p, step s)
{
    return has_kernel(p, s) && p->op != SN_REDUCE_LOG_SUM && p->red_count > 1 &&
           p->red_count <= BATCH;
}

static void join_columns(const sn_reduce_plan *p, step s, float *y, const float *base, size_t n)
{
    sn_f32_binary_fn *join = join_of(p, s);
    int64_t at[SN_REDUCE_RANK] = {0};
    ptrdiff_t off = 0;
    const float *so_far = base;
    while (advance(p->n_red, p->red, p->red_stride, at, &off)) {
        join(y, so_far, base + off, n, SN_BINARY_VV);
        so_far = y;
    }
    const float count = (float)p->red_count;
    if (p->op == SN_REDUCE_MEAN)
        p->kernels->f32_div(y, y, &count, n, SN_BINARY_VS);
}

static void fold_columns_f32(const sn_reduce_plan *p, step s, acc *row, const float *base, size_t n)
{
    sn_f32_binary_fn *join = join_of(p, s);
    float part[CHUNK];
    int64_t at[SN_REDUCE_RANK] = {0};
    ptrdiff_t off = 0;
    bool more = true;
    while (more) {
        memcpy(part, base + off, n * sizeof(float));
        more = advance(p->n_red, p->red, p->red_stride, at, &off);
        for (int i = 1; i < BATCH && more; i++) {
            join(part, part, base + off, n, SN_BINARY_VV);
            more = advance(p->n_red, p->red, p->red_stride, at, &off);
        }
        rows_F32(s, row, part, n, NULL);
    }
}

static void fold_columns(const sn_reduce_plan *p, step s, acc *row, const uint8_t *base, size_t n,
                         const double *m)
{
    for (size_t i = 0; i < n; i++)
        row[i] = start_value(s, p->dtype);
    if (p->red_count == 0)
        return;
    if (has_kernel(p, s)) {
        fold_columns_f32(p, s, row, (const float *)(const void *)base, n);
        return;
    }
    int64_t at[SN_REDUCE_RANK] = {0};
    ptrdiff_t off = 0, bytes = (ptrdiff_t)sn_dtype_bytes(p->dtype);
    do
        fold_rows(p, s, row, base + off * bytes, n, m);
    while (advance(p->n_red, p->red, p->red_stride, at, &off));
}

/* Units are chunks of the innermost kept dim, for every combination of the outer ones. */
static void columns_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_reduce_plan *p = j->p;
    int outer = p->n_keep - 1;
    size_t inner = (size_t)p->keep[outer], chunks = (inner + CHUNK - 1) / CHUNK;
    size_t bytes = sn_dtype_bytes(p->dtype);
    step s = step_of(p->op);
    for (size_t k = lo; k < hi; k++) {
        int64_t at[SN_REDUCE_RANK];
        acc row[CHUNK];
        double m[CHUNK];
        size_t first = k % chunks * CHUNK, n = inner - first < CHUNK ? inner - first : CHUNK;
        size_t y_at = k / chunks * inner + first;
        ptrdiff_t off = seek(outer, p->keep, p->keep_stride, k / chunks, at) + (ptrdiff_t)first;
        const uint8_t *base = j->x + off * (ptrdiff_t)bytes;
        if (is_short(p, s)) {
            join_columns(p, s, (float *)(void *)j->y + y_at, (const float *)(const void *)base, n);
            continue;
        }
        memset(m, 0, n * sizeof *m);
        if (s == STEP_EXP) {
            fold_columns(p, STEP_MAX, row, base, n, m);
            for (size_t i = 0; i < n; i++)
                m[i] = finite_or_zero(row[i].f);
        }
        fold_columns(p, s, row, base, n, m);
        for (size_t i = 0; i < n; i++)
            finish(p, j->y, y_at + i, row[i], m[i]);
    }
}

/* ------------------------------------------------------------------ interface */
bool sn_reduce_supported(sn_reduce op, sonde_dtype t)
{
    if (is_float(t))
        return true;
    if (t == SONDE_DTYPE_BOOL)
        return op == SN_REDUCE_MAX || op == SN_REDUCE_MIN;
    bool is_int = is_signed(t) || t == SONDE_DTYPE_U8 || t == SONDE_DTYPE_U16 ||
                  t == SONDE_DTYPE_U32 || t == SONDE_DTYPE_U64;
    return is_int && op <= SN_REDUCE_SUM_SQUARE;
}

void sn_reduce_make(sn_reduce_plan *p, sn_reduce op, sonde_dtype t, const int64_t *dims, int rank,
                    const bool *reduced, uint32_t cpu_flags)
{
    memset(p, 0, sizeof(*p));
    p->op = op;
    p->dtype = t;
    p->kernels = sn_kernels_get(cpu_flags);
    p->cpu_flags = cpu_flags;
    p->out_count = p->red_count = 1;
    /* From the right, dims of one kind that follow one another become one. */
    int64_t sizes[SN_REDUCE_RANK];
    bool kinds[SN_REDUCE_RANK];
    ptrdiff_t strides[SN_REDUCE_RANK], stride = 1;
    int n = 0;
    for (int i = rank - 1; i >= 0; i--) {
        *(reduced[i] ? &p->red_count : &p->out_count) *= dims[i];
        if (dims[i] != 1) {
            if (n > 0 && kinds[n - 1] == reduced[i]) {
                sizes[n - 1] *= dims[i];
            } else {
                sizes[n] = dims[i];
                kinds[n] = reduced[i];
                strides[n++] = stride;
            }
        }
        stride *= (ptrdiff_t)dims[i];
    }
    for (int i = n - 1; i >= 0; i--) {
        int *at = kinds[i] ? &p->n_red : &p->n_keep;
        (kinds[i] ? p->red : p->keep)[*at] = sizes[i];
        (kinds[i] ? p->red_stride : p->keep_stride)[*at] = strides[i];
        (*at)++;
    }
    /* Nothing reduced: every element is a row of one. */
    p->rows = n == 0 || kinds[0] || p->n_red == 0;
    if (p->n_red == 0) {
        p->n_red = 1;
        p->red[0] = 1;
        p->red_stride[0] = 1;
    }
}

void sn_reduce_run(const sn_reduce_plan *p, void *y, const void *x, sn_pool *pool)
{
    job j = {p, y, x};
    if (p->out_count == 0)
        return;
    size_t red = (size_t)p->red_count;
    if (p->rows) {
        sn_parallel_range(pool, (size_t)p->out_count, red, rows_range, &j);
        return;
    }
    size_t inner = (size_t)p->keep[p->n_keep - 1], chunks = (inner + CHUNK - 1) / CHUNK;
    size_t units = (size_t)p->out_count / inner * chunks;
    sn_parallel_range(pool, units, red * (inner < CHUNK ? inner : CHUNK), columns_range, &j);
}
