/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of double by plain loops, an output channel of an image at a time. */
#include "compute/conv.h"

typedef struct f64_call {
    const sn_conv_desc *d;
    const double *x, *w, *b, *z;
    double *y;
} f64_call;

static double f64_act(const sn_act *a, double v)
{
    float lo, hi;
    sn_act_limits(a, &lo, &hi);
    v = v < (double)lo ? (double)lo : v;
    return v > (double)hi ? (double)hi : v;
}

/* One output channel of one image. */
static void f64_plane(void *arg, size_t plane, int worker)
{
    const f64_call *c = arg;
    const sn_conv_desc *d = c->d;
    const int64_t image = (int64_t)plane / d->oc, oc = (int64_t)plane % d->oc;
    const int64_t icg = d->c / d->groups, group = oc / (d->oc / d->groups);
    const int64_t taps = d->kernel[0] * d->kernel[1] * d->kernel[2];
    const int64_t in = d->in[0] * d->in[1] * d->in[2], out = d->out[0] * d->out[1] * d->out[2];
    const double *x = c->x + (image * d->c + group * icg) * in, *w = c->w + oc * icg * taps;
    (void)worker;
    for (int64_t i = 0; i < out; i++) {
        const int64_t o[3] = {i / d->out[2] / d->out[1], i / d->out[2] % d->out[1], i % d->out[2]};
        int64_t first[3], end[3];
        double sum = c->b ? c->b[oc] : 0.0;
        for (int a = 0; a < 3; a++)
            sn_conv_taps(o[a], d->stride[a], d->pad[a], d->dilation[a], d->kernel[a], d->in[a],
                         &first[a], &end[a]);
        for (int64_t ch = 0; ch < icg; ch++)
            for (int64_t k0 = first[0]; k0 < end[0]; k0++)
                for (int64_t k1 = first[1]; k1 < end[1]; k1++)
                    for (int64_t k2 = first[2]; k2 < end[2]; k2++) {
                        const int64_t i0 = o[0] * d->stride[0] - d->pad[0] + k0 * d->dilation[0];
                        const int64_t i1 = o[1] * d->stride[1] - d->pad[1] + k1 * d->dilation[1];
                        const int64_t i2 = o[2] * d->stride[2] - d->pad[2] + k2 * d->dilation[2];
                        sum +=
                            x[ch * in + (i0 * d->in[1] + i1) * d->in[2] + i2] *
                            w[((ch * d->kernel[0] + k0) * d->kernel[1] + k1) * d->kernel[2] + k2];
                    }
        if (c->z)
            sum += c->z[(int64_t)plane * out + i];
        c->y[(int64_t)plane * out + i] = f64_act(&d->act, sum);
    }
}

void sn_conv_f64_run(const sn_conv_desc *d, const double *x, const double *w, const double *bias,
                     const double *z, double *y, sn_pool *pool)
{
    f64_call c = {d, x, w, bias, z, y};
    sn_pool_run(pool, (size_t)(d->n * d->oc), f64_plane, &c);
}
