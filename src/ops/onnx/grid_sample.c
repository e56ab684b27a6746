/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample and AffineGrid. A grid position becomes, axis by axis, a few input positions with
 * their weights; their product is a short list of taps that all channels share. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/data_movement.h"

typedef enum sample_mode { NEAREST, LINEAR, CUBIC } sample_mode;
typedef enum sample_padding { ZEROS, BORDER, REFLECTION } sample_padding;
enum { MAX_SPATIAL = 3, MAX_TAPS = 64 };

typedef struct sample_params {
    sample_mode mode;
    sample_padding padding;
    bool align;
} sample_params;

static sonde_status prepare_sample(sn_prep *p)
{
    static const struct {
        const char *text;
        sample_mode mode;
    } modes[] = {{"linear", LINEAR},
                 {"bilinear", LINEAR},
                 {"nearest", NEAREST},
                 {"cubic", CUBIC},
                 {"bicubic", CUBIC}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    sample_params *r = p->params;
    const char *mode, *padding;
    int64_t align;
    size_t i;
    SN_TRY(sn_prep_string(p, "mode", "linear", &mode));
    SN_TRY(sn_prep_string(p, "padding_mode", "zeros", &padding));
    SN_TRY(sn_prep_int(p, "align_corners", 0, &align));
    r->align = align != 0;
    for (i = 0; i < 5 && strcmp(mode, modes[i].text) != 0; i++)
        ;
    if (i == 5)
        return sn_prep_fail(p, "mode '%s' is unknown", mode);
    r->mode = modes[i].mode;
    for (i = 0; i < 3 && strcmp(padding, paddings[i]) != 0; i++)
        ;
    if (i == 3)
        return sn_prep_fail(p, "padding_mode '%s' is unknown", padding);
    r->padding = (sample_padding)i;
    return SONDE_OK;
}

static sonde_status infer_sample(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type, *grid = &c->in[1]->type;
    SN_TRY(sn_wide_float(c, 1));
    if (x->rank < 0 && grid->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    const int rank = x->rank >= 0 ? x->rank : grid->rank;
    if (rank < 3 || rank > MAX_SPATIAL + 2)
        return sn_infer_fail(c, "an input of rank %d is not supported: 1 to 3 spatial dims", rank);
    sn_dim dims[MAX_SPATIAL + 2], want[MAX_SPATIAL + 2];
    for (int i = 0; i < rank; i++)
        want[i] = SN_DIM_UNKNOWN;
    want[0] = x->rank >= 0 ? x->dims[0] : SN_DIM_UNKNOWN;
    want[rank - 1] = rank - 2;
    SN_TRY(sn_wide_dims(c, 1, want, rank));
    dims[0] = want[0];
    dims[1] = x->rank >= 0 ? x->dims[1] : SN_DIM_UNKNOWN;
    for (int i = 0; i < rank - 2; i++) {
        dims[i + 2] = want[i + 1];
        if (x->rank >= 0 && x->dims[i + 2] == 0)
            return sn_infer_fail(c, "spatial dim %d of the input is empty", i);
    }
    return sn_wide_out(c, 0, x->dtype, dims, rank);
}

static sonde_status bind_sample(sn_bind *b)
{
    static const char *const names[] = {"grid_sample_nearest", "grid_sample_linear",
                                        "grid_sample_cubic"};
    const sample_params *r = b->params;
    const sn_dtype t = b->in[0]->type.dtype;
    if (r->mode != NEAREST &&
        (t == SONDE_DTYPE_STRING || t == SONDE_DTYPE_C64 || t == SONDE_DTYPE_C128))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "interpolation of %s is not possible",
                            sn_dtype_name(t));
    if (!sn_wide_takes(b->in[1]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "a grid of %s is not supported",
                            sn_dtype_name(b->in[1]->type.dtype));
    b->kernel = names[r->mode];
    return SONDE_OK;
}

/* ------------------------------------------------------------------ positions */
/* Mirrors v at lo and hi until it lies between; both are far from overflow. */
static double reflect(double v, double lo, double hi)
{
    const double span = hi - lo;
    if (span <= 0)
        return lo;
    double d = fmod(v - lo, 2 * span);
    if (d < 0)
        d += 2 * span;
    return d > span ? hi - (d - span) : lo + d;
}

typedef struct axis_taps {
    int n;
    int64_t at[4]; /* -1: outside, counts as zero */
    double weight[4];
} axis_taps;

/* Where an integer position lies in the input. */
static int64_t resolve(const sample_params *r, int64_t i, int64_t size)
{
    if (i >= 0 && i < size)
        return i;
    if (r->padding == ZEROS)
        return -1;
    if (r->padding == BORDER)
        return i < 0 ? 0 : size - 1;
    const double lo = r->align ? 0.0 : -0.5, hi = r->align ? (double)size - 1 : (double)size - 0.5;
    const int64_t at = (int64_t)reflect((double)i, lo, hi);
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

/* A grid value in elements of the input; in the grid's own precision, which decides about ties. */
static double position_of(const sample_params *r, sn_dtype t, const void *grid, int64_t i,
                          int64_t size)
{
    if (t == SONDE_DTYPE_F64) {
        const double v = ((const double *)grid)[i];
        return r->align ? (v + 1) / 2 * (double)(size - 1) : ((v + 1) * (double)size - 1) / 2;
    }
    const float v =
        t == SONDE_DTYPE_F32 ? ((const float *)grid)[i] : (float)sn_elem_f64(t, grid, i);
    return (double)(r->align ? (v + 1) / 2 * (float)(size - 1) : ((v + 1) * (float)size - 1) / 2);
}

static void taps_of(const sample_params *r, double v, int64_t size, axis_taps *a)
{
    const double lo = r->align ? 0.0 : -0.5, hi = r->align ? (double)size - 1 : (double)size - 0.5;
    if (r->mode == NEAREST)
        v = rint(v);
    if (isnan(v) || isinf(v)) {
        v = r->padding == ZEROS ? -16.0 : 0.0;
    } else if (v < lo || v > hi) {
        /* Zeros and borders are found tap by tap; far outside is as good as outside, and fits an
         * integer. */
        if (r->padding == REFLECTION)
            v = reflect(v, lo, hi);
        else
            v = v < -16.0 ? -16.0 : v > (double)size + 16.0 ? (double)size + 16.0 : v;
    }
    const double base = floor(v), t = v - base;
    const int64_t at = (int64_t)base;
    if (r->mode == NEAREST) {
        a->n = 1;
        a->at[0] = resolve(r, at, size);
        a->weight[0] = 1.0;
    } else if (r->mode == LINEAR) {
        a->n = 2;
        a->at[0] = resolve(r, at, size);
        a->at[1] = resolve(r, at + 1, size);
        a->weight[0] = 1.0 - t;
        a->weight[1] = t;
    } else {
        const double k = -0.75; /* Keys' cubic convolution */
        a->n = 4;
        for (int i = 0; i < 4; i++)
            a->at[i] = resolve(r, at - 1 + i, size);
        a->weight[0] = ((k * (t + 1) - 5 * k) * (t + 1) + 8 * k) * (t + 1) - 4 * k;
        a->weight[1] = ((k + 2) * t - (k + 3)) * t * t + 1;
        a->weight[2] = ((k + 2) * (1 - t) - (k + 3)) * (1 - t) * (1 - t) + 1;
        a->weight[3] = ((k * (2 - t) - 5 * k) * (2 - t) + 8 * k) * (2 - t) - 4 * k;
    }
}

/* ------------------------------------------------------------------ run */
typedef struct sample_call {
    const sample_params *r;
    const sn_tensor *x, *grid;
    sn_tensor *y;
    int spatial;
    int64_t channels, in_pixels, out_pixels;
} sample_call;

typedef struct tap_list {
    int n;
    int64_t at[MAX_TAPS];
    double weight[MAX_TAPS];
} tap_list;

static void collect(const sample_call *c, int64_t pixel, tap_list *list)
{
    list->n = 1;
    list->at[0] = 0;
    list->weight[0] = 1.0;
    for (int d = 0; d < c->spatial; d++) {
        const int64_t size = c->x->dims[d + 2];
        axis_taps a;
        tap_list next = {.n = 0};
        /* The grid names the innermost axis first. */
        const int64_t i = pixel * c->spatial + (c->spatial - 1 - d);
        taps_of(c->r, position_of(c->r, c->grid->dtype, c->grid->data, i, size), size, &a);
        for (int k = 0; k < list->n; k++)
            for (int j = 0; j < a.n; j++) {
                if (a.at[j] < 0 || a.weight[j] == 0)
                    continue;
                next.at[next.n] = list->at[k] * size + a.at[j];
                next.weight[next.n++] = list->weight[k] * a.weight[j];
            }
        *list = next;
    }
}

static void move_pixel(const sample_call *c, const tap_list *list, int64_t from, int64_t to)
{
    static const uint8_t zero[16];
    const size_t bytes = sn_dtype_bytes(c->x->dtype);
    for (int64_t ch = 0; ch < c->channels; ch++, from += c->in_pixels, to += c->out_pixels)
        sn_move_elem((char *)c->y->data + (size_t)to * bytes,
                     list->n ? (const char *)c->x->data + (size_t)(from + list->at[0]) * bytes
                             : (const char *)zero,
                     bytes);
}

static void mix_pixel(const sample_call *c, const tap_list *list, int64_t from, int64_t to)
{
    for (int64_t ch = 0; ch < c->channels; ch++, from += c->in_pixels, to += c->out_pixels) {
        double sum = 0;
        if (c->x->dtype == SONDE_DTYPE_F32) {
            const float *x = (const float *)c->x->data + from;
            for (int i = 0; i < list->n; i++)
                sum += list->weight[i] * (double)x[list->at[i]];
            ((float *)c->y->data)[to] = (float)sum;
            continue;
        }
        for (int i = 0; i < list->n; i++)
            sum += list->weight[i] * sn_elem_f64(c->x->dtype, c->x->data, from + list->at[i]);
        sn_elem_set_f64(c->y->dtype, c->y->data, to, sum);
    }
}

static void sample_range(void *arg, size_t lo, size_t hi)
{
    const sample_call *c = arg;
    tap_list list;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const int64_t image = i / c->out_pixels, pixel = i % c->out_pixels;
        const int64_t from = image * c->channels * c->in_pixels,
                      to = image * c->channels * c->out_pixels + pixel;
        collect(c, i, &list);
        if (c->r->mode == NEAREST)
            move_pixel(c, &list, from, to);
        else
            mix_pixel(c, &list, from, to);
    }
}

static sonde_status run_sample(const sn_step *s, sn_frame *f)
{
    sample_call c = {
        .r = s->params, .x = sn_in(s, f, 0), .grid = sn_in(s, f, 1), .y = sn_out(s, f, 0)};
    if (sn_tensor_count(c.y) == 0)
        return SONDE_OK;
    c.spatial = c.x->rank - 2;
    c.channels = c.x->dims[1];
    c.in_pixels = c.out_pixels = 1;
    for (int i = 0; i < c.spatial; i++) {
        c.in_pixels *= c.x->dims[i + 2];
        c.out_pixels *= c.y->dims[i + 2];
    }
    sn_parallel_range(f->pool, (size_t)(c.y->dims[0] * c.out_pixels),
                      (size_t)(50 + 20 * c.channels), sample_range, &c);
    return sn_move_own(s, f, 0);
}

#define SAMPLE(SINCE, UNTIL)                                                                       \
    {                                                                                              \
        SN_MOVE_HEAD("GridSample", SINCE, UNTIL, 2, 2, 1, 1),                                      \
            .params_size = sizeof(sample_params), .prepare = prepare_sample,                       \
            .infer = infer_sample, .bind = bind_sample, .run = run_sample,                         \
            .types = SN_MOVE_ALL_TYPES                                                             \
    }
const sn_op sn_op_grid_sample[] = {SAMPLE(16, 0), {.name = NULL}};

/* ------------------------------------------------------------------ AffineGrid */
static sonde_status prepare_affine(sn_prep *p)
{
    sample_params *r = p->params;
    int64_t align;
    SN_TRY(sn_prep_int(p, "align_corners", 0, &align));
    r->align = align != 0;
    return SONDE_OK;
}

static sonde_status infer_affine(sn_infer *c)
{
    const sn_type *theta = &c->in[0]->type;
    const sn_dim *size;
    int64_t n;
    SN_TRY(sn_wide_float(c, 0));
    SN_TRY(sn_move_list(c, 1, &size, &n));
    if (n >= 0 && n != 4 && n != 5)
        return sn_infer_fail(c, "size has %lld entries, expected 4 or 5", (long long)n);
    if (n < 0)
        return sn_infer_tensor(c, 0, theta->dtype, NULL, -1);
    const int spatial = (int)n - 2;
    sn_dim want[3] = {size ? size[0] : SN_DIM_UNKNOWN, spatial, spatial + 1}, dims[5];
    SN_TRY(sn_wide_dims(c, 0, want, 3));
    dims[0] = want[0];
    for (int i = 0; i < spatial; i++)
        dims[i + 1] = size ? size[i + 2] : SN_DIM_UNKNOWN;
    dims[spatial + 1] = spatial;
    return sn_wide_out(c, 0, theta->dtype, dims, spatial + 2);
}

static sonde_status run_affine(const sn_step *s, sn_frame *f)
{
    const sample_params *r = s->params;
    const sn_tensor *theta = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    const int spatial = y->rank - 2;
    const int64_t n = sn_tensor_count(y) / spatial, per_image = y->dims[0] ? n / y->dims[0] : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t image = i / per_image;
        double at[4];
        int64_t rest = i % per_image;
        for (int d = spatial; d > 0; d--) { /* innermost axis first, as rows of theta expect */
            const int64_t size = y->dims[d], k = rest % size;
            const double step =
                r->align ? (size > 1 ? 2.0 / (double)(size - 1) : 0.0) : 2.0 / (double)size;
            at[spatial - d] = -1.0 + (double)k * step + (r->align ? 0.0 : step / 2);
            rest /= size;
        }
        at[spatial] = 1.0;
        for (int row = 0; row < spatial; row++) {
            double sum = 0;
            for (int k = 0; k <= spatial; k++)
                sum += at[k] * sn_elem_f64(theta->dtype, theta->data,
                                           (image * spatial + row) * (spatial + 1) + k);
            sn_elem_set_f64(y->dtype, y->data, i * spatial + row, sum);
        }
    }
    return SONDE_OK;
}

const sn_op sn_op_affine_grid[] = {
    {SN_MOVE_HEAD("AffineGrid", 20, 0, 2, 2, 1, 1), .params_size = sizeof(sample_params),
     .prepare = prepare_affine, .infer = infer_affine, .run = run_affine, .types = SN_WIDE_TYPES},
    {.name = NULL}};
