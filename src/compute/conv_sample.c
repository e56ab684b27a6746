/* SPDX-License-Identifier: Apache-2.0 */
/* A 1×1 convolution with strides reads some pixels of some rows. Where a pixel's block is half a
 * cache line, the other half comes along in vain, once for every few output channels; and short
 * rows are bad tiles. A copy is read like any image that lies together: as one row. */
#include "compute/conv_sample.h"

#include <string.h>

#include "compute/split.h"

enum {
    HALF_LINE = 8,   /* floats */
    LEAST_BLOCKS = 6 /* of outputs that repay the copy */
};

static bool pays(const sn_conv_plan *p)
{
    const sn_conv_desc *d = &p->d;
    bool strides = false;
    for (int i = 0; i < 3; i++) {
        strides = strides || d->stride[i] > 1;
        if (d->kernel[i] != 1 || d->pad[i] != 0 || d->out[i] < 1 ||
            (d->out[i] - 1) * d->stride[i] >= d->in[i])
            return false;
    }
    return strides && d->in_block == HALF_LINE && p->block == HALF_LINE &&
           p->b.out_blocks >= LEAST_BLOCKS &&
           (d->out[0] > 1 || d->in[0] == 1); /* a volume stays one */
}

bool sn_conv_sample_plan(sn_conv_plan *p)
{
    sn_conv_desc *d = &p->d;
    if (!pays(p))
        return true;
    const int64_t planes = sn_count(d->n, sn_ceil_div(d->c, HALF_LINE), d->out[0], 1);
    const int64_t floats = sn_count(planes, d->out[1], d->out[2], HALF_LINE);
    if (floats < 0)
        return false;
    p->sampled = true;
    p->samples = sn_carve(&p->workspace, floats, sizeof(float));
    for (int i = 0; i < 3; i++) {
        p->sampled_in[i] = d->in[i];
        p->sampled_step[i] = d->stride[i];
        d->in[i] = d->out[i];
        d->stride[i] = 1;
    }
    return true;
}

typedef struct sample_call {
    const sn_conv_plan *p;
    const float *x;
    float *y;
    int64_t rows;
} sample_call;

enum { TASK_ROWS = 64 };

static void sample_task(void *arg, size_t task, int worker)
{
    const sample_call *c = arg;
    const sn_conv_plan *p = c->p;
    const int64_t *in = p->sampled_in, *step = p->sampled_step, *out = p->d.out;
    const int64_t from = (int64_t)task * TASK_ROWS, to = sn_min(from + TASK_ROWS, c->rows);
    (void)worker;
    for (int64_t i = from; i < to; i++) {
        const int64_t row = i % out[1], plane = i / out[1] % out[0], volume = i / out[1] / out[0];
        const int64_t at = (volume * in[0] + plane * step[0]) * in[1] + row * step[1];
        const float *x = c->x + at * in[2] * HALF_LINE;
        float *y = c->y + i * out[2] * HALF_LINE;
        for (int64_t j = 0; j < out[2]; j++, x += step[2] * HALF_LINE, y += HALF_LINE)
            memcpy(y, x, HALF_LINE * sizeof *y);
    }
}

const float *sn_conv_sample(const sn_conv_call *c, sn_pool *pool)
{
    const sn_conv_desc *d = &c->p->d;
    sample_call call = {.p = c->p,
                        .x = c->x,
                        .y = sn_piece_at(c->workspace, c->p->samples),
                        .rows = d->n * sn_ceil_div(d->c, HALF_LINE) * d->out[0] * d->out[1]};
    sn_pool_run(pool, (size_t)sn_ceil_div(call.rows, TASK_ROWS), sample_task, &call);
    return call.y;
}
