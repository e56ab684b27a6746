/* SPDX-License-Identifier: Apache-2.0 */
/* Linear attention: key heads run side by side, the tokens of one in order. */
#include "compute/linear_attention.h"

#include <math.h>
#include <string.h>

#include "compute/parallel.h"

typedef struct linear_job {
    const sn_linear_attention_desc *d;
    const sn_linear_attention_args *a;
} linear_job;

/* One token of one head: its state is [dk][dv], `v` is scratch that holds the token's value. */
static void advance(const sn_linear_attention_desc *d, float *state, const float *key, float *v,
                    const float *decay, float beta)
{
    const int64_t dk = d->dk, dv = d->dv;
    for (int64_t i = 0; decay && i < dk; i++) {
        const float g = expf(decay[d->decay_size == 1 ? 0 : i]);
        for (int64_t m = 0; m < dv; m++)
            state[i * dv + m] *= g;
    }
    if (d->delta) {
        for (int64_t i = 0; i < dk; i++)
            for (int64_t m = 0; m < dv; m++)
                v[m] -= state[i * dv + m] * key[i];
        for (int64_t m = 0; m < dv; m++)
            v[m] *= beta;
    }
    for (int64_t i = 0; i < dk; i++)
        for (int64_t m = 0; m < dv; m++)
            state[i * dv + m] += key[i] * v[m];
}

static void linear_range(void *arg, size_t lo, size_t hi)
{
    const linear_job *j = arg;
    const sn_linear_attention_desc *d = j->d;
    const sn_linear_attention_args *a = j->a;
    const int64_t kv = d->kv_heads, group = d->q_heads / kv, dk = d->dk, dv = d->dv;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / kv, h = (int64_t)i % kv;
        float *state = a->state + (int64_t)i * dk * dv, *v = a->values + (int64_t)i * dv;
        for (int64_t t = 0; t < d->len; t++) {
            const int64_t at = b * d->len + t;
            memcpy(v, a->v + (at * kv + h) * dv, sizeof(float) * (size_t)dv);
            advance(d, state, a->k + (at * kv + h) * dk, v,
                    a->decay ? a->decay + (at * kv + h) * d->decay_size : NULL,
                    a->beta ? a->beta[at * d->beta_heads + (d->beta_heads > 1 ? h : 0)] : 1.0f);
            for (int64_t g = 0; g < group; g++) {
                const float *q = a->q + (at * kv * group + h * group + g) * dk;
                float *y = a->out + (at * kv * group + h * group + g) * dv;
                memset(y, 0, sizeof(float) * (size_t)dv);
                for (int64_t c = 0; c < dk; c++)
                    for (int64_t m = 0; m < dv; m++)
                        y[m] += q[c] * state[c * dv + m];
                for (int64_t m = 0; m < dv; m++)
                    y[m] *= d->scale;
            }
        }
    }
}

void sn_linear_attention_run(const sn_linear_attention_desc *d, const sn_linear_attention_args *a,
                             sn_pool *pool)
{
    linear_job j = {d, a};
    const size_t heads = (size_t)(d->batch * d->kv_heads), n = heads * (size_t)(d->dk * d->dv);
    if (a->past)
        memcpy(a->state, a->past, n * sizeof(float));
    else
        memset(a->state, 0, n * sizeof(float));
    sn_parallel_range(pool, heads, (size_t)(d->len * d->dk * d->dv) + 1, linear_range, &j);
}
