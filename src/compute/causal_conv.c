/* SPDX-License-Identifier: Apache-2.0 */
/* Causal convolution: channels run side by side, each in a row of its past and its input. */
#include "compute/causal_conv.h"

#include <math.h>
#include <string.h>

#include "compute/parallel.h"
#include "compute/small_floats.h"
#include "compute/split.h"

int64_t sn_causal_conv_scratch(const sn_causal_conv_desc *d)
{
    int64_t row;
    return __builtin_add_overflow(d->len, d->taps, &row) ? -1
                                                         : sn_count(row, d->batch, d->channels, 1);
}

typedef struct causal_job {
    const sn_causal_conv_desc *d;
    const sn_causal_conv_args *a;
} causal_job;

static void causal_range(void *arg, size_t lo, size_t hi)
{
    const causal_job *j = arg;
    const sn_causal_conv_desc *d = j->d;
    const sn_causal_conv_args *a = j->a;
    const int64_t before = d->taps - 1;
    const size_t elem = sn_dtype_bytes(a->dtype);
    for (size_t i = lo; i < hi; i++) {
        const int64_t at = (int64_t)i, c = at % d->channels;
        const float *w = a->w + c * d->taps;
        float *row = a->rows + at * (d->len + d->taps);
        if (a->past)
            memcpy(row, a->past + at * before, sizeof(float) * (size_t)before);
        else
            memset(row, 0, sizeof(float) * (size_t)before);
        memcpy(row + before, a->x + at * d->len, sizeof(float) * (size_t)d->len);
        if (a->present)
            sn_store_f32(0, a->dtype, (uint8_t *)a->present + i * (size_t)before * elem,
                         row + d->len, (size_t)before, (sn_rounding){0});
        /* Sum t reads the row from t on: it may overwrite it there. */
        for (int64_t t = 0; t < d->len; t++) {
            float sum = a->bias ? a->bias[c] : 0.0f;
            for (int64_t n = 0; n < d->taps; n++)
                sum += row[t + n] * w[n];
            row[t] = d->silu ? sum / (1.0f + expf(-sum)) : sum;
        }
        sn_store_f32(0, a->dtype, (uint8_t *)a->y + i * (size_t)d->len * elem, row, (size_t)d->len,
                     (sn_rounding){0});
    }
}

void sn_causal_conv_run(const sn_causal_conv_desc *d, const sn_causal_conv_args *a, sn_pool *pool)
{
    causal_job j = {d, a};
    sn_parallel_range(pool, (size_t)(d->batch * d->channels), (size_t)(d->len * d->taps) + 1,
                      causal_range, &j);
}
