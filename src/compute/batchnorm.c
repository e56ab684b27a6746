/* SPDX-License-Identifier: Apache-2.0 */
/* Plain images go channel by channel, with scale and shift made in double; blocked ones by blocks
 * of channels through the kernel of depthwise convolutions. */
#include "compute/batchnorm.h"

#include <math.h>

#include "compute/small_floats.h"
#include "kernels/kernels.h"

typedef struct job {
    const sn_batchnorm *b;
    const sn_batchnorm_data *d;
    const sn_kernels *kernels;
} job;

static double load(sn_elems e, int64_t i)
{
    float f;
    if (e.dtype == SONDE_DTYPE_F64)
        return ((const double *)e.data)[i];
    if (e.dtype == SONDE_DTYPE_F32)
        return (double)((const float *)e.data)[i];
    sn_load_f32(0, e.dtype, &f, (const uint8_t *)e.data + (size_t)i * sn_dtype_bytes(e.dtype), 1);
    return (double)f;
}

static void store(sn_elems e, int64_t i, double v)
{
    const float f = (float)v;
    if (e.dtype == SONDE_DTYPE_F64)
        ((double *)e.data)[i] = v;
    else if (e.dtype == SONDE_DTYPE_F32)
        ((float *)e.data)[i] = f;
    else
        sn_store_f32(0, e.dtype, (uint8_t *)e.data + (size_t)i * sn_dtype_bytes(e.dtype), &f, 1,
                     (sn_rounding){0});
}

static void store_wanted(sn_elems e, int64_t i, double v)
{
    if (e.data)
        store(e, i, v);
}

/* ------------------------------------------------------------------ plain */
/* Mean and variance of channel c over the batch (population variance). */
static void measure(const sn_batchnorm *b, sn_elems x, int64_t c, double *mean, double *var)
{
    const double count = (double)(b->images * b->pixels);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < b->images; i++)
        for (int64_t k = 0; k < b->pixels; k++)
            sum += load(x, (i * b->channels + c) * b->pixels + k);
    *mean = sum / count;
    for (int64_t i = 0; i < b->images; i++)
        for (int64_t k = 0; k < b->pixels; k++) {
            const double d = load(x, (i * b->channels + c) * b->pixels + k) - *mean;
            squares += d * d;
        }
    *var = squares / count;
}

static void channel(void *arg, size_t index, int worker)
{
    const job *j = arg;
    const sn_batchnorm *b = j->b;
    const sn_batchnorm_data *d = j->d;
    const sn_elems x = d->x, y = d->y;
    const int64_t c = (int64_t)index;
    double mean = load(d->mean, c), var = load(d->variance, c);
    (void)worker;
    if (b->training) {
        const double m = (double)b->momentum, old_mean = mean, old_var = var;
        measure(b, x, c, &mean, &var);
        store_wanted(d->running_mean, c, old_mean * m + mean * (1 - m));
        store_wanted(d->running_variance, c, old_var * m + var * (1 - m));
        store_wanted(d->batch_mean, c, mean);
        store_wanted(d->batch_variance, c, var);
    }
    const double scale = load(d->scale, c) / sqrt(var + (double)b->epsilon);
    const double shift = load(d->bias, c) - mean * scale;
    for (int64_t i = 0; i < b->images; i++) {
        const int64_t at = (i * b->channels + c) * b->pixels;
        if (x.dtype == SONDE_DTYPE_F32) {
            const float factor = (float)scale, offset = (float)shift;
            const float *from = (const float *)x.data + at;
            float *to = (float *)y.data + at;
            for (int64_t k = 0; k < b->pixels; k++)
                to[k] = from[k] * factor + offset;
            continue;
        }
        for (int64_t k = 0; k < b->pixels; k++)
            store(y, at + k, load(x, at + k) * scale + shift);
    }
}

/* ------------------------------------------------------------------ blocked */
/* y = x * scale + shift for `pixels` vectors of `block` lanes. */
static void scale_lanes(const sn_kernels *k, float *y, const float *x, const float *scale,
                        const float *shift, int64_t pixels, unsigned block)
{
    const sn_f32_depthwise t = {.x = x, /* a depthwise convolution with a window of one pixel */
                                .w = scale,
                                .bias = shift,
                                .y = y,
                                .to = 1,
                                .cols = pixels,
                                .in = {1, pixels},
                                .kernel = {1, 1},
                                .stride = {1, 1},
                                .dilation = {1, 1},
                                .block = block,
                                .lo = -INFINITY,
                                .hi = INFINITY};
    k->f32_depthwise(&t);
}

/* Scale and shift of `lanes` channels from c on. A block of an image may be few pixels: nothing of
 * this may take long. */
static void block_factors(const sn_batchnorm *b, const sn_batchnorm_data *d, int64_t c,
                          int64_t lanes, float *scale, float *shift)
{
    const sn_elems in[4] = {d->scale, d->variance, d->bias, d->mean};
    double v[4][16];
    for (int i = 0; i < 4; i++) {
        const float *f32 = (const float *)in[i].data + c;
        const bool direct = in[i].dtype == SONDE_DTYPE_F32;
        for (int64_t l = 0; l < lanes; l++)
            v[i][l] = direct ? (double)f32[l] : load(in[i], c + l);
    }
    for (int64_t l = 0; l < lanes; l++) {
        const double a = v[0][l] / sqrt(v[1][l] + (double)b->epsilon);
        scale[l] = (float)a;
        shift[l] = (float)(v[2][l] - v[3][l] * a);
    }
}

/* One channel block of one image. */
static void channel_block(void *arg, size_t index, int worker)
{
    const job *j = arg;
    const sn_batchnorm *b = j->b;
    const sn_batchnorm_data *d = j->d;
    const int64_t blocks = (b->channels + b->block - 1) / b->block, cb = (int64_t)index % blocks;
    const float *x = (const float *)d->x.data + (int64_t)index * b->pixels * b->block;
    float *y = (float *)d->y.data + (int64_t)index * b->pixels * b->block;
    float scale[16] = {0}, shift[16] = {0}; /* zero in the padding lanes */
    (void)worker;
    const int64_t c = cb * b->block, left = b->channels - c;
    block_factors(b, d, c, left < b->block ? left : b->block, scale, shift);
    scale_lanes(j->kernels, y, x, scale, shift, b->pixels, (unsigned)b->block);
}

void sn_batchnorm_run(const sn_batchnorm *b, const sn_batchnorm_data *d, sn_pool *pool)
{
    job j = {b, d, sn_kernels_get(b->cpu_flags)};
    if (b->block)
        sn_pool_run(pool, (size_t)(b->images * ((b->channels + b->block - 1) / b->block)),
                    channel_block, &j);
    else
        sn_pool_run(pool, (size_t)b->channels, channel, &j);
}
