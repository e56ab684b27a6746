/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on quantised tensors; see quantized.h. */
#include "compute/quantized.h"

#include <math.h>

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
typedef struct binary_job {
    const sn_q8_binary *p;
    sn_q8_pair_fn *fn;
    sn_q8_binary_args args; /* of a row: what all have in common */
    uint8_t *y;
    const uint8_t *a, *b;
} binary_job;

/* Elements lo … hi-1 of the result, a row of the innermost dim, or what is left of it, at a time.
 */
static void binary_range(void *arg, size_t lo, size_t hi)
{
    const binary_job *j = arg;
    const sn_bcast *b = j->p->bcast;
    const int inner = b->rank - 1;
    const size_t row = (size_t)b->dims[inner];
    const ptrdiff_t step_a = b->stride[0][inner], step_b = b->stride[1][inner];
    for (size_t i = lo; i < hi;) {
        const size_t column = i % row, n = row - column < hi - i ? row - column : hi - i;
        ptrdiff_t at[2] = {(ptrdiff_t)column * step_a, (ptrdiff_t)column * step_b};
        size_t rest = i / row;
        for (int d = inner - 1; d >= 0; d--) {
            const ptrdiff_t k = (ptrdiff_t)(rest % (size_t)b->dims[d]);
            rest /= (size_t)b->dims[d];
            at[0] += k * b->stride[0][d];
            at[1] += k * b->stride[1][d];
        }
        sn_q8_binary_args t = j->args;
        t.a = j->a + at[0];
        t.b = j->b + at[1];
        t.y = j->y + i;
        t.n = n;
        t.mode = step_a == 0 && n > 1   ? SN_BINARY_SV
                 : step_b == 0 && n > 1 ? SN_BINARY_VS
                                        : SN_BINARY_VV;
        if (step_a == 0 && step_b == 0) /* one number, for all */
            t.n = 1;
        j->fn(&t);
        for (size_t k = t.n; k < n; k++)
            j->y[i + k] = j->y[i];
        i += n;
    }
}

void sn_q8_binary_run(uint32_t cpu_flags, const sn_q8_binary *p, void *y, const void *a,
                      const void *b, sn_pool *pool)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    /* Signed bytes are flipped to unsigned ones, 128 larger, as are their zero points. */
    const int32_t more = p->dtype == SONDE_DTYPE_I8 ? 128 : 0;
    binary_job j = {.p = p,
                    .fn = p->add ? k->q8_add : k->q8_mul,
                    .args = {.a_scale = p->a.scale,
                             .b_scale = p->b.scale,
                             .y_scale = p->y.scale,
                             .a_zero = p->a.zero + more,
                             .b_zero = p->b.zero + more,
                             .y_zero = (float)(p->y.zero + more),
                             .flip = more ? 0x80 : 0},
                    .y = y,
                    .a = a,
                    .b = b};
    sn_parallel_range(pool, p->bcast->total, 2, binary_range, &j);
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
    const uint8_t *x, *table;
    uint8_t *y;
} table_job;

static void table_range(void *arg, size_t lo, size_t hi)
{
    const table_job *j = arg;
    for (size_t i = lo; i < hi; i++)
        j->y[i] = j->table[j->x[i]];
}

void sn_q8_table_run(const uint8_t table[256], uint8_t *y, const uint8_t *x, int64_t n,
                     sn_pool *pool)
{
    table_job j = {x, table, y};
    sn_parallel_range(pool, (size_t)n, 1, table_range, &j);
}

void sn_q8_table_rows_run(const uint8_t table[256], uint8_t *y, int64_t y_row, const uint8_t *x,
                          int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        sn_q8_table_run(table, y + r * y_row, x + r * n, n, NULL);
}
