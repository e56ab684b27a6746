/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of bytes against sums in plain integers: equal to the last bit, at
 * every CPU level, with packed weights and without, on one thread and on several. */
#include <math.h>
#include <stdlib.h>

#include "compute/q8.h"
#include "compute/sparse.h"
#include "levels.h"
#include "packed.h"

static uint8_t *random_bytes(int64_t n)
{
    uint8_t *p = malloc((size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)(test_rand() % 4 ? test_rand() : test_rand() % 2 ? 255 : 128);
    return p;
}

/* The same with long runs of a number that is zero, or 128. */
static uint8_t *random_weights(int64_t n)
{
    uint8_t *p = random_bytes(n);
    const uint8_t none = test_rand() % 2 ? 128 : 0;
    for (int64_t i = 0; i < n;) {
        const int64_t run = test_between(0, 40), end = i + run < n ? i + run : n;
        memset(p + i, none, (size_t)(end - i));
        i = end + test_between(1, 40);
    }
    return p;
}

static sonde_dtype byte_type(void)
{
    return test_rand() % 2 ? SONDE_DTYPE_U8 : SONDE_DTYPE_I8;
}

/* What all cases have in common: parameters, result, and running it in all ways. */
typedef struct q8_case {
    sn_q8_desc d;
    sn_q8_args a;
    int64_t rows, columns, results, x_rows, w_columns; /* results: elements of y with its pitch */
    uint8_t *x, *w, *x_zero, *w_zero;
    int32_t *bias;
    int64_t *sums; /* [rows][columns], what is expected */
    bool one_kind; /* all numbers at the same end: sums are as long as they can be */
    float *x_scale, *w_scale, *addend;
} q8_case;

static void random_params(q8_case *c)
{
    static const sonde_dtype results[] = {SONDE_DTYPE_U8, SONDE_DTYPE_I8, SONDE_DTYPE_I32,
                                          SONDE_DTYPE_F32};
    sn_q8_desc *d = &c->d;
    d->x_type = byte_type();
    d->w_type = byte_type();
    d->y_type = results[test_between(0, 3)];
    const bool rows = d->product && test_between(0, 4) == 0;
    const int64_t x_zeros = rows ? c->x_rows : 1, w_zeros = test_between(0, 1) ? 1 : c->w_columns;
    c->x_zero = random_bytes(x_zeros);
    c->w_zero = random_bytes(w_zeros);
    if (test_between(0, 2)) /* usually weights have none */
        for (int64_t i = 0; i < w_zeros; i++)
            c->w_zero[i] = d->w_type == SONDE_DTYPE_U8 ? 128 : 0;
    c->a.x_zero = (sn_byte_zeros){d->x_type, c->x_zero, x_zeros};
    c->a.w_zero = (sn_byte_zeros){d->w_type, test_between(0, 5) ? c->w_zero : NULL, w_zeros};
    c->a.x_scales = d->product && test_between(0, 4) == 0 ? c->x_rows : 1;
    c->a.w_scales = test_between(0, 1) ? 1 : c->w_columns;
    c->x_scale = malloc((size_t)c->a.x_scales * sizeof(float));
    c->w_scale = malloc((size_t)c->a.w_scales * sizeof(float));
    for (int64_t i = 0; i < c->a.x_scales; i++)
        c->x_scale[i] = 0.01f + 0.1f * fabsf(test_randf());
    for (int64_t i = 0; i < c->a.w_scales; i++)
        c->w_scale[i] = 0.01f + 0.1f * fabsf(test_randf());
    c->a.x_scale = c->x_scale;
    c->a.w_scale = c->w_scale;
    c->a.y_scale = 0.5f;
    c->a.y_zero = d->y_type == SONDE_DTYPE_I8 ? -3 : 7;
    c->bias = malloc((size_t)(c->rows * c->columns) * sizeof *c->bias);
    c->addend = malloc((size_t)c->columns * sizeof *c->addend);
    const bool large = test_between(0, 3) == 0;
    for (int64_t i = 0; i < c->rows * c->columns; i++)
        c->bias[i] = large && test_between(0, 2) == 0
                         ? test_between(0, 1) ? INT32_MAX - (int32_t)test_between(0, 5000)
                                              : INT32_MIN + (int32_t)test_between(0, 5000)
                         : (int32_t)test_between(-5000, 5000);
    if (large || c->one_kind) /* results are not all cut off */
        for (int64_t i = 0; i < c->a.w_scales; i++)
            c->w_scale[i] *= 1e-6f;
    for (int64_t i = 0; i < c->columns; i++)
        c->addend[i] = test_randf();
    if (test_between(0, 1)) {
        c->a.bias = c->bias;
        c->a.bias_column = test_between(0, 3) != 0;
        if (d->product && test_between(0, 2) == 0)
            c->a.bias_row = c->a.bias_column ? c->columns : 1;
    }
    if (d->y_type == SONDE_DTYPE_F32 && test_between(0, 1))
        c->a.addend = c->addend;
    if (test_between(0, 3) == 0) {
        c->a.lo = d->y_type == SONDE_DTYPE_I8 ? -20 : 7;
        c->a.hi = 90;
    }
}

static int32_t zero_of(const sn_byte_zeros *z, int64_t columns, int64_t matrix, int64_t o)
{
    if (!z->data)
        return 0;
    return sn_byte_at(z->type, z->data, z->n == 1 ? 0 : z->n == columns ? o : matrix * columns + o);
}

/* Is element [row][o] what the sum says? x_row: row of x, of all matrices. */
static bool as_expected(const q8_case *c, const void *y, int64_t row, int64_t o, int64_t x_row,
                        int64_t matrix)
{
    const sn_q8_args *a = &c->a;
    const int64_t at = row * c->d.y_pitch + o;
    int64_t sum = c->sums[row * c->columns + o];
    if (a->bias)
        sum += a->bias[row * a->bias_row + o * a->bias_column];
    const float ws = a->w_scale[a->w_scales == 1            ? 0
                                : a->w_scales == c->columns ? o
                                                            : matrix * c->columns + o];
    const float f = a->x_scale[x_row % a->x_scales] * ws;
    if (c->d.y_type == SONDE_DTYPE_I32)
        return ((const uint32_t *)y)[at] == (uint32_t)(uint64_t)sum;
    if (c->d.wraps)
        sum = (int32_t)(uint32_t)(uint64_t)sum;
    if (c->d.y_type == SONDE_DTYPE_F32) {
        const float want = (float)sum * f + (a->addend ? a->addend[o] : 0.0f);
        return ((const float *)y)[at] == want;
    }
    const bool all = a->lo == 0 && a->hi == 0, u8 = c->d.y_type == SONDE_DTYPE_U8;
    const float lo = !all ? (float)a->lo : u8 ? 0.0f : -128.0f;
    const float hi = !all ? (float)a->hi : lo + 255.0f;
    const float v = rintf((float)sum * (f / a->y_scale)) + (float)a->y_zero;
    const int32_t want = (int32_t)(v < lo ? lo : v > hi ? hi : v);
    return sn_byte_at(c->d.y_type, y, at) == want;
}

/* One matrix of weights, and result r reads row r of x. */
static bool may_be_sparse(const q8_case *c)
{
    const sn_conv_desc *d = &c->d.conv;
    if (c->d.product)
        return c->d.matrices <= 1 && d->c > 0 && d->oc > 1;
    bool flat = d->groups == 1 && d->c > 1 && d->oc > 1;
    for (int i = 0; i < 3; i++)
        flat = flat && d->kernel[i] == 1 && d->stride[i] == 1 && d->pad[i] == 0 &&
               d->in[i] == d->out[i];
    return flat;
}

typedef void expect_fn(const q8_case *c, int64_t row, int64_t *x_row, int64_t *matrix);

static void run_case(q8_case *c, expect_fn *expect, const int64_t *dims, int rank, int64_t arg,
                     int index)
{
    const size_t elem = c->d.y_type == SONDE_DTYPE_I32 || c->d.y_type == SONDE_DTYPE_F32 ? 4 : 1;
    for (const level *l = levels(); l->name && !test_errors; l++) {
        const uint32_t flags = l->flags;
        c->d.packed = test_between(0, 1);
        const bool turned = !c->d.product || c->d.turned;
        const sn_sparse_order order = !c->d.product ? SN_SPARSE_FILTERS
                                      : turned      ? SN_SPARSE_TURNED
                                                    : SN_SPARSE_PLAIN;
        c->d.sparse =
            c->d.packed && test_between(0, 1) && may_be_sparse(c) && c->d.conv.c <= SN_Q8_PART;
        c->d.sparse_tiles = c->d.sparse && test_between(0, 1);
        const sn_sparse_source source = {c->w, c->d.w_type, c->d.conv.c, c->d.conv.oc, turned};
        if (c->d.sparse)
            c->d.entries = c->d.sparse_tiles ? sn_sparse_blocks(&source, 16, 4)
                                             : sn_sparse_blocks(&source, 4, 1);
        const int threads = (int)test_between(1, 3);
        sn_q8_plan plan;
        CHECK(sn_q8_plan_make(&plan, &c->d, flags, test_between(0, 1) ? 1 << 20 : 1 << 10, threads,
                              NULL) == SONDE_OK);
        const bool u8 = c->d.w_type == SONDE_DTYPE_U8;
        const unsigned format = c->d.sparse_tiles ? (u8 ? SN_PACK_U8_SPARSE16 : SN_PACK_I8_SPARSE16)
                                : c->d.sparse     ? (u8 ? SN_PACK_U8_SPARSE4 : SN_PACK_I8_SPARSE4)
                                                  : plan.pack;
        const int64_t own = c->d.sparse ? sn_sparse_arg(order, c->d.entries) : arg;
        void *packed = c->d.packed ? packed_weights(format, c->w, dims, rank, own, flags) : NULL;
        void *y = malloc((size_t)c->results * elem + 1);
        memset(y, 0x5A, (size_t)c->results * elem);
        void *workspace = aligned_alloc(SN_ALIGN, sn_round_up(plan.workspace.bytes + 1, SN_ALIGN));
        sn_pool *pool = NULL;
        sn_allocator alloc;
        sn_allocator_init_system(&alloc);
        CHECK(sn_pool_create(&pool, threads, &alloc, NULL) == SONDE_OK);
        sn_q8_args a = c->a;
        a.x = c->x;
        a.w = packed ? packed : c->w;
        a.y = y;
        a.workspace = workspace;
        CHECK(sn_q8_run(&plan, &a, pool));
        for (int64_t row = 0; row < c->rows && !test_errors; row++) {
            int64_t x_row, matrix;
            expect(c, row, &x_row, &matrix);
            for (int64_t o = 0; o < c->columns && !test_errors; o++)
                CHECK_MSG(as_expected(c, y, row, o, x_row, matrix),
                          "%s, case %d, %s: row %lld, column %lld", l->name, index, plan.name,
                          (long long)row, (long long)o);
        }
        sn_pool_free(pool);
        free(workspace), free(y), free(packed);
    }
    free(c->x), free(c->w), free(c->x_zero), free(c->w_zero), free(c->bias), free(c->sums);
    free(c->x_scale), free(c->w_scale), free(c->addend);
}

/* ------------------------------------------------------------------ convolutions */
static void conv_row(const q8_case *c, int64_t row, int64_t *x_row, int64_t *matrix)
{
    (void)c, (void)row;
    *x_row = *matrix = 0;
}

static int64_t conv_sum(const q8_case *c, int64_t n, const int64_t *o, int64_t oc)
{
    const sn_conv_desc *d = &c->d.conv;
    const int64_t icg = d->c / d->groups, group = oc / (d->oc / d->groups);
    const int64_t plane = d->in[0] * d->in[1] * d->in[2];
    const int32_t wz = zero_of(&c->a.w_zero, d->oc, 0, oc), xz = zero_of(&c->a.x_zero, 1, 0, 0);
    int64_t sum = 0;
    for (int64_t k = 0; k < d->kernel[0] * d->kernel[1] * d->kernel[2]; k++) {
        const int64_t tap[3] = {k / d->kernel[2] / d->kernel[1], k / d->kernel[2] % d->kernel[1],
                                k % d->kernel[2]};
        int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < 3; i++) {
            const int64_t p = o[i] * d->stride[i] - d->pad[i] + tap[i] * d->dilation[i];
            inside = inside && p >= 0 && p < d->in[i];
            at = at * d->in[i] + p;
        }
        for (int64_t i = 0; i < icg && inside; i++) {
            const int32_t x =
                sn_byte_at(c->d.x_type, c->x, (n * plane + at) * c->d.x_pitch + group * icg + i);
            const int32_t w = sn_byte_at(
                c->d.w_type, c->w, (oc * icg + i) * d->kernel[0] * d->kernel[1] * d->kernel[2] + k);
            sum += (x - xz) * (w - wz);
        }
    }
    return sum;
}

/* Bytes that are all next to one end of their type. */
static void to_one_end(q8_case *c, int64_t x, int64_t w)
{
    if (!c->one_kind)
        return;
    const uint8_t x_end = c->d.x_type == SONDE_DTYPE_I8 ? 0x80 : test_rand() % 2 ? 0xF0 : 0;
    const uint8_t w_end = c->d.w_type == SONDE_DTYPE_I8 ? 0x80 : test_rand() % 2 ? 0xF0 : 0;
    for (int64_t i = 0; i < x; i++)
        c->x[i] = x_end | (c->x[i] & 15);
    for (int64_t i = 0; i < w; i++)
        c->w[i] = w_end | (c->w[i] & 15);
}

/* The case whose sizes are there. */
static void run_conv(q8_case *c, int index)
{
    const sn_conv_desc *d = &c->d.conv;
    c->d.x_pitch = d->c + test_between(0, 1) * test_between(0, 5);
    c->rows = d->n * d->out[0] * d->out[1] * d->out[2];
    c->columns = c->w_columns = d->oc;
    c->x_rows = d->n * d->in[0] * d->in[1] * d->in[2];
    const int64_t icg = d->c / d->groups;
    const int64_t taps = d->kernel[0] * d->kernel[1] * d->kernel[2];
    random_params(c);
    c->d.y_pitch = d->oc + test_between(0, 1) * test_between(0, 5);
    if (c->d.y_type == SONDE_DTYPE_I32 || c->d.y_type == SONDE_DTYPE_F32)
        c->d.y_pitch = d->oc;
    c->results = c->rows * c->d.y_pitch;
    c->x = random_bytes(c->x_rows * c->d.x_pitch);
    c->w = random_weights(d->oc * icg * taps);
    to_one_end(c, c->x_rows * c->d.x_pitch, d->oc * icg * taps);
    c->sums = malloc((size_t)(c->rows * c->columns) * sizeof *c->sums);
    for (int64_t i = 0; i < c->rows * c->columns; i++) {
        const int64_t row = i / c->columns, rest = row / d->out[2];
        const int64_t o[3] = {rest / d->out[1] % d->out[0], rest % d->out[1], row % d->out[2]};
        c->sums[i] = conv_sum(c, rest / d->out[1] / d->out[0], o, i % c->columns);
    }
    const int64_t dims[5] = {d->oc, icg, d->kernel[0], d->kernel[1], d->kernel[2]};
    run_case(c, conv_row, dims, 5, sn_q8_conv_pack_arg(d->groups, d->kernel[2], d->dilation[2]),
             index);
}

static void check_conv(int index)
{
    q8_case c = {0};
    sn_conv_desc *d = &c.d.conv;
    const int rank = (int)test_between(1, 3);
    d->n = test_between(1, 2);
    d->groups = index % 3 ? 1 : test_between(1, 20);
    int64_t icg = test_between(1, index % 2 ? 5 : 40), ocg = test_between(1, index % 5 ? 20 : 90);
    if (index % 4 == 0) { /* depthwise */
        d->groups = test_between(2, index % 8 ? 40 : 150);
        icg = ocg = 1;
    }
    d->c = icg * d->groups;
    d->oc = ocg * d->groups;
    for (int i = 0; i < 3; i++) {
        const bool there = i >= 3 - rank;
        d->in[i] = there ? test_between(1, rank == 3 ? 5 : 9) : 1;
        d->kernel[i] = there ? test_between(1, 4) : 1;
        d->stride[i] = there ? test_between(1, 3) : 1;
        d->dilation[i] = there ? test_between(1, 2) : 1;
        d->pad[i] = there ? test_between(0, 3) : 0;
        const int64_t reach = (d->kernel[i] - 1) * d->dilation[i] + 1;
        const int64_t padded =
            sn_max(d->in[i] + d->pad[i] + (there ? test_between(0, 2) : 0), reach);
        d->out[i] = (padded - reach) / d->stride[i] + 1;
    }
    run_conv(&c, index);
}

TEST(convolutions_of_bytes_are_exact)
{
    for (int i = 0; i < 240 && !test_errors; i++)
        check_conv(i);
}

/* ------------------------------------------------------------------ products */
static void matrices_of(const sn_q8_desc *d, int64_t batch, int64_t *mx, int64_t *mw)
{
    *mx = *mw = 0;
    for (int i = d->batch_rank - 1; i >= 0; i--) {
        *mx += batch % d->batch[i] * d->x_batch[i];
        *mw += batch % d->batch[i] * d->w_batch[i];
        batch /= d->batch[i];
    }
}

static void product_row(const q8_case *c, int64_t row, int64_t *x_row, int64_t *matrix)
{
    const int64_t m = c->d.conv.out[2];
    int64_t mx;
    matrices_of(&c->d, row / m, &mx, matrix);
    *x_row = mx * m + row % m;
}

/* The case whose sizes are there. */
static void run_product(q8_case *c, int64_t m, int64_t batches, int64_t x_count, int index)
{
    sn_q8_desc *d = &c->d;
    const int64_t n = d->conv.oc, k = d->conv.c, w_count = d->matrices;
    d->x_pitch = k;
    d->y_pitch = n;
    c->rows = batches * m;
    c->columns = n;
    c->x_rows = x_count * m;
    c->w_columns = n * w_count;
    c->results = c->rows * n;
    random_params(c);
    c->x = random_bytes(c->x_rows * k);
    c->w = random_weights(w_count * k * n);
    to_one_end(c, c->x_rows * k, w_count * k * n);
    c->sums = calloc((size_t)(c->rows * n), sizeof *c->sums);
    for (int64_t row = 0; row < c->rows; row++) {
        int64_t x_row, matrix;
        product_row(c, row, &x_row, &matrix);
        const int32_t xz = c->a.x_zero.n == 1 ? zero_of(&c->a.x_zero, 1, 0, 0)
                                              : sn_byte_at(d->x_type, c->x_zero, x_row);
        for (int64_t o = 0; o < n; o++)
            for (int64_t i = 0; i < k; i++) {
                const int64_t at = matrix * k * n + (d->turned ? o * k + i : i * n + o);
                c->sums[row * n + o] +=
                    (sn_byte_at(d->x_type, c->x, x_row * k + i) - xz) *
                    (sn_byte_at(d->w_type, c->w, at) - zero_of(&c->a.w_zero, n, matrix, o));
            }
    }
    const int64_t dims[3] = {w_count, d->turned ? n : k, d->turned ? k : n};
    run_case(c, product_row, dims, 3, d->turned, index);
}

static void check_product(int index)
{
    q8_case c = {0};
    sn_q8_desc *d = &c.d;
    const int64_t m = test_between(1, index % 3 ? 5 : 40),
                  n = test_between(1, index % 4 ? 30 : 150);
    const int64_t k = index % 17 == 0 ? 0 : test_between(1, index % 2 ? 10 : 300);
    d->product = true;
    d->turned = test_between(0, 1);
    d->batch_rank = (int)test_between(0, 2);
    int64_t batches = 1, x_count = 1, w_count = 1;
    for (int i = d->batch_rank - 1; i >= 0; i--) {
        d->batch[i] = test_between(1, 3);
        d->x_batch[i] = test_between(0, 3) ? x_count : 0;
        d->w_batch[i] = test_between(0, 1) ? w_count : 0;
        batches *= d->batch[i];
        x_count *= d->x_batch[i] ? d->batch[i] : 1;
        w_count *= d->w_batch[i] ? d->batch[i] : 1;
    }
    d->matrices = w_count;
    d->conv = (sn_conv_desc){.n = batches, .c = k, .oc = n, .groups = 1};
    for (int i = 0; i < 3; i++) {
        d->conv.kernel[i] = d->conv.stride[i] = d->conv.dilation[i] = 1;
        d->conv.in[i] = d->conv.out[i] = i == 2 ? m : 1;
    }
    run_product(&c, m, batches, x_count, index);
}

TEST(products_of_bytes_are_exact)
{
    for (int i = 0; i < 240 && !test_errors; i++)
        check_product(i);
}

/* ------------------------------------------------------------------ long sums */
static void long_product(int64_t m, int64_t n, int64_t k, int index)
{
    q8_case c = {.one_kind = true};
    c.d.product = true;
    c.d.wraps = index % 5 == 0;
    c.d.turned = test_between(0, 1);
    c.d.matrices = 1;
    c.d.conv = (sn_conv_desc){.n = 1, .c = k, .oc = n, .groups = 1};
    for (int i = 0; i < 3; i++) {
        c.d.conv.kernel[i] = c.d.conv.stride[i] = c.d.conv.dilation[i] = 1;
        c.d.conv.in[i] = c.d.conv.out[i] = i == 2 ? m : 1;
    }
    run_product(&c, m, 1, 1, index);
}

TEST(products_of_more_bytes_than_int32_sums_up_are_exact)
{
    static const int64_t lengths[] = {33025, 33026, 65536, 65537, 66312, 70001, 131073, 200000};
    for (int i = 0; i < 16 && !test_errors; i++)
        long_product(test_between(1, 3), test_between(1, 6), lengths[i % 8], i);
}

TEST(products_whose_weights_int32_does_not_sum_up_are_exact)
{
    for (int i = 1; i < 3; i++)
        long_product(1, 1, SN_Q8_SUM_PART + 70000, i);
}

/* A convolution with two columns of results. */
static void long_conv(int64_t channels, int64_t rows, int64_t columns, int64_t groups, int index)
{
    q8_case c = {.one_kind = true};
    sn_conv_desc *d = &c.d.conv;
    *d = (sn_conv_desc){.n = 1, .c = channels, .oc = groups > 2 ? groups : 4, .groups = groups};
    for (int i = 0; i < 3; i++) {
        d->kernel[i] = i == 2 ? columns : i == 1 ? rows : 1;
        d->in[i] = d->kernel[i] + (i == 2);
        d->pad[i] = i == 1 ? 1 : 0;
        d->stride[i] = d->dilation[i] = 1;
        d->out[i] = d->in[i] + 2 * d->pad[i] - d->kernel[i] + 1;
    }
    run_conv(&c, index);
}

TEST(convolutions_of_more_bytes_than_int32_sums_up_are_exact)
{
    for (int i = 0; i < 2 && !test_errors; i++) {
        long_conv(70001, 1, 1, 1, i);   /* many channels */
        long_conv(66000, 2, 1, 1, i);   /* of several taps */
        long_conv(40, 41, 43, 1, i);    /* many taps */
        long_conv(3, 150, 160, 1, i);   /* rows of taps at once */
        long_conv(60, 43, 60, 2, i);    /* groups */
        long_conv(18, 256, 257, 18, i); /* each channel by itself */
    }
}

TEST_MAIN()
