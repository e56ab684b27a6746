/* SPDX-License-Identifier: Apache-2.0 */
#include "compute/softmax_bytes.h"

#include <math.h>

#define MOST 8388607.0 /* 2^23 - 1 */

/* Of rows that are not longer, exponentials have 23 bits. */
enum { SHORT = 512 };

typedef struct job {
    const sn_softmax_bytes *p;
    const uint8_t *x;
    uint8_t *y;
    uint32_t exps[256]; /* by how far a number lies below the largest, from 255 down to 0 */
    double whole[256];  /* the same as integers that are larger */
    bool as_nodes;
    sn_qparam y_param;
    sn_bytes_table_fn *table;
    double steps; /* of 1 in the result */
    int32_t zero;
    uint8_t flip; /* signed bytes are taken as unsigned ones, 128 larger */
} job;

static void fill_exps(job *j, float x_scale)
{
    const double most = fmin(4294967295.0 / (double)j->p->n, MOST);
    /* Any sum of n of these is an integer below 2^53, which is exact in any order. */
    const double whole = fmin(0x1p53 / (double)j->p->n, 0x1p40);
    for (int i = 0; i < 256 && j->as_nodes; i++)
        j->whole[i] = floor(whole * exp((double)(i - 255) * (double)x_scale));
    for (int i = 0; i < 256 && !j->as_nodes; i++) {
        const double e = rint(most * exp((double)(i - 255) * (double)x_scale));
        j->exps[i] = e > 0.0 ? (uint32_t)fmin(e, most) : 0;
    }
}

/* What a sum makes of an exponential. Multiplying by 1 / sum instead of dividing by it is exact
 * enough: quotients are at most 2^16, so the error is below 2^-34, and one that is not an integer
 * lies at least 2^-32 below the next. */
typedef struct share {
    double steps, half, inverse;
    int32_t zero;
} share;

static uint8_t byte_of(const share *s, uint32_t e)
{
    const double q = ((double)e * s->steps + s->half) * s->inverse + 0x1p-33;
    const int32_t v = (int32_t)q + s->zero;
    return (uint8_t)(v < 255 ? v : 255);
}

static uint8_t largest_of(const job *j, const uint8_t *x)
{
    uint8_t largest = 0;
    for (int64_t i = 0; i < j->p->n; i++) {
        const uint8_t v = x[i * j->p->inner] ^ j->flip;
        largest = v > largest ? v : largest;
    }
    return largest;
}

/* As the nodes round: the quotient is f32, and QuantizeLinear divides it by the scale. */
static void row_as_nodes(const job *j, const uint8_t *x, uint8_t *y)
{
    const int64_t n = j->p->n, step = j->p->inner;
    const double *whole = j->whole + 255 - largest_of(j, x);
    double sum = 0;
    uint8_t table[256];
    bool known[256] = {false};
    for (int64_t i = 0; i < n; i++)
        sum += whole[x[i * step] ^ j->flip];
    for (int64_t i = 0; i < n; i++) {
        const uint8_t v = x[i * step] ^ j->flip;
        if (!known[v])
            table[v] = sn_quantize_byte((float)(whole[v] / sum), j->y_param, j->p->dtype);
        known[v] = true;
        y[i * step] = table[v];
    }
}

static void one_row(const job *j, const uint8_t *x, uint8_t *y)
{
    enum { VALUES = 256 };
    const int64_t n = j->p->n, step = j->p->inner;
    const uint8_t flip = j->flip, largest = largest_of(j, x);
    uint64_t sum = 0;
    const uint32_t *exps = j->exps + 255 - largest;
    for (int64_t i = 0; i < n; i++)
        sum += exps[x[i * step] ^ flip];
    const share s = {j->steps, (double)(sum / 2), 1.0 / (sum ? (double)sum : 1.0), j->zero};
    if (step > 1 || n < VALUES) {
        for (int64_t i = 0; i < n; i++)
            y[i * step] = byte_of(&s, exps[x[i * step] ^ flip]) ^ flip;
        return;
    }
    uint8_t table[VALUES] = {0};
    for (int v = 0; v <= largest; v++)
        table[(uint8_t)v ^ flip] = byte_of(&s, exps[v]) ^ flip;
    j->table(y, x, (size_t)n, table);
}

static void rows(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const int64_t inner = j->p->inner;
    for (size_t r = lo; r < hi; r++) {
        const int64_t at = (int64_t)r / inner * inner * j->p->n + (int64_t)r % inner;
        (j->as_nodes ? row_as_nodes : one_row)(j, j->x + at, j->y + at);
    }
}

void sn_softmax_bytes_run(uint32_t cpu_flags, const sn_softmax_bytes *p, sn_qparam qx, sn_qparam qy,
                          const void *x, void *y, sn_pool *pool)
{
    const int32_t more = p->dtype == SONDE_DTYPE_I8 ? 128 : 0;
    const double steps = (double)floorf(1.0f / qy.scale);
    const bool same =
        steps * (double)qy.scale > 1 - 0x1p-23 && steps * (double)qy.scale < 1 + 0x1p-23;
    job j = {.p = p,
             .x = x,
             .y = y,
             .table = sn_kernels_get(cpu_flags)->u8_table,
             .steps = steps > 0.0 ? fmin(steps, SN_SOFTMAX_BYTES_STEPS) : 0.0,
             .as_nodes = p->as_nodes && (!same || p->n > SHORT),
             .y_param = qy,
             .zero = qy.zero + more,
             .flip = more ? 0x80 : 0};
    if (p->n < 1)
        return;
    fill_exps(&j, qx.scale);
    sn_parallel_range(pool, (size_t)(p->outer * p->inner), 8 * (size_t)p->n, rows, &j);
}
