/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of attention in double; rows of queries run side by side. */
#include "compute/attention_f64.h"

#include <math.h>
#include <string.h>

#include "compute/parallel.h"

/* The key head that query row `row` reads. */
static int64_t kv_head(const sn_attention_f64 *a, size_t row)
{
    const int64_t head = (int64_t)row / a->len, b = head / a->heads, h = head % a->heads;
    return b * a->kv_heads + h / (a->heads / a->kv_heads);
}

static void scores_range(void *arg, size_t lo, size_t hi)
{
    const sn_attention_f64 *a = arg;
    for (size_t row = lo; row < hi; row++) {
        const double *q = a->q + (int64_t)row * a->size;
        const double *k = a->k + kv_head(a, row) * a->keys * a->size;
        for (int64_t j = 0; j < a->keys; j++) {
            double sum = 0;
            for (int64_t c = 0; c < a->size; c++)
                sum += q[c] * k[j * a->size + c];
            a->scores[(int64_t)row * a->keys + j] = sum * a->scale;
        }
    }
}

static void softmax_range(void *arg, size_t lo, size_t hi)
{
    const sn_attention_f64 *a = arg;
    for (size_t row = lo; row < hi; row++) {
        double *s = a->scores + (int64_t)row * a->keys, max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < a->keys; j++)
            max = s[j] > max || isnan(s[j]) ? s[j] : max;
        for (int64_t j = 0; j < a->keys; j++)
            sum += s[j] = exp(s[j] - max);
        for (int64_t j = 0; j < a->keys; j++)
            s[j] /= sum;
    }
}

static void values_range(void *arg, size_t lo, size_t hi)
{
    const sn_attention_f64 *a = arg;
    for (size_t row = lo; row < hi; row++) {
        const double *s = a->scores + (int64_t)row * a->keys;
        const double *v = a->v + kv_head(a, row) * a->keys * a->v_size;
        double *y = a->y + (int64_t)row * a->v_size;
        memset(y, 0, sizeof *y * (size_t)a->v_size);
        for (int64_t j = 0; j < a->keys; j++)
            for (int64_t c = 0; c < a->v_size; c++)
                y[c] += s[j] * v[j * a->v_size + c];
    }
}

static void run_rows(const sn_attention_f64 *a, size_t cost, sn_range_fn fn, sn_pool *pool)
{
    sn_attention_f64 copy = *a;
    sn_parallel_range(pool, (size_t)(a->batch * a->heads * a->len), cost + 1, fn, &copy);
}

void sn_attention_f64_scores(const sn_attention_f64 *a, sn_pool *pool)
{
    run_rows(a, (size_t)(a->keys * a->size), scores_range, pool);
}

void sn_attention_f64_softmax(const sn_attention_f64 *a, sn_pool *pool)
{
    run_rows(a, 10 * (size_t)a->keys, softmax_range, pool);
}

void sn_attention_f64_values(const sn_attention_f64 *a, sn_pool *pool)
{
    run_rows(a, (size_t)(a->keys * a->v_size), values_range, pool);
}
