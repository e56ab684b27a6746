/* SPDX-License-Identifier: Apache-2.0 */
/* Sample positions and weights are made once for all channels. Regions come from data, so loops are
 * cut to the image before they run. */
#include "compute/roi.h"

#include <math.h>

#include "compute/parallel.h"

typedef struct job {
    const sn_roi *r;
    void *y;
    const void *x;
    sn_elems rois;
    const int64_t *batch;
    bool max, f64;
} job;

static int64_t image_of(sn_elems rois, const int64_t *batch, int64_t roi)
{
    if (batch)
        return batch[roi];
    const double v = sn_elem_f64(rois.dtype, rois.data, roi * 5);
    return v >= 0 && v < 0x1p62 ? (int64_t)v : -1;
}

int64_t sn_roi_without_image(const sn_roi *r, sn_elems rois, const int64_t *batch)
{
    for (int64_t i = 0; i < r->regions; i++) {
        const int64_t image = image_of(rois, batch, i);
        if (image < 0 || image >= r->images)
            return i;
    }
    return -1;
}

/* The same for reading: the regions have been looked at, but may have changed since. */
static int64_t image_inside(const job *c, int64_t roi)
{
    const int64_t image = image_of(c->rois, c->batch, roi);
    return image >= 0 && image < c->r->images ? image : 0;
}

/* One input position between pixels: up to four of them with weights. */
typedef struct sample {
    int64_t at[4];
    double weight[4];
} sample;

static bool sample_at(const job *c, double y, double x, sample *s)
{
    const double h = (double)c->r->height, w = (double)c->r->width;
    if (!(y >= -1.0 && y <= h && x >= -1.0 && x <= w))
        return false;
    y = y > 0 ? y : 0;
    x = x > 0 ? x : 0;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= c->r->height - 1) {
        y0 = y1 = c->r->height - 1;
        y = (double)y0;
    }
    if (x0 >= c->r->width - 1) {
        x0 = x1 = c->r->width - 1;
        x = (double)x0;
    }
    const double fy = y - (double)y0, fx = x - (double)x0;
    const int64_t at[4] = {y0 * c->r->width + x0, y0 * c->r->width + x1, y1 * c->r->width + x0,
                           y1 * c->r->width + x1};
    const double weight[4] = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx};
    memcpy(s->at, at, sizeof at);
    memcpy(s->weight, weight, sizeof weight);
    return true;
}

/* Adds a sample (or takes its maximum) in every channel; s NULL: a sample outside, which is zero.
 */
#define ADD_SAMPLE(T)                                                                              \
    static void add_sample_##T(const job *c, const sample *s, int64_t image, T *y, int64_t bins,   \
                               bool first)                                                         \
    {                                                                                              \
        const int64_t plane = c->r->height * c->r->width;                                          \
        const T *x = (const T *)c->x + image * c->r->channels * plane;                             \
        for (int64_t ch = 0; ch < c->r->channels; ch++, x += plane, y += bins) {                   \
            double v[4] = {0, 0, 0, 0};                                                            \
            for (int i = 0; s && i < 4; i++)                                                       \
                v[i] = s->weight[i] * (double)x[s->at[i]];                                         \
            if (!c->max) {                                                                         \
                *y = (T)((first ? 0.0 : (double)*y) + v[0] + v[1] + v[2] + v[3]);                  \
                continue;                                                                          \
            }                                                                                      \
            const double best = fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));                          \
            *y = first ? (T)best : (T)fmax((double)*y, best);                                      \
        }                                                                                          \
    }                                                                                              \
    static void scale_bin_##T(const job *c, T *y, int64_t bins, double factor)                     \
    {                                                                                              \
        for (int64_t ch = 0; ch < c->r->channels; ch++, y += bins)                                 \
            *y = (T)((double)*y * factor);                                                         \
    }                                                                                              \
    static void max_bin_##T(const job *c, int64_t image, const int64_t *box, T *y, int64_t bins)   \
    {                                                                                              \
        const int64_t plane = c->r->height * c->r->width;                                          \
        const T *x = (const T *)c->x + image * c->r->channels * plane;                             \
        for (int64_t ch = 0; ch < c->r->channels; ch++, x += plane, y += bins) {                   \
            T best = 0;                                                                            \
            bool any = false;                                                                      \
            for (int64_t i = box[0]; i < box[1]; i++)                                              \
                for (int64_t j = box[2]; j < box[3]; j++) {                                        \
                    const T v = x[i * c->r->width + j];                                            \
                    best = !any || v > best ? v : best;                                            \
                    any = true;                                                                    \
                }                                                                                  \
            *y = best;                                                                             \
        }                                                                                          \
    }
ADD_SAMPLE(float)
ADD_SAMPLE(double)

/* ------------------------------------------------------------------ aligned */
/* Samples of one axis of a bin. */
typedef struct span {
    double start, step, n; /* n may be far more than what lies inside */
    int64_t lo, hi;        /* those that can lie inside */
} span;

static span span_of(double start, double bin, double n, double size)
{
    span s = {start, n > 0 ? bin / n : 0.0, n, 0, 0};
    if (!(n > 0))
        return s;
    double lo = 0, hi = n;
    if (s.step > 0) {
        lo = floor((-1.0 - start) / s.step - 0.5) - 1.0;
        hi = ceil((size - start) / s.step - 0.5) + 2.0;
    }
    lo = lo > 0 ? lo : 0;
    hi = hi < n ? hi : n;
    if (lo < hi && hi < 0x1p40) {
        s.lo = (int64_t)lo;
        s.hi = (int64_t)hi;
    }
    return s;
}

static void align_bin(const job *c, int64_t image, const span *v, const span *h, void *y,
                      int64_t bins)
{
    bool first = true;
    const bool cut = (double)(v->hi - v->lo) < v->n || (double)(h->hi - h->lo) < h->n;
    for (int64_t i = v->lo; i < v->hi; i++)
        for (int64_t j = h->lo; j < h->hi; j++) {
            sample s;
            const bool in = sample_at(c, v->start + ((double)i + 0.5) * v->step,
                                      h->start + ((double)j + 0.5) * h->step, &s);
            if (!in && !c->max && !first)
                continue;
            if (c->f64)
                add_sample_double(c, in ? &s : NULL, image, y, bins, first);
            else
                add_sample_float(c, in ? &s : NULL, image, y, bins, first);
            first = false;
        }
    if (first || (cut && c->max)) { /* the samples left out are zero */
        if (c->f64)
            add_sample_double(c, NULL, image, y, bins, first);
        else
            add_sample_float(c, NULL, image, y, bins, first);
    }
    const double count = v->n * h->n;
    if (c->max || !(count > 1))
        return;
    if (c->f64)
        scale_bin_double(c, y, bins, 1.0 / count);
    else
        scale_bin_float(c, y, bins, 1.0 / count);
}

static void *bin_at(const job *c, int64_t roi, int64_t bin)
{
    const int64_t i = roi * c->r->channels * c->r->bins_y * c->r->bins_x + bin;
    return c->f64 ? (void *)((double *)c->y + i) : (void *)((float *)c->y + i);
}

static void align_range(void *arg, size_t from, size_t to)
{
    const job *c = arg;
    const sn_roi *r = c->r;
    const int64_t bins = r->bins_y * r->bins_x;
    const double offset = r->half_pixel ? 0.5 : 0.0;
    for (int64_t roi = (int64_t)from; roi < (int64_t)to; roi++) {
        double edge[4]; /* x1, y1, x2, y2 */
        for (int i = 0; i < 4; i++)
            edge[i] = sn_elem_f64(c->rois.dtype, c->rois.data, roi * 4 + i) * r->scale - offset;
        double w = edge[2] - edge[0], h = edge[3] - edge[1];
        if (!r->half_pixel) { /* regions turned inside out become one pixel */
            w = w > 1 ? w : 1;
            h = h > 1 ? h : 1;
        }
        const double bin_h = h / (double)r->bins_y, bin_w = w / (double)r->bins_x;
        const double nv = r->ratio ? (double)r->ratio : ceil(bin_h),
                     nh = r->ratio ? (double)r->ratio : ceil(bin_w);
        for (int64_t i = 0; i < r->bins_y; i++) {
            const span v = span_of(edge[1] + (double)i * bin_h, bin_h, nv, (double)c->r->height);
            for (int64_t j = 0; j < r->bins_x; j++) {
                const span u = span_of(edge[0] + (double)j * bin_w, bin_w, nh, (double)c->r->width);
                align_bin(c, image_inside(c, roi), &v, &u, bin_at(c, roi, i * r->bins_x + j), bins);
            }
        }
    }
}

/* ------------------------------------------------------------------ pooled */
/* round() and then cut to numbers that are safe to compute with. */
static int64_t pixel_of(double v)
{
    v = round(v);
    return !(v > -0x1p40) ? -((int64_t)1 << 40) : v > 0x1p40 ? (int64_t)1 << 40 : (int64_t)v;
}

static int64_t cut(int64_t v, int64_t size)
{
    return v < 0 ? 0 : v > size ? size : v;
}

static void pool_range(void *arg, size_t from, size_t to)
{
    const job *c = arg;
    const sn_roi *r = c->r;
    const int64_t bins = r->bins_y * r->bins_x;
    for (int64_t roi = (int64_t)from; roi < (int64_t)to; roi++) {
        int64_t edge[4];
        for (int i = 0; i < 4; i++)
            edge[i] =
                pixel_of(sn_elem_f64(c->rois.dtype, c->rois.data, roi * 5 + 1 + i) * r->scale);
        const int64_t w = edge[2] - edge[0] + 1, h = edge[3] - edge[1] + 1;
        const double bin_h = (double)(h > 1 ? h : 1) / (double)r->bins_y,
                     bin_w = (double)(w > 1 ? w : 1) / (double)r->bins_x;
        for (int64_t i = 0; i < r->bins_y; i++)
            for (int64_t j = 0; j < r->bins_x; j++) {
                const int64_t box[4] = {
                    cut(edge[1] + (int64_t)floor((double)i * bin_h), c->r->height),
                    cut(edge[1] + (int64_t)ceil((double)(i + 1) * bin_h), c->r->height),
                    cut(edge[0] + (int64_t)floor((double)j * bin_w), c->r->width),
                    cut(edge[0] + (int64_t)ceil((double)(j + 1) * bin_w), c->r->width)};
                void *y = bin_at(c, roi, i * r->bins_x + j);
                if (c->f64)
                    max_bin_double(c, image_inside(c, roi), box, y, bins);
                else
                    max_bin_float(c, image_inside(c, roi), box, y, bins);
            }
    }
}

void sn_roi_run(const sn_roi *r, void *y, const void *x, sn_elems rois, const int64_t *batch,
                sn_pool *pool)
{
    job c = {.r = r,
             .y = y,
             .x = x,
             .rois = rois,
             .batch = batch,
             .max = r->kind == SN_ROI_ALIGN_MAX,
             .f64 = r->dtype == SONDE_DTYPE_F64};
    sn_parallel_range(pool, (size_t)r->regions, (size_t)(r->channels * r->bins_y * r->bins_x * 16),
                      r->kind == SN_ROI_POOL ? pool_range : align_range, &c);
}
