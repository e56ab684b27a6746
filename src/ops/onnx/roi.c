/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign and MaxRoiPool: regions of an image on a fixed grid. Sample positions and weights are
 * made once for all channels. Regions come from data, so loops are cut to the image before they
 * run. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/data_movement.h"

enum { X, ROIS, BATCH };
enum { MAX_RATIO = 1024 }; /* samples per bin and axis */

typedef struct roi_params {
    int64_t height, width; /* of the output */
    int64_t ratio;         /* samples per bin and axis; 0: by the region's size */
    double scale;
    bool max, half_pixel;
    bool pool; /* MaxRoiPool */
} roi_params;

static sonde_status prepare_common(sn_prep *p)
{
    roi_params *r = p->params;
    float scale;
    SN_TRY(sn_prep_float(p, "spatial_scale", 1.0f, &scale));
    r->scale = (double)scale;
    if (r->height < 1 || r->width < 1 || r->height > INT32_MAX || r->width > INT32_MAX)
        return sn_prep_fail(p, "an output of %lld by %lld is not possible", (long long)r->height,
                            (long long)r->width);
    return SONDE_OK;
}

static sonde_status prepare_align(sn_prep *p, const char *def)
{
    roi_params *r = p->params;
    const char *mode, *coords;
    SN_TRY(sn_prep_string(p, "mode", "avg", &mode));
    SN_TRY(sn_prep_string(p, "coordinate_transformation_mode", def, &coords));
    SN_TRY(sn_prep_int(p, "output_height", 1, &r->height));
    SN_TRY(sn_prep_int(p, "output_width", 1, &r->width));
    SN_TRY(sn_prep_int(p, "sampling_ratio", 0, &r->ratio));
    r->max = strcmp(mode, "max") == 0;
    r->half_pixel = strcmp(coords, "half_pixel") == 0;
    if (!r->max && strcmp(mode, "avg") != 0)
        return sn_prep_fail(p, "mode '%s' is unknown", mode);
    if (!r->half_pixel && strcmp(coords, "output_half_pixel") != 0)
        return sn_prep_fail(p, "coordinate_transformation_mode '%s' is unknown", coords);
    if (r->ratio < 0 || r->ratio > MAX_RATIO)
        return sn_prep_fail(p, "sampling_ratio %lld is outside 0 … %d", (long long)r->ratio,
                            (int)MAX_RATIO);
    return prepare_common(p);
}

static sonde_status prepare_align_10(sn_prep *p)
{
    return prepare_align(p, "output_half_pixel");
}
static sonde_status prepare_align_16(sn_prep *p)
{
    return prepare_align(p, "half_pixel");
}

static sonde_status prepare_pool(sn_prep *p)
{
    roi_params *r = p->params;
    const int64_t *shape;
    size_t n;
    SN_TRY(sn_prep_ints(p, "pooled_shape", &shape, &n));
    if (n != 2)
        return sn_prep_fail(p, "attribute 'pooled_shape' must have 2 entries");
    r->height = shape[0];
    r->width = shape[1];
    r->pool = true;
    return prepare_common(p);
}

static sonde_status infer(sn_infer *c)
{
    static const sn_dtype int64[] = {SONDE_DTYPE_I64};
    const roi_params *r = c->params;
    sn_dim x[4] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    sn_dim rois[2] = {SN_DIM_UNKNOWN, r->pool ? 5 : 4};
    SN_TRY(sn_wide_float(c, X));
    SN_TRY(sn_wide_same_dtype(c, ROIS, X));
    SN_TRY(sn_wide_dtype(c, BATCH, int64, 1));
    SN_TRY(sn_wide_dims(c, X, x, 4));
    SN_TRY(sn_wide_dims(c, ROIS, rois, 2));
    SN_TRY(sn_wide_dims(c, BATCH, rois, 1));
    const sn_dim dims[4] = {rois[0], x[1], r->height, r->width};
    return sn_wide_out(c, 0, c->in[X]->type.dtype, dims, 4);
}

typedef struct roi_bound {
    size_t x_at, y_at;
} roi_bound;

static sonde_status bind(sn_bind *b)
{
    const roi_params *r = b->params;
    const sn_dtype t = b->in[X]->type.dtype;
    roi_bound *k = SN_NEW(b->arena, roi_bound);
    sn_room room = {0};
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_wide_takes(t))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported", sn_dtype_name(t));
    if (t != SONDE_DTYPE_F64) {
        k->x_at = sn_room_wide(&room, b->in[X]);
        k->y_at = sn_room_wide(&room, &b->out[0]);
    }
    b->bound = k;
    b->kernel = r->pool ? "max_roi_pool" : r->max ? "roi_align_max" : "roi_align_avg";
    return sn_room_done(b, &room);
}

/* ------------------------------------------------------------------ run */
typedef struct roi_call {
    const roi_params *r;
    const sn_tensor *rois, *batch; /* batch NULL: first column of rois */
    const void *x;
    void *y;
    bool f64;
    int64_t images, channels, height, width;
} roi_call;

static int64_t image_of(const roi_call *c, int64_t roi)
{
    if (c->batch)
        return ((const int64_t *)c->batch->data)[roi];
    const double v = sn_elem_f64(c->rois->dtype, c->rois->data, roi * 5);
    return v >= 0 && v < 0x1p62 ? (int64_t)v : -1;
}

/* The same for reading: the regions have been looked at, but the caller may have changed them. */
static int64_t image_inside(const roi_call *c, int64_t roi)
{
    const int64_t image = image_of(c, roi);
    return image >= 0 && image < c->images ? image : 0;
}

/* One input position between pixels: up to four of them with weights. */
typedef struct sample {
    int64_t at[4];
    double weight[4];
} sample;

static bool sample_at(const roi_call *c, double y, double x, sample *s)
{
    const double h = (double)c->height, w = (double)c->width;
    if (!(y >= -1.0 && y <= h && x >= -1.0 && x <= w))
        return false;
    y = y > 0 ? y : 0;
    x = x > 0 ? x : 0;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= c->height - 1) {
        y0 = y1 = c->height - 1;
        y = (double)y0;
    }
    if (x0 >= c->width - 1) {
        x0 = x1 = c->width - 1;
        x = (double)x0;
    }
    const double fy = y - (double)y0, fx = x - (double)x0;
    const int64_t at[4] = {y0 * c->width + x0, y0 * c->width + x1, y1 * c->width + x0,
                           y1 * c->width + x1};
    const double weight[4] = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx};
    memcpy(s->at, at, sizeof at);
    memcpy(s->weight, weight, sizeof weight);
    return true;
}

/* Adds a sample (or takes its maximum) in every channel; s NULL: a sample outside, which is zero.
 */
#define ADD_SAMPLE(T)                                                                              \
    static void add_sample_##T(const roi_call *c, const sample *s, int64_t image, T *y,            \
                               int64_t bins, bool first)                                           \
    {                                                                                              \
        const int64_t plane = c->height * c->width;                                                \
        const T *x = (const T *)c->x + image * c->channels * plane;                                \
        for (int64_t ch = 0; ch < c->channels; ch++, x += plane, y += bins) {                      \
            double v[4] = {0, 0, 0, 0};                                                            \
            for (int i = 0; s && i < 4; i++)                                                       \
                v[i] = s->weight[i] * (double)x[s->at[i]];                                         \
            if (!c->r->max) {                                                                      \
                *y = (T)((first ? 0.0 : (double)*y) + v[0] + v[1] + v[2] + v[3]);                  \
                continue;                                                                          \
            }                                                                                      \
            const double best = fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));                          \
            *y = first ? (T)best : (T)fmax((double)*y, best);                                      \
        }                                                                                          \
    }                                                                                              \
    static void scale_bin_##T(const roi_call *c, T *y, int64_t bins, double factor)                \
    {                                                                                              \
        for (int64_t ch = 0; ch < c->channels; ch++, y += bins)                                    \
            *y = (T)((double)*y * factor);                                                         \
    }                                                                                              \
    static void max_bin_##T(const roi_call *c, int64_t image, const int64_t *box, T *y,            \
                            int64_t bins)                                                          \
    {                                                                                              \
        const int64_t plane = c->height * c->width;                                                \
        const T *x = (const T *)c->x + image * c->channels * plane;                                \
        for (int64_t ch = 0; ch < c->channels; ch++, x += plane, y += bins) {                      \
            T best = 0;                                                                            \
            bool any = false;                                                                      \
            for (int64_t i = box[0]; i < box[1]; i++)                                              \
                for (int64_t j = box[2]; j < box[3]; j++) {                                        \
                    const T v = x[i * c->width + j];                                               \
                    best = !any || v > best ? v : best;                                            \
                    any = true;                                                                    \
                }                                                                                  \
            *y = best;                                                                             \
        }                                                                                          \
    }
ADD_SAMPLE(float)
ADD_SAMPLE(double)

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

static void align_bin(const roi_call *c, int64_t image, const span *v, const span *h, void *y,
                      int64_t bins)
{
    bool first = true;
    const bool cut = (double)(v->hi - v->lo) < v->n || (double)(h->hi - h->lo) < h->n;
    for (int64_t i = v->lo; i < v->hi; i++)
        for (int64_t j = h->lo; j < h->hi; j++) {
            sample s;
            const bool in = sample_at(c, v->start + ((double)i + 0.5) * v->step,
                                      h->start + ((double)j + 0.5) * h->step, &s);
            if (!in && !c->r->max && !first)
                continue;
            if (c->f64)
                add_sample_double(c, in ? &s : NULL, image, y, bins, first);
            else
                add_sample_float(c, in ? &s : NULL, image, y, bins, first);
            first = false;
        }
    if (first || (cut && c->r->max)) { /* the samples left out are zero */
        if (c->f64)
            add_sample_double(c, NULL, image, y, bins, first);
        else
            add_sample_float(c, NULL, image, y, bins, first);
    }
    const double count = v->n * h->n;
    if (c->r->max || !(count > 1))
        return;
    if (c->f64)
        scale_bin_double(c, y, bins, 1.0 / count);
    else
        scale_bin_float(c, y, bins, 1.0 / count);
}

static void *bin_at(const roi_call *c, int64_t roi, int64_t bin)
{
    const int64_t i = roi * c->channels * c->r->height * c->r->width + bin;
    return c->f64 ? (void *)((double *)c->y + i) : (void *)((float *)c->y + i);
}

static void align_range(void *arg, size_t from, size_t to)
{
    const roi_call *c = arg;
    const roi_params *r = c->r;
    const int64_t bins = r->height * r->width;
    const double offset = r->half_pixel ? 0.5 : 0.0;
    for (int64_t roi = (int64_t)from; roi < (int64_t)to; roi++) {
        double edge[4]; /* x1, y1, x2, y2 */
        for (int i = 0; i < 4; i++)
            edge[i] = sn_elem_f64(c->rois->dtype, c->rois->data, roi * 4 + i) * r->scale - offset;
        double w = edge[2] - edge[0], h = edge[3] - edge[1];
        if (!r->half_pixel) { /* regions turned inside out become one pixel */
            w = w > 1 ? w : 1;
            h = h > 1 ? h : 1;
        }
        const double bin_h = h / (double)r->height, bin_w = w / (double)r->width;
        const double nv = r->ratio ? (double)r->ratio : ceil(bin_h),
                     nh = r->ratio ? (double)r->ratio : ceil(bin_w);
        for (int64_t i = 0; i < r->height; i++) {
            const span v = span_of(edge[1] + (double)i * bin_h, bin_h, nv, (double)c->height);
            for (int64_t j = 0; j < r->width; j++) {
                const span u = span_of(edge[0] + (double)j * bin_w, bin_w, nh, (double)c->width);
                align_bin(c, image_inside(c, roi), &v, &u, bin_at(c, roi, i * r->width + j), bins);
            }
        }
    }
}

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
    const roi_call *c = arg;
    const roi_params *r = c->r;
    const int64_t bins = r->height * r->width;
    for (int64_t roi = (int64_t)from; roi < (int64_t)to; roi++) {
        int64_t edge[4];
        for (int i = 0; i < 4; i++)
            edge[i] =
                pixel_of(sn_elem_f64(c->rois->dtype, c->rois->data, roi * 5 + 1 + i) * r->scale);
        const int64_t w = edge[2] - edge[0] + 1, h = edge[3] - edge[1] + 1;
        const double bin_h = (double)(h > 1 ? h : 1) / (double)r->height,
                     bin_w = (double)(w > 1 ? w : 1) / (double)r->width;
        for (int64_t i = 0; i < r->height; i++)
            for (int64_t j = 0; j < r->width; j++) {
                const int64_t box[4] = {
                    cut(edge[1] + (int64_t)floor((double)i * bin_h), c->height),
                    cut(edge[1] + (int64_t)ceil((double)(i + 1) * bin_h), c->height),
                    cut(edge[0] + (int64_t)floor((double)j * bin_w), c->width),
                    cut(edge[0] + (int64_t)ceil((double)(j + 1) * bin_w), c->width)};
                void *y = bin_at(c, roi, i * r->width + j);
                if (c->f64)
                    max_bin_double(c, image_inside(c, roi), box, y, bins);
                else
                    max_bin_float(c, image_inside(c, roi), box, y, bins);
            }
    }
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const roi_params *r = s->params;
    const roi_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, X);
    sn_tensor *y = sn_out(s, f, 0);
    roi_call c = {.r = r,
                  .rois = sn_in(s, f, ROIS),
                  .batch = r->pool ? NULL : sn_in(s, f, BATCH),
                  .f64 = x->dtype == SONDE_DTYPE_F64,
                  .images = x->dims[0],
                  .channels = x->dims[1],
                  .height = x->dims[2],
                  .width = x->dims[3]};
    const int64_t n = y->dims[0];
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    for (int64_t i = 0; i < n; i++)
        if (image_of(&c, i) < 0 || image_of(&c, i) >= c.images)
            return sn_run_fail(s, f, "region %lld names an image outside the batch of %lld",
                               (long long)i, (long long)c.images);
    if (c.height == 0 || c.width == 0)
        return sn_run_fail(s, f, "the image is empty");
    c.x = c.f64 ? x->data : sn_wide_in(s, f, X, k->x_at);
    c.y = c.f64 ? y->data : (void *)sn_wide_out_room(s, f, 0, k->y_at);
    sn_parallel_range(f->pool, (size_t)n, (size_t)(c.channels * r->height * r->width * 16),
                      r->pool ? pool_range : align_range, &c);
    if (!c.f64)
        sn_wide_put(s, f, 0, k->y_at);
    return SONDE_OK;
}

#define ROI(NAME, SINCE, UNTIL, N_IN, PREPARE)                                                     \
    {                                                                                              \
        .name = NAME, .domain = "", .since = SINCE, .until = UNTIL, .min_in = N_IN,                \
        .max_in = N_IN, .min_out = 1, .max_out = 1, .params_size = sizeof(roi_params),             \
        .prepare = PREPARE, .infer = infer, .bind = bind, .run = run, .types = SN_WIDE_TYPES       \
    }
const sn_op sn_op_roi_align[] = {ROI("RoiAlign", 10, 15, 3, prepare_align_10),
                                 ROI("RoiAlign", 16, 0, 3, prepare_align_16),
                                 {.name = NULL}};
const sn_op sn_op_max_roi_pool[] = {ROI("MaxRoiPool", 1, 0, 2, prepare_pool), {.name = NULL}};
