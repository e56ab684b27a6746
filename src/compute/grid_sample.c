/* SPDX-License-Identifier: Apache-2.0 */
/* A grid position becomes, axis by axis, a few input positions with their weights; their product is
 * a short list of taps that all channels share. The usual case, f32 images of two spatial dims and
 * linear interpolation, has four taps a pixel: those of some pixels are found first, then all their
 * channels are mixed. */
#include "compute/grid_sample.h"

#include <float.h>
#include <math.h>

#include "compute/parallel.h"
#include "compute/small_floats.h"
#include "compute/split.h"

enum { MAX_TAPS = 64 };

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
static int64_t resolve(const sn_grid_sample *g, int64_t i, int64_t size)
{
    if (i >= 0 && i < size)
        return i;
    if (g->padding == SN_SAMPLE_ZEROS)
        return -1;
    if (g->padding == SN_SAMPLE_BORDER)
        return i < 0 ? 0 : size - 1;
    const double lo = g->align_corners ? 0.0 : -0.5,
                 hi = g->align_corners ? (double)size - 1 : (double)size - 0.5;
    const int64_t at = (int64_t)reflect((double)i, lo, hi);
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

/* A grid value in elements of the input; in the grid's own precision, which decides about ties. */
static double position_of(const sn_grid_sample *g, sonde_dtype t, const void *grid, int64_t i,
                          int64_t size)
{
    if (t == SONDE_DTYPE_F64) {
        const double v = ((const double *)grid)[i];
        return g->align_corners ? (v + 1) / 2 * (double)(size - 1)
                                : ((v + 1) * (double)size - 1) / 2;
    }
    const float v =
        t == SONDE_DTYPE_F32 ? ((const float *)grid)[i] : (float)sn_elem_f64(t, grid, i);
    return (double)(g->align_corners ? (v + 1) / 2 * (float)(size - 1)
                                     : ((v + 1) * (float)size - 1) / 2);
}

static void taps_of(const sn_grid_sample *g, double v, int64_t size, axis_taps *a)
{
    const double lo = g->align_corners ? 0.0 : -0.5,
                 hi = g->align_corners ? (double)size - 1 : (double)size - 0.5;
    if (g->mode == SN_SAMPLE_NEAREST)
        v = rint(v);
    if (isnan(v) || isinf(v)) {
        v = g->padding == SN_SAMPLE_ZEROS ? -16.0 : 0.0;
    } else if (v < lo || v > hi) {
        /* Zeros and borders are found tap by tap; far outside is as good as outside, and fits an
         * integer. */
        if (g->padding == SN_SAMPLE_REFLECTION)
            v = reflect(v, lo, hi);
        else
            v = v < -16.0 ? -16.0 : v > (double)size + 16.0 ? (double)size + 16.0 : v;
    }
    const double base = floor(v), t = v - base;
    const int64_t at = (int64_t)base;
    if (g->mode == SN_SAMPLE_NEAREST) {
        a->n = 1;
        a->at[0] = resolve(g, at, size);
        a->weight[0] = 1.0;
    } else if (g->mode == SN_SAMPLE_LINEAR) {
        a->n = 2;
        a->at[0] = resolve(g, at, size);
        a->at[1] = resolve(g, at + 1, size);
        a->weight[0] = 1.0 - t;
        a->weight[1] = t;
    } else {
        const double k = -0.75; /* Keys' cubic convolution */
        a->n = 4;
        for (int i = 0; i < 4; i++)
            a->at[i] = resolve(g, at - 1 + i, size);
        a->weight[0] = ((k * (t + 1) - 5 * k) * (t + 1) + 8 * k) * (t + 1) - 4 * k;
        a->weight[1] = ((k + 2) * t - (k + 3)) * t * t + 1;
        a->weight[2] = ((k + 2) * (1 - t) - (k + 3)) * (1 - t) * (1 - t) + 1;
        a->weight[3] = ((k * (2 - t) - 5 * k) * (2 - t) + 8 * k) * (2 - t) - 4 * k;
    }
}

/* ------------------------------------------------------------------ sampling */
typedef struct job {
    const sn_grid_sample *g;
    sn_elems y, x, grid;
    int64_t in_pixels, out_pixels;
} job;

typedef struct tap_list {
    int n;
    int64_t at[MAX_TAPS];
    double weight[MAX_TAPS];
} tap_list;

static void axis_of(const job *c, int64_t pixel, int d, axis_taps *a)
{
    /* The grid names the innermost axis first. */
    const int64_t i = pixel * c->g->spatial + (c->g->spatial - 1 - d), size = c->g->in[d];
    taps_of(c->g, position_of(c->g, c->grid.dtype, c->grid.data, i, size), size, a);
}

/* From the innermost axis outwards: an axis multiplies the taps there are, those of its last
 * position in place, when the others have been made of them. */
static void collect(const job *c, int64_t pixel, tap_list *list)
{
    int64_t stride = 1;
    list->n = 1;
    list->at[0] = 0;
    list->weight[0] = 1.0;
    for (int d = c->g->spatial - 1; d >= 0; stride *= c->g->in[d], d--) {
        axis_taps a;
        axis_of(c, pixel, d, &a);
        int used = 0;
        for (int j = 0; j < a.n; j++)
            if (a.at[j] >= 0 && a.weight[j] != 0) {
                a.at[used] = a.at[j];
                a.weight[used++] = a.weight[j];
            }
        const int n = list->n;
        for (int j = used - 1; j >= 0; j--)
            for (int k = 0; k < n; k++) {
                list->at[j * n + k] = list->at[k] + a.at[j] * stride;
                list->weight[j * n + k] = list->weight[k] * a.weight[j];
            }
        list->n = n * used;
    }
}

static void move_pixel(const job *c, const tap_list *list, int64_t from, int64_t to)
{
    static const uint8_t zero[16];
    const size_t bytes = sn_dtype_bytes(c->x.dtype);
    for (int64_t ch = 0; ch < c->g->channels; ch++, from += c->in_pixels, to += c->out_pixels)
        sn_elem_copy((char *)c->y.data + (size_t)to * bytes,
                     list->n ? (const char *)c->x.data + (size_t)(from + list->at[0]) * bytes
                             : (const char *)zero,
                     bytes);
}

static void mix_pixel(const job *c, const tap_list *list, int64_t from, int64_t to)
{
    for (int64_t ch = 0; ch < c->g->channels; ch++, from += c->in_pixels, to += c->out_pixels) {
        double sum = 0;
        if (c->x.dtype == SONDE_DTYPE_F32) {
            const float *x = (const float *)c->x.data + from;
            for (int i = 0; i < list->n; i++)
                sum += list->weight[i] * (double)x[list->at[i]];
            ((float *)c->y.data)[to] = (float)sum;
            continue;
        }
        for (int i = 0; i < list->n; i++)
            sum += list->weight[i] * sn_elem_f64(c->x.dtype, c->x.data, from + list->at[i]);
        sn_elem_set_f64(c->y.dtype, c->y.data, to, sum);
    }
}

/* ------------------------------------------------------------------ four corners */
enum { CORNERS = 4, PIXELS = 64, LONGEST = 1 << 24 /* positions are whole numbers in f32 */ };

/* Of a few pixels. */
typedef struct corners {
    int32_t at[CORNERS][PIXELS];
    float weight[CORNERS][PIXELS]; /* 0: the corner does not count, whatever is there */
} corners;

static bool has_corners(const job *c)
{
    const sn_grid_sample *g = c->g;
    return g->mode == SN_SAMPLE_LINEAR && g->padding != SN_SAMPLE_REFLECTION && g->spatial == 2 &&
           c->x.dtype == SONDE_DTYPE_F32 && c->grid.dtype == SONDE_DTYPE_F32 &&
           c->in_pixels <= INT32_MAX && g->in[0] <= LONGEST && g->in[1] <= LONGEST;
}

/* Both neighbours along an axis, as taps_of finds them. */
static inline void neighbours(const sn_grid_sample *g, float v, int32_t size, int32_t at[2],
                              float weight[2])
{
    const float reach = 16.0f, end = (float)size;
    const bool zeros = g->padding == SN_SAMPLE_ZEROS;
    v = g->align_corners ? (v + 1) / 2 * (float)(size - 1) : ((v + 1) * end - 1) / 2;
    if (!(fabsf(v) <= FLT_MAX))
        v = zeros ? -reach : 0.0f;
    v = v < -reach ? -reach : v > end + reach ? end + reach : v;
    const int32_t whole = (int32_t)v, base = whole - (v < (float)whole);
    const float t = v - (float)base;
    for (int32_t i = 0; i < 2; i++) {
        const int32_t k = base + i, inside = k < 0 ? 0 : k >= size ? size - 1 : k;
        at[i] = inside;
        weight[i] = zeros && k != inside ? 0.0f : i ? t : 1.0f - t;
    }
}

static void find_corners(const job *c, int64_t first, int64_t n, corners *to)
{
    const float *grid = (const float *)c->grid.data + 2 * first;
    const int32_t height = (int32_t)c->g->in[0], width = (int32_t)c->g->in[1];
    for (int64_t i = 0; i < n; i++) {
        int32_t x[2], y[2];
        float wx[2], wy[2];
        neighbours(c->g, grid[2 * i], width, x, wx);
        neighbours(c->g, grid[2 * i + 1], height, y, wy);
        for (int k = 0; k < CORNERS; k++) {
            to->at[k][i] = y[k / 2] * width + x[k % 2];
            to->weight[k][i] = wy[k / 2] * wx[k % 2];
        }
    }
}

static inline float counted(float weight, float x)
{
    return weight != 0.0f ? weight * x : 0.0f;
}

static void mix_corners(const float *x, const corners *from, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        float sum[CORNERS];
        for (int k = 0; k < CORNERS; k++)
            sum[k] = counted(from->weight[k][i], x[from->at[k][i]]);
        y[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

static void corners_range(void *arg, size_t lo, size_t hi)
{
    const job *c = arg;
    corners list;
    for (int64_t i = (int64_t)lo, n; i < (int64_t)hi; i += n) {
        const int64_t image = i / c->out_pixels, pixel = i % c->out_pixels;
        const int64_t left = sn_min((int64_t)hi - i, c->out_pixels - pixel);
        n = sn_min(left, PIXELS);
        find_corners(c, i, n, &list);
        for (int64_t k = 0; k < c->g->channels; k++) {
            const int64_t plane = image * c->g->channels + k;
            mix_corners((const float *)c->x.data + plane * c->in_pixels, &list, n,
                        (float *)c->y.data + plane * c->out_pixels + pixel);
        }
    }
}

/* ------------------------------------------------------------------ any taps */
static void sample_range(void *arg, size_t lo, size_t hi)
{
    const job *c = arg;
    tap_list list;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const int64_t image = i / c->out_pixels, pixel = i % c->out_pixels;
        const int64_t from = image * c->g->channels * c->in_pixels,
                      to = image * c->g->channels * c->out_pixels + pixel;
        collect(c, i, &list);
        if (c->g->mode == SN_SAMPLE_NEAREST)
            move_pixel(c, &list, from, to);
        else
            mix_pixel(c, &list, from, to);
    }
}

void sn_grid_sample_run(const sn_grid_sample *g, sn_elems y, sn_elems x, sn_elems grid,
                        sn_pool *pool)
{
    job c = {.g = g, .y = y, .x = x, .grid = grid, .in_pixels = 1, .out_pixels = 1};
    for (int i = 0; i < g->spatial; i++) {
        c.in_pixels *= g->in[i];
        c.out_pixels *= g->out[i];
    }
    const bool four = has_corners(&c);
    sn_parallel_range(pool, (size_t)(g->images * c.out_pixels),
                      (size_t)((four ? 8 : 50) + (four ? 4 : 20) * g->channels),
                      four ? corners_range : sample_range, &c);
}

/* ------------------------------------------------------------------ affine grids */
void sn_affine_grid_run(const sn_affine_grid *g, sn_elems y, sn_elems theta)
{
    const int spatial = g->spatial;
    int64_t per_image = 1;
    for (int i = 0; i < spatial; i++)
        per_image *= g->out[i];
    for (int64_t i = 0; i < g->images * per_image; i++) {
        const int64_t image = i / per_image;
        double at[SN_SAMPLE_SPATIAL + 1];
        int64_t rest = i % per_image;
        for (int d = spatial; d > 0; d--) { /* innermost axis first, as rows of theta expect */
            const int64_t size = g->out[d - 1], k = rest % size;
            const double step =
                g->align_corners ? (size > 1 ? 2.0 / (double)(size - 1) : 0.0) : 2.0 / (double)size;
            at[spatial - d] = -1.0 + (double)k * step + (g->align_corners ? 0.0 : step / 2);
            rest /= size;
        }
        at[spatial] = 1.0;
        for (int row = 0; row < spatial; row++) {
            double sum = 0;
            for (int k = 0; k <= spatial; k++)
                sum += at[k] * sn_elem_f64(theta.dtype, theta.data,
                                           (image * spatial + row) * (spatial + 1) + k);
            sn_elem_set_f64(y.dtype, y.data, i * spatial + row, sum);
        }
    }
}
