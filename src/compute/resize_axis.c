/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates and weights of a resized axis. Positions are fractions: where one falls on a pixel or
 * half way between two, a rounded one could fall on the other side. */
#include "compute/resize_axis.h"

#include <math.h>

__extension__ typedef __int128 wide;

/* ------------------------------------------------------------------ fractions */
typedef struct ratio {
    wide num, den; /* reduced, den > 0 */
} ratio;

static ratio reduced(wide num, wide den)
{
    wide a = num < 0 ? -num : num, b = den;
    while (a) {
        wide rest = b % a;
        b = a;
        a = rest;
    }
    return (ratio){num / b, den / b};
}

static double value(ratio r)
{
    return (double)r.num / (double)r.den;
}

/* A number with 60 bits after the point, which floats of some size do not need. Far outside every
 * axis one place is as good as another. */
static ratio nearby(double x)
{
    const double most = 0x1p60;
    x = x < -most ? -most : x > most ? most : x;
    return reduced((wide)floor(x * 0x1p60), (wide)1 << 60);
}

/* What 128 bits cannot hold is rounded. */
static ratio times(ratio a, ratio b)
{
    const ratio x = reduced(a.num, b.den), y = reduced(b.num, a.den);
    ratio r;
    if (__builtin_mul_overflow(x.num, y.num, &r.num) ||
        __builtin_mul_overflow(x.den, y.den, &r.den))
        return nearby(value(a) * value(b));
    return r;
}

static ratio plus(ratio a, ratio b)
{
    wide x, y, num, den;
    if (__builtin_mul_overflow(a.num, b.den, &x) || __builtin_mul_overflow(b.num, a.den, &y) ||
        __builtin_add_overflow(x, y, &num) || __builtin_mul_overflow(a.den, b.den, &den))
        return nearby(value(a) + value(b));
    return reduced(num, den);
}

static ratio minus(ratio a, ratio b)
{
    return plus(a, (ratio){-b.num, b.den});
}

static ratio over(ratio a, ratio b) /* b is not 0 */
{
    return times(a, b.num < 0 ? (ratio){-b.den, -b.num} : (ratio){b.den, b.num});
}

/* ------------------------------------------------------------------ scales */
void sn_resize_by_ratio(sn_resize_axis *a, int64_t num, int64_t den)
{
    a->num = num;
    a->den = den;
    a->scale = (double)num / (double)den;
}

void sn_resize_by_scale(sn_resize_axis *a, double scale)
{
    a->scale = scale;
    a->den = 1;
    while (a->den < (int64_t)1 << 62 && scale < 0x1p61 && scale != floor(scale)) {
        scale *= 2;
        a->den *= 2;
    }
    a->num = scale < 1 ? 1 : scale < 0x1p62 ? (int64_t)scale : (int64_t)1 << 62;
}

bool sn_resize_rounded(const sn_resize_axis *a, int64_t *out)
{
    wide twice = (wide)a->in * a->num;
    if (__builtin_mul_overflow(twice, 2, &twice) || __builtin_add_overflow(twice, a->den, &twice))
        return false;
    twice /= (wide)2 * a->den;
    *out = (int64_t)twice;
    return twice < (wide)1 << 62;
}

/* ------------------------------------------------------------------ positions */
/* The source position of output o is (start + o * step) / unit, which is walked: pixel `at` and
 * `part` of the way to the next, in units. */
typedef struct walk {
    wide at, part, step_at, step_part, unit;
    bool nowhere;
} walk;

static wide floored(wide a, wide b)
{
    return a / b - (a % b < 0);
}

static walk walk_of(ratio start, ratio step)
{
    wide begin, move, unit;
    const wide most = (wide)1 << 125; /* two parts are added */
    if (__builtin_mul_overflow(start.den, step.den, &unit) || unit > most ||
        __builtin_mul_overflow(start.num, step.den, &begin) ||
        __builtin_mul_overflow(step.num, start.den, &move)) {
        unit = (wide)1 << 60;
        start = nearby(value(start));
        step = nearby(value(step));
        begin = start.num * (unit / start.den);
        move = step.num * (unit / step.den);
    }
    walk w = {.at = floored(begin, unit), .step_at = floored(move, unit), .unit = unit};
    w.part = begin - w.at * unit;
    w.step_part = move - w.step_at * unit;
    return w;
}

static void walk_on(walk *w)
{
    w->at += w->step_at;
    w->part += w->step_part;
    if (w->part >= w->unit) {
        w->part -= w->unit;
        w->at++;
    }
}

/* The formulas of the operator's text, as a line over the output positions. */
static walk positions(const sn_resize_how *how, const sn_resize_axis *a)
{
    const ratio none = {0, 1}, one = {1, 1}, half = {1, 2}, in = {a->in, 1}, last = {a->in - 1, 1};
    const ratio scale = reduced(a->num, a->den), step = over(one, scale);
    const ratio out = times(in, scale); /* not a whole number when the scale is given */
    const bool single = out.num == out.den;
    const ratio centre = minus(times(half, step), half);
    switch (how->coords) {
    case SN_COORDS_ALIGN_CORNERS:
        return single ? walk_of(none, none) : walk_of(none, over(last, minus(out, one)));
    case SN_COORDS_ASYMMETRIC:
        return walk_of(none, step);
    case SN_COORDS_TF_HALF_PIXEL_FOR_NN:
        return walk_of(times(half, step), step);
    case SN_COORDS_TF_CROP_AND_RESIZE: {
        if (isnan(a->roi_begin) || isnan(a->roi_end))
            return (walk){.unit = 1, .nowhere = true};
        const ratio begin = nearby(a->roi_begin), size = minus(nearby(a->roi_end), begin);
        const ratio from = times(begin, last), wide_by = times(size, last);
        return single ? walk_of(plus(from, times(wide_by, half)), none)
                      : walk_of(from, over(wide_by, minus(out, one)));
    }
    case SN_COORDS_PYTORCH_HALF_PIXEL:
        return single ? walk_of(none, none) : walk_of(centre, step);
    case SN_COORDS_HALF_PIXEL_SYMMETRIC: {
        /* The output is a whole number of pixels: keep both centres in one place. */
        const ratio share = over((ratio){a->out, 1}, out);
        return walk_of(plus(times(times(in, half), minus(one, share)), centre), step);
    }
    case SN_COORDS_HALF_PIXEL:
    case SN_COORDS_COUNT:
        break;
    }
    return walk_of(centre, step);
}

/* Outside the region of interest? */
static bool outside(const sn_resize_how *how, const sn_resize_axis *a, const walk *w)
{
    return how->coords == SN_COORDS_TF_CROP_AND_RESIZE &&
           (w->nowhere || w->at < 0 || w->at >= a->in || (w->at == a->in - 1 && w->part > 0));
}

static int64_t clamp_index(wide i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (int64_t)i;
}

void sn_resize_nearest(const sn_resize_how *how, const sn_resize_axis *a, int64_t *index)
{
    walk w = positions(how, a);
    for (int64_t o = 0; o < a->out; o++, walk_on(&w)) {
        if (outside(how, a, &w)) {
            index[o] = -1;
            continue;
        }
        bool up = how->round == SN_ROUND_PREFER_FLOOR  ? 2 * w.part > w.unit
                  : how->round == SN_ROUND_PREFER_CEIL ? 2 * w.part >= w.unit
                  : how->round == SN_ROUND_CEIL        ? w.part > 0
                                                       : false;
        index[o] = clamp_index(w.at + up, a->in);
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
    walk w = positions(how, a);
    for (int64_t o = 0; o < a->out; o++, index += taps, weight += taps, walk_on(&w)) {
        double sum = 0;
        if (outside(how, a, &w)) {
            index[0] = -1;
            continue;
        }
        /* Beyond one length on either side everything is clamped anyway. */
        const int64_t at = w.at < -a->in ? -a->in : w.at > 2 * a->in ? 2 * a->in : (int64_t)w.at;
        const double x = (double)at + (double)w.part / (double)w.unit;
        /* The left neighbour; at a whole position the pixel itself counts as the right one. */
        int64_t first = at - (w.part == 0) - taps / 2 + 1;
        for (int pass = 0; pass < 2; pass++) /* the sum, then normalised weights */
            for (int64_t t = 0; t < taps; t++) {
                bool beyond = first + t < 0 || first + t >= a->in;
                double c = how->exclude_outside && beyond
                               ? 0
                               : coefficient(how, s * ((double)(first + t) - x));
                if (pass == 0) {
                    sum += c;
                    continue;
                }
                index[t] = (int32_t)clamp_index(first + t, a->in);
                weight[t] = (float)(sum != 0 ? c / sum : 0);
            }
    }
}
