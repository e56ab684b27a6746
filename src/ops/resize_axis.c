/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates and weights of a resized axis, in double precision; tables hold floats. */
#include "ops/resize_axis.h"

#include <math.h>

static bool source_position(const sn_resize_how *how, const sn_resize_axis *a, int64_t o, double *x)
{
    double at = (double)o, in = (double)a->in, out = a->scale * in;
    switch (how->coords) {
    case SN_COORDS_ALIGN_CORNERS:
        *x = out == 1 ? 0 : at * (in - 1) / (out - 1);
        break;
    case SN_COORDS_ASYMMETRIC:
        *x = at / a->scale;
        break;
    case SN_COORDS_TF_HALF_PIXEL_FOR_NN:
        *x = (at + 0.5) / a->scale;
        break;
    case SN_COORDS_TF_CROP_AND_RESIZE: {
        double size = a->roi_end - a->roi_begin;
        *x = a->roi_begin * (in - 1) +
             (out == 1 ? size * (in - 1) / 2 : at * size * (in - 1) / (out - 1));
        return *x >= 0 && *x <= in - 1;
    }
    case SN_COORDS_PYTORCH_HALF_PIXEL:
        *x = out == 1 ? 0 : (at + 0.5) / a->scale - 0.5;
        break;
    case SN_COORDS_HALF_PIXEL_SYMMETRIC:
        /* The output is a whole number of pixels: keep both centres in one place. */
        *x = in / 2 * (1 - (double)a->out / out) + (at + 0.5) / a->scale - 0.5;
        break;
    case SN_COORDS_HALF_PIXEL:
    case SN_COORDS_COUNT:
        *x = (at + 0.5) / a->scale - 0.5;
        break;
    }
    if (isnan(*x))
        *x = 0;
    *x = *x < -in ? -in : *x > 2 * in ? 2 * in : *x; /* beyond that everything is clamped anyway */
    return true;
}

static int64_t clamp_index(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

void sn_resize_nearest(const sn_resize_how *how, const sn_resize_axis *a, int64_t *index)
{
    for (int64_t o = 0; o < a->out; o++) {
        double x = 0;
        if (!source_position(how, a, o, &x)) {
            index[o] = -1;
            continue;
        }
        double low = floor(x), part = x - low;
        bool up = how->round == SN_ROUND_PREFER_FLOOR  ? part > 0.5
                  : how->round == SN_ROUND_PREFER_CEIL ? part >= 0.5
                  : how->round == SN_ROUND_CEIL        ? part > 0
                                                       : false;
        index[o] = clamp_index((int64_t)low + up, a->in);
    }
}

static double reach(const sn_resize_how *how)
{
    return how->mode == SN_RESIZE_CUBIC ? 2 : 1;
}

int64_t sn_resize_taps(const sn_resize_how *how, double scale)
{
    double s = how->antialias && scale < 1 ? scale : 1;
    /* Bounded for scales next to nothing: as many cannot be had, which is found out later. */
    return 2 - 2 * ((int64_t)fmax(floor(-reach(how) / s), -0x1p40) + 1);
}

int64_t sn_resize_max_taps(const sn_resize_how *how, int64_t in, int64_t out)
{
    /* The scale may lie below out / in by what rounding to whole pixels took away. */
    double scale = in > 0 ? ((double)out - 0.5) / (double)in : 1;
    return sn_resize_taps(how, scale > 0 ? scale : 1) + 2;
}

static double coefficient(const sn_resize_how *how, double x)
{
    double a = how->cubic_a;
    x = fabs(x);
    if (how->mode == SN_RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

void sn_resize_weights(const sn_resize_how *how, const sn_resize_axis *a, int64_t taps,
                       int32_t *index, float *weight)
{
    double s = how->antialias && a->scale < 1 ? a->scale : 1;
    for (int64_t o = 0; o < a->out; o++, index += taps, weight += taps) {
        double x = 0, sum = 0;
        if (!source_position(how, a, o, &x)) {
            index[0] = -1;
            continue;
        }
        /* The left neighbour; at a whole position the pixel itself counts as the right one. */
        double left = ceil(x) - 1;
        int64_t first = (int64_t)left - taps / 2 + 1;
        for (int pass = 0; pass < 2; pass++) /* the sum, then normalised weights */
            for (int64_t t = 0; t < taps; t++) {
                bool outside = first + t < 0 || first + t >= a->in;
                double w = how->exclude_outside && outside
                               ? 0
                               : coefficient(how, s * ((double)(first + t) - x));
                if (pass == 0) {
                    sum += w;
                    continue;
                }
                index[t] = (int32_t)clamp_index(first + t, a->in);
                weight[t] = (float)(sum != 0 ? w / sum : 0);
            }
    }
}
