/* SPDX-License-Identifier: Apache-2.0 */
/* A naive convolution in double precision, and what compares a driver with it. */
#ifndef SONDE_TESTS_COMPUTE_CONV_NAIVE_H
#define SONDE_TESTS_COMPUTE_CONV_NAIVE_H

#include <math.h>

#include "compute/conv_images.h"
#include "compute/conv_rows.h"
#include "compute/conv_tiles.h"
#include "compute/packs.h"
#include "compute/variant.h"
#include "levels.h"
#include "packed.h"

static inline double activation(const sn_act *a, double v)
{
    double s = 1.0 / (1.0 + exp(-v));
    switch (a->kind) {
    case SN_ACT_RELU: /* a NaN stays */
        return v < 0 ? 0 : v;
    case SN_ACT_CLIP:
        return v < (double)a->params[0]   ? (double)a->params[0]
               : v > (double)a->params[1] ? (double)a->params[1]
                                          : v;
    case SN_ACT_SIGMOID:
        return s;
    case SN_ACT_SILU:
        return v * s;
    default:
        return v;
    }
}

/* One output element and the sum of absolute products, the scale of its rounding error. */
static inline double naive(const sn_conv_desc *d, const float *x, const float *w, const float *bias,
                           const float *z, int64_t n, int64_t oc, const int64_t o[3], double *scale)
{
    const int64_t icg = d->c / d->groups, group = oc / (d->oc / d->groups);
    const int64_t plane = d->in[0] * d->in[1] * d->in[2];
    double sum = bias ? (double)bias[oc] : 0;
    *scale = fabs(sum);
    for (int64_t c = 0; c < icg; c++)
        for (int64_t k0 = 0; k0 < d->kernel[0]; k0++)
            for (int64_t k1 = 0; k1 < d->kernel[1]; k1++)
                for (int64_t k2 = 0; k2 < d->kernel[2]; k2++) {
                    const int64_t i0 = o[0] * d->stride[0] - d->pad[0] + k0 * d->dilation[0];
                    const int64_t i1 = o[1] * d->stride[1] - d->pad[1] + k1 * d->dilation[1];
                    const int64_t i2 = o[2] * d->stride[2] - d->pad[2] + k2 * d->dilation[2];
                    if (i0 < 0 || i0 >= d->in[0] || i1 < 0 || i1 >= d->in[1] || i2 < 0 ||
                        i2 >= d->in[2])
                        continue;
                    double a = (double)x[(n * d->c + group * icg + c) * plane +
                                         (i0 * d->in[1] + i1) * d->in[2] + i2];
                    double b =
                        (double)w[(((oc * icg + c) * d->kernel[0] + k0) * d->kernel[1] + k1) *
                                      d->kernel[2] +
                                  k2];
                    sum += a * b;
                    *scale += fabs(a * b);
                }
    if (z) {
        double v = (double)z[((n * d->oc + oc) * d->out[0] + o[0]) * d->out[1] * d->out[2] +
                             o[1] * d->out[2] + o[2]];
        sum += v;
        *scale += fabs(v);
    }
    return activation(&d->act, sum);
}

static inline bool set_out(sn_conv_desc *d, const int64_t pad_end[3])
{
    for (int i = 0; i < 3; i++) {
        int64_t room = d->in[i] + d->pad[i] + pad_end[i] - (d->kernel[i] - 1) * d->dilation[i] - 1;
        if (room < 0)
            return false;
        d->out[i] = room / d->stride[i] + 1;
    }
    return true;
}

static inline const char *describe(const sn_conv_desc *d, const char *cpu)
{
    static char text[400];
    snprintf(text, sizeof text,
             "%s: n %d c %d oc %d g %d in %dx%dx%d out %dx%dx%d k %dx%dx%d s %d,%d,%d d %d,%d,%d "
             "pad %d,%d,%d blocks %u>%u act %d res %d packed %d",
             cpu, (int)d->n, (int)d->c, (int)d->oc, (int)d->groups, (int)d->in[0], (int)d->in[1],
             (int)d->in[2], (int)d->out[0], (int)d->out[1], (int)d->out[2], (int)d->kernel[0],
             (int)d->kernel[1], (int)d->kernel[2], (int)d->stride[0], (int)d->stride[1],
             (int)d->stride[2], (int)d->dilation[0], (int)d->dilation[1], (int)d->dilation[2],
             (int)d->pad[0], (int)d->pad[1], (int)d->pad[2], d->in_block, d->out_block,
             (int)d->act.kind, d->residual, d->packed);
    return text;
}

static inline void round_to(sonde_dtype type, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        sn_store_f32(0, type, &h, x + i, 1, (sn_rounding){0});
        sn_load_f32(0, type, x + i, &h, 1);
    }
}

static inline uint16_t *to_halves(sonde_dtype type, const float *x, int64_t n)
{
    uint16_t *y = malloc((size_t)n * sizeof *y + 1);
    sn_store_f32(0, type ? type : SONDE_DTYPE_BF16, y, x, (size_t)n, (sn_rounding){0});
    return y;
}

/* Images that the plan has in 16 bits are put there and taken from there. */
static inline void run_stored(const sn_conv_plan *p, const float *x, int64_t nx, const void *w,
                              const float *bias, const float *z, float *y, int64_t ny, void *space,
                              sn_pool *pool)
{
    const sn_conv_desc *d = &p->d;
    uint16_t *xh = to_halves(d->x_half, x, nx), *zh = z ? to_halves(d->z_half, z, ny) : NULL;
    uint16_t *yh = malloc((size_t)ny * sizeof *yh + 1);
    const void *xs = d->x_half ? (const void *)xh : x, *zs = z && d->z_half ? (const void *)zh : z;
    sn_conv_run(p, xs, w, bias, zs, d->y_half ? (float *)(void *)yh : y, space, pool);
    if (z && d->y_half == d->z_half) { /* y may be z */
        const size_t bytes = (size_t)ny * (d->y_half ? sizeof *yh : sizeof *y);
        float *both = malloc(bytes + 1);
        memcpy(both, zs, bytes);
        sn_conv_run(p, xs, w, bias, both, both, space, pool);
        CHECK_MSG(memcmp(both, d->y_half ? (const void *)yh : y, bytes) == 0, "%s", p->name);
        free(both);
    }
    if (d->y_half)
        sn_load_f32(0, d->y_half, y, yh, (size_t)ny);
    free(xh), free(zh), free(yh);
}

/* Some elements of x become infinite or NaN. */
static inline void spoil(float *x, int64_t n, int odd)
{
    static const float kinds[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < odd && n > 0; i++)
        x[test_rand() % (uint64_t)n] = kinds[test_rand() % 3];
}

/* Both NaN, or the same infinity. */
static inline bool same_kind(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

/* Runs d on one level and compares every element; padding lanes must be zero. `odd` elements of x
 * are not finite: what they do not belong to is compared as always. */
static inline void check_with(const sn_conv_desc *d, const level *lv, bool with_bias, int threads,
                              sn_pool *pool, int odd)
{
    sonde_error err = {0};
    const int64_t in = d->in[0] * d->in[1] * d->in[2], out = d->out[0] * d->out[1] * d->out[2];
    const int64_t taps = d->kernel[0] * d->kernel[1] * d->kernel[2];
    float *x = random_floats((size_t)(d->n * d->c * in));
    spoil(x, d->n * d->c * in, odd);
    float *w = random_floats((size_t)(d->oc * (d->c / d->groups) * taps));
    float *bias = with_bias ? random_floats((size_t)d->oc) : NULL;
    float *z = d->residual ? random_floats((size_t)(d->n * d->oc * out)) : NULL;
    const int64_t ob = d->out_block ? d->out_block : 1;
    const int64_t out_all = d->n * ((d->oc + ob - 1) / ob * ob) * out;
    float *y = random_floats((size_t)out_all);
    if (d->z_half && z)
        round_to(d->z_half, z, d->n * d->oc * out);
    float *zb = z && d->out_block ? to_blocked(z, d->n, d->oc, out, d->out_block) : z;
    float *wp = w;
    const bool in_bf16 = d->tiles && d->w_dtype == SONDE_DTYPE_BF16;
    const bool in_f16 = d->tiles && d->f16 && sn_pack_has_f16_tiles(lv->flags);
    if (in_bf16 || in_f16 || d->x_half) /* as the driver rounds it */
        for (int i = 0; i < 2; i++)     /* a plain image of f16, for tiles of bf16 */
            round_to(i == 0 && d->x_half ? d->x_half
                     : in_f16            ? SONDE_DTYPE_F16
                     : in_bf16           ? SONDE_DTYPE_BF16
                                         : d->x_half,
                     x, d->n * d->c * in);
    float *xb = d->in_block ? to_blocked(x, d->n, d->c, in, d->in_block) : x;
    const int64_t wd[4] = {d->oc, d->c / d->groups, d->kernel[1], d->kernel[2]};
    const int64_t wd5[5] = {d->oc, d->c / d->groups, d->kernel[0], d->kernel[1], d->kernel[2]};
    if (d->tiles && d->out_block == 0) {
        wp = packed_rounded(sn_conv_rows_pack_id(d->w_dtype, wd5, 5, d->groups, lv->flags), w,
                            (size_t)(d->oc * wd[1] * taps), wd5, 5, d->groups, lv->flags);
        CHECK(wp != NULL);
    } else if (d->tiles) {
        wp = packed_rounded(
            sn_conv_tiles_pack_id(d->w_dtype, wd, 4, d->groups, d->in_block, d->out_block,
                                  lv->flags),
            w, (size_t)(d->oc * wd[1] * taps), wd, 4,
            sn_conv_tiles_pack_arg(d->groups, d->in_block == 0, d->kernel[2], d->dilation[2]),
            lv->flags);
        CHECK(wp != NULL);
    } else if (d->packed) {
        const bool deep = d->in[0] > 1 || d->kernel[0] > 1;
        const int64_t *dims = deep ? wd5 : wd;
        wp = packed_rounded(
            sn_conv_pack_id(d->w_dtype ? d->w_dtype : SONDE_DTYPE_F32, dims, deep ? 5 : 4,
                            d->groups, d->in_block, d->out_block, lv->flags),
            w, (size_t)(d->oc * wd[1] * taps), dims, deep ? 5 : 4, d->groups, lv->flags);
        CHECK(wp != NULL);
    }
    sn_conv_plan p;
    CHECK_OK(sn_conv_plan_make(&p, d, lv->flags, 1 << 16, threads, &err));
    void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
    memset(space, 0xff, p.workspace.bytes); /* NaN: what was there before counts for nothing */
    const int64_t cb = d->in_block ? d->in_block : 1;
    run_stored(&p, xb, d->n * ((d->c + cb - 1) / cb * cb) * in, wp, bias, zb, y, out_all, space,
               pool);
    int bad = 0;
    /* Winograd mixes the pixels of a patch: what counts is the largest sum there is. */
    double top = 0;
    for (int64_t i = 0; d->winograd && i < d->n * d->oc * out; i++) {
        const int64_t pixel = i % out, row = pixel / d->out[2];
        const int64_t o[3] = {row / d->out[1], row % d->out[1], pixel % d->out[2]};
        double scale;
        naive(d, x, w, bias, z, i / out / d->oc, i / out % d->oc, o, &scale);
        top = isfinite(scale) ? fmax(top, scale) : top;
    }
    /* Where f16 is split: 16 bits of each number, but for the product of the last eight. */
    const bool splits = d->tiles && d->w_dtype == SONDE_DTYPE_F16 && !in_f16;
    const double split = splits ? 2.0 / 65536 : 4e-6;
    const double bound = d->winograd == 4 ? 4e-6 : d->winograd == 2 ? 1e-6 : split;
    for (int64_t n = 0; n < d->n && bad < 3; n++)
        for (int64_t oc = 0; oc < d->oc && bad < 3; oc++)
            for (int64_t i = 0; i < out && bad < 3; i++) {
                const int64_t o[3] = {i / d->out[2] / d->out[1], i / d->out[2] % d->out[1],
                                      i % d->out[2]};
                double scale, want = naive(d, x, w, bias, z, n, oc, o, &scale);
                float got = d->out_block ? blocked_at(y, d->oc, out, d->out_block, n, oc, i)
                                         : y[(n * d->oc + oc) * out + i];
                const bool rough = in_bf16 && d->act.kind == SN_ACT_SILU;
                const double rounding = d->y_half == SONDE_DTYPE_F16 ? fabs(want) / 2048 + 0x1p-24
                                        : d->y_half                  ? fabs(want) / 256
                                        : rough                      ? fabs(want) / 4096
                                                                     : 0;
                if (!isfinite(scale) ? !same_kind((double)got, want)
                                     : !(fabs((double)got - want) <=
                                         bound * (fmax(scale, top) + 1) + rounding)) {
                    test_errors++;
                    bad++;
                    fprintf(stderr, "%s %s: image %d channel %d pixel %d: %g, expected %g\n",
                            describe(d, lv->name), p.name, (int)n, (int)oc, (int)i, (double)got,
                            want);
                }
            }
    if (d->out_block && !odd) {
        const int64_t all = (d->oc + ob - 1) / ob * ob;
        for (int64_t n = 0; n < d->n && !bad; n++)
            for (int64_t oc = d->oc; oc < all && !bad; oc++)
                for (int64_t i = 0; i < out && !bad; i++)
                    if (blocked_at(y, all, out, d->out_block, n, oc, i) != 0.0f) {
                        test_errors++;
                        bad++;
                        fprintf(stderr, "%s: padding lane %d of pixel %d is not zero\n",
                                describe(d, lv->name), (int)oc, (int)i);
                    }
    }
    if (xb != x)
        free(xb);
    if (zb != z)
        free(zb);
    if (wp != w)
        free(wp);
    free(x), free(w), free(bias), free(z), free(y), free(space);
}

static inline void check(const sn_conv_desc *d, const level *lv, bool with_bias, int threads,
                         sn_pool *pool)
{
    check_with(d, lv, with_bias, threads, pool, 0);
}

static inline sn_act random_act(void)
{
    static const sn_act acts[] = {{SN_ACT_NONE, {0, 0}},     {SN_ACT_RELU, {0, 0}},
                                  {SN_ACT_CLIP, {0.25f, 1}}, {SN_ACT_SIGMOID, {0, 0}},
                                  {SN_ACT_SILU, {1, 0}},     {SN_ACT_CLIP, {-1, 6}}};
    return acts[test_rand() % 6];
}

static inline void random_window(sn_conv_desc *d, int axis, int64_t in_max, int64_t k_max,
                                 int64_t pad_end[3])
{
    d->in[axis] = test_between(1, in_max);
    d->kernel[axis] = test_between(1, k_max);
    d->stride[axis] = test_between(1, 3);
    d->dilation[axis] = test_rand() % 3 ? 1 : 2;
    d->pad[axis] = test_between(0, d->kernel[axis]);
    pad_end[axis] = test_between(0, d->kernel[axis]);
}

static const sn_conv_desc unit = {.n = 1,
                                  .c = 1,
                                  .oc = 1,
                                  .groups = 1,
                                  .in = {1, 1, 1},
                                  .kernel = {1, 1, 1},
                                  .stride = {1, 1, 1},
                                  .dilation = {1, 1, 1}};

#endif
