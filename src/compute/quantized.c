/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on quantised tensors; see quantized.h. */
#include "compute/quantized.h"

#include <math.h>
#include <string.h>

uint8_t sn_quantize_byte(float v, sn_qparam q, sonde_dtype t)
{
    const float lo = t == SONDE_DTYPE_U8 ? 0.0f : -128.0f;
    float r = nearbyintf(v / q.scale) + (float)q.zero;
    if (isnan(r))
        r = (float)q.zero;
    if (r < lo)
        r = lo;
    if (r > lo + 255.0f)
        r = lo + 255.0f;
    return (uint8_t)(int32_t)r;
}

static float number_at(sonde_dtype t, sn_qparam q, const void *data, int64_t i)
{
    return (float)(sn_byte_at(t, data, i) - q.zero) * q.scale;
}

/* ------------------------------------------------------------------ arrays */
void sn_q8_load(uint32_t cpu_flags, sonde_dtype t, sn_qparam q, float *dst, const void *src,
                int64_t n)
{
    sn_bytes_to_f32(cpu_flags, t, dst, src, n, q.zero);
    sn_kernels_get(cpu_flags)->f32_mul(dst, dst, &q.scale, (size_t)n, SN_BINARY_VS);
}

void sn_q8_store(uint32_t cpu_flags, sonde_dtype t, sn_qparam q, void *dst, const float *src,
                 int64_t n)
{
    const float lo = t == SONDE_DTYPE_U8 ? 0.0f : -128.0f;
    sn_kernels_get(cpu_flags)->f32_quantize(dst, src, (size_t)n, q.scale, (float)q.zero, lo,
                                            lo + 255.0f);
}

/* ------------------------------------------------------------------ two operands */
enum {
    CHUNK = 1024, /* elements that are brought together at once */
    LONG = 256    /* elements of a row that is worth a call */
};

/* The second operand of the job is the one that repeats more, so that kernels may keep it. */
typedef struct binary_job {
    const sn_q8_binary *p;
    sn_q8_pair_fn *fn;
    sn_q8_repeat_fn *repeat;
    sn_q8_binary_args args; /* what all calls have in common */
    uint8_t *y;
    const uint8_t *operand[2];
    const ptrdiff_t *stride[2];
} binary_job;

/* Where row `row` of the innermost dim begins in operand k. */
static const uint8_t *row_at(const binary_job *j, int k, size_t row)
{
    const sn_bcast *b = j->p->bcast;
    ptrdiff_t at = 0;
    for (int d = b->rank - 2; d >= 0; d--) {
        at += (ptrdiff_t)(row % (size_t)b->dims[d]) * j->stride[k][d];
        row /= (size_t)b->dims[d];
    }
    return j->operand[k] + at;
}

static void call_pair(const binary_job *j, uint8_t *y, const uint8_t *a, const uint8_t *b, size_t n,
                      int mode)
{
    sn_q8_binary_args t = j->args;
    t.a = a;
    t.b = b;
    t.y = y;
    t.n = n;
    t.mode = mode;
    j->fn(&t);
}

/* Elements lo … hi-1 of the result, a row of the innermost dim, or what is left of it, at a time.
 */
static void long_rows(void *arg, size_t lo, size_t hi)
{
    const binary_job *j = arg;
    const sn_bcast *b = j->p->bcast;
    const size_t row = (size_t)b->dims[b->rank - 1];
    const ptrdiff_t step[2] = {j->stride[0][b->rank - 1], j->stride[1][b->rank - 1]};
    for (size_t i = lo, n; i < hi; i += n) {
        const size_t column = i % row;
        n = row - column < hi - i ? row - column : hi - i;
        const uint8_t *from[2];
        for (int k = 0; k < 2; k++)
            from[k] = row_at(j, k, i / row) + (ptrdiff_t)column * step[k];
        if (step[0] == 0 && step[1] == 0) { /* one number for all */
            call_pair(j, j->y + i, from[0], from[1], 1, SN_BINARY_VV);
            memset(j->y + i, j->y[i], n);
        } else if (step[0] == 0) { /* rare: each repeats what the other has not */
            for (size_t k = 0; k < n; k++)
                call_pair(j, j->y + i + k, from[0], from[1] + k, 1, SN_BINARY_VV);
        } else {
            call_pair(j, j->y + i, from[0], from[1], n, step[1] ? SN_BINARY_VV : SN_BINARY_VS);
        }
    }
}

/* n elements of operand k from element i of the result on, where its rows are short; they lie at
 * the returned address, which is `chunk` unless they are together already. */
static const uint8_t *gather(const binary_job *j, int k, size_t i, size_t n, uint8_t *chunk)
{
    const sn_bcast *b = j->p->bcast;
    const size_t row = (size_t)b->dims[b->rank - 1];
    const ptrdiff_t step = j->stride[k][b->rank - 1];
    size_t dense = 1;
    bool together = true;
    for (int d = b->rank - 1; d >= 0; d--) {
        together = together && (j->stride[k][d] == (ptrdiff_t)dense || b->dims[d] == 1);
        dense *= (size_t)b->dims[d];
    }
    if (together)
        return j->operand[k] + i;
    for (size_t at = 0, m; at < n; at += m) {
        const size_t column = (i + at) % row;
        const uint8_t *from = row_at(j, k, (i + at) / row) + (ptrdiff_t)column * step;
        m = row - column < n - at ? row - column : n - at;
        if (step)
            memcpy(chunk + at, from, m);
        else
            memset(chunk + at, *from, m);
    }
    return chunk;
}

static void short_rows(void *arg, size_t lo, size_t hi)
{
    const binary_job *j = arg;
    uint8_t chunk[2][CHUNK];
    for (size_t i = lo; i < hi; i += CHUNK) {
        const size_t n = hi - i < CHUNK ? hi - i : CHUNK;
        call_pair(j, j->y + i, gather(j, 0, i, n, chunk[0]), gather(j, 1, i, n, chunk[1]), n,
                  SN_BINARY_VV);
    }
}

/* ---- a row that repeats: a gate for each channel where channels are last */
/* Does the second operand repeat a dense row for all of the second last dim, while the first is
 * dense in both? */
static bool repeats(const binary_job *j)
{
    const int inner = j->p->bcast->rank - 1;
    return inner > 0 && j->stride[0][inner] == 1 && j->stride[1][inner] == 1 &&
           j->stride[0][inner - 1] == j->p->bcast->dims[inner] && j->stride[1][inner - 1] == 0;
}

/* Columns from … from+n-1 of `rows` rows: the numbers of the row are found once, and several short
 * rows are one. `a` is the first operand of the job. */
static void repeat_columns(const binary_job *j, const uint8_t *a, const uint8_t *b, uint8_t *y,
                           size_t rows, size_t from, size_t n)
{
    const size_t row = (size_t)j->p->bcast->dims[j->p->bcast->rank - 1];
    const size_t fit = n == row ? CHUNK / n : 1, joined = fit < rows ? fit : rows;
    float numbers[CHUNK];
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (float)(sn_byte_at(j->p->dtype, b, (int64_t)(from + i)) - j->args.b_zero);
        if (j->p->add)
            numbers[i] = fmaf(numbers[i], j->args.b_scale, j->args.offset);
    }
    for (size_t i = 1; i < joined; i++)
        memcpy(numbers + i * n, numbers, n * sizeof *numbers);
    sn_q8_repeat t = {.a = a + from,
                      .b = numbers,
                      .y = y + from,
                      .rows = rows / joined,
                      .n = joined * n,
                      .row = (ptrdiff_t)(joined * row),
                      .a_scale = j->args.a_scale,
                      .offset = j->args.offset,
                      .a_zero = j->args.a_zero,
                      .is_signed = j->args.is_signed};
    j->repeat(&t);
    const size_t done = t.rows * joined;
    if (done == rows)
        return;
    t.a += done * row;
    t.y += done * row;
    t.rows = 1;
    t.n = (rows - done) * n;
    j->repeat(&t);
}

/* Rows lo … hi-1 of the innermost dim. */
static void repeated_rows(void *arg, size_t lo, size_t hi)
{
    const binary_job *j = arg;
    const sn_bcast *b = j->p->bcast;
    const size_t row = (size_t)b->dims[b->rank - 1], times = (size_t)b->dims[b->rank - 2];
    for (size_t r = lo, rows; r < hi; r += rows) {
        rows = times - r % times < hi - r ? times - r % times : hi - r;
        for (size_t from = 0; from < row; from += CHUNK)
            repeat_columns(j, row_at(j, 0, r), row_at(j, 1, r), j->y + r * row, rows, from,
                           row - from < CHUNK ? row - from : CHUNK);
    }
}

static int64_t elements(const sn_bcast *b, int k)
{
    int64_t n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= b->stride[k][d] ? b->dims[d] : 1;
    return n;
}

/* Scales and zero points as kernels want them. The zero points of a sum are part of its offset. */
static sn_q8_binary_args args_of(bool add, sn_qparam a, sn_qparam b, sn_qparam y)
{
    if (!add)
        return (sn_q8_binary_args){.a_scale = sn_held_scale(a.scale * b.scale / y.scale),
                                   .offset = (float)y.zero,
                                   .a_zero = a.zero,
                                   .b_zero = b.zero};
    const float a_scale = a.scale / y.scale, b_scale = b.scale / y.scale;
    const float zeros = fmaf(a_scale, (float)a.zero, b_scale * (float)b.zero);
    return (sn_q8_binary_args){
        .a_scale = a_scale, .b_scale = b_scale, .offset = (float)y.zero - zeros};
}

sn_requantize_sum sn_q8_sum_with(sonde_dtype dtype, sn_qparam v, sn_qparam z, sn_qparam y,
                                 bool second)
{
    const sn_q8_binary_args t = args_of(true, second ? z : v, second ? v : z, y);
    return (sn_requantize_sum){.a_scale = t.a_scale,
                               .b_scale = t.b_scale,
                               .offset = t.offset,
                               .second = second,
                               .is_signed = dtype == SONDE_DTYPE_I8};
}

void sn_q8_binary_run(uint32_t cpu_flags, const sn_q8_binary *p, void *y, const void *a,
                      const void *b, sn_pool *pool)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    const int first = elements(p->bcast, 0) < elements(p->bcast, 1);
    const void *const operand[2] = {a, b};
    const sn_qparam q[2] = {p->a, p->b};
    binary_job j = {.p = p,
                    .fn = p->add ? k->q8_add : k->q8_mul,
                    .repeat = p->add ? k->q8_add_repeat : k->q8_mul_repeat,
                    .args = args_of(p->add, q[first], q[!first], p->y),
                    .y = y,
                    .operand = {operand[first], operand[!first]},
                    .stride = {p->bcast->stride[first], p->bcast->stride[!first]}};
    j.args.is_signed = p->dtype == SONDE_DTYPE_I8;
    const size_t total = p->bcast->total, row = (size_t)p->bcast->dims[p->bcast->rank - 1];
    if (total && repeats(&j))
        sn_parallel_range(pool, total / row, 2 * row, repeated_rows, &j);
    else if (p->bcast->rank == 1 || row >= LONG)
        sn_parallel_range(pool, total, 2, long_rows, &j);
    else
        sn_parallel_range(pool, total, 2, short_rows, &j);
}

/* ------------------------------------------------------------------ one operand */
void sn_q8_table(uint8_t table[256], sn_q8_function fn, float alpha, sonde_dtype t, sn_qparam x,
                 sn_qparam y)
{
    for (int i = 0; i < 256; i++) {
        const uint8_t code = (uint8_t)i;
        float v = number_at(t, x, &code, 0);
        if (fn == SN_Q8_SIGMOID)
            v = 1.0f / (1.0f + expf(-v));
        else if (fn == SN_Q8_LEAKY_RELU)
            v = v < 0.0f ? v * alpha : v;
        table[i] = sn_quantize_byte(v, y, t);
    }
}

typedef struct table_job {
    sn_bytes_table_fn *fn;
    const uint8_t *x, *table;
    uint8_t *y;
} table_job;

static void table_range(void *arg, size_t lo, size_t hi)
{
    const table_job *j = arg;
    j->fn(j->y + lo, j->x + lo, hi - lo, j->table);
}

void sn_q8_table_run(uint32_t cpu_flags, const uint8_t table[256], uint8_t *y, const uint8_t *x,
                     int64_t n, sn_pool *pool)
{
    table_job j = {sn_kernels_get(cpu_flags)->u8_table, x, table, y};
    sn_parallel_range(pool, (size_t)n, 1, table_range, &j);
}

typedef struct rows_job {
    uint32_t cpu_flags;
    const uint8_t *x, *table; /* the table NULL: bytes stay as they are */
    uint8_t *y;
    int64_t y_row, n;
} rows_job;

static void rows_range(void *arg, size_t lo, size_t hi)
{
    const rows_job *j = arg;
    for (size_t r = lo; r < hi; r++) {
        const uint8_t *x = j->x + (int64_t)r * j->n;
        uint8_t *y = j->y + (int64_t)r * j->y_row;
        if (j->table)
            sn_q8_table_run(j->cpu_flags, j->table, y, x, j->n, NULL);
        else
            memcpy(y, x, (size_t)j->n);
    }
}

void sn_q8_table_rows_run(uint32_t cpu_flags, const uint8_t table[256], uint8_t *y, int64_t y_row,
                          const uint8_t *x, int64_t rows, int64_t n, sn_pool *pool)
{
    bool same = true;
    for (int i = 0; i < 256; i++)
        same = same && table[i] == i;
    rows_job j = {cpu_flags, x, same ? NULL : table, y, y_row, n};
    sn_parallel_range(pool, (size_t)rows, (size_t)n, rows_range, &j);
}
