/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to model inputs: the shorter side is resized, the centre cut out, channels normalised
 * where the input has floats.
 * The resize is bilinear with a filter that widens as the picture shrinks (as in Pillow), so that
 * detail is averaged instead of skipped. Only the rows and columns of the crop are computed: one
 * row of sums is all the memory it takes, whatever the shape of the picture. */
#include <math.h>
#include <string.h>

#include "base/codec.h"
#include "base/dtype.h"
#include "base/file.h"
#include "tensor_files/formats.h"

/* ------------------------------------------------------------------ what to make */
bool sn_image_dtype(sn_dtype dtype)
{
    switch (dtype) {
    case SONDE_DTYPE_F32:
    case SONDE_DTYPE_F64:
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16:
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_U16:
    case SONDE_DTYPE_I16:
    case SONDE_DTYPE_U32:
    case SONDE_DTYPE_I32:
    case SONDE_DTYPE_U64:
    case SONDE_DTYPE_I64:
        return true;
    default:
        return false;
    }
}

void sn_image_options_raw(sn_image_options *o, sn_dtype dtype)
{
    *o = (sn_image_options){.width = 224, .height = 224, .dtype = dtype};
    o->scale = sn_dtype_is_float(dtype) ? 0 : 1;
    for (int c = 0; c < 3; c++) {
        o->mean[c] = dtype == SONDE_DTYPE_I8 ? 128 : 0;
        o->deviation[c] = 1;
    }
}

void sn_image_options_default(sn_image_options *o, sn_dtype dtype)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f};
    static const float deviation[3] = {0.229f, 0.224f, 0.225f};
    sn_image_options_raw(o, dtype);
    if (!sn_dtype_is_float(dtype))
        return;
    memcpy(o->mean, mean, sizeof mean);
    memcpy(o->deviation, deviation, sizeof deviation);
}

float sn_image_mean(const sn_image_options *o, int channel)
{
    return o->scale != 0 ? o->mean[channel] / (255 * o->scale) : o->mean[channel];
}

float sn_image_deviation(const sn_image_options *o, int channel)
{
    return o->scale != 0 ? o->deviation[channel] / (255 * o->scale) : o->deviation[channel];
}

int sn_image_resize(const sn_image_options *o)
{
    const int crop = o->width > o->height ? o->width : o->height;
    return o->resize ? o->resize : (int)floor(crop * 256.0 / 224.0 + 0.5);
}

/* ------------------------------------------------------------------ filters */
/* One output position along an axis: `first` source index and the weights of `n` from there on. */
typedef struct filter {
    int first, n;
    float *weights;
} filter;

/* How wide the filter is, in source pixels on either side. */
static double support_of(double step)
{
    return step > 1.0 ? step : 1.0;
}

/* Weights of output position `at` (in the resized picture) over `size` source pixels; `step` is
 * source pixels per output pixel. */
static void make_filter(filter *f, double at, double step, int size)
{
    double centre = (at + 0.5) * step, support = support_of(step), sum = 0;
    int first = (int)floor(centre - support + 0.5), last = (int)floor(centre + support + 0.5);
    first = first < 0 ? 0 : first > size - 1 ? size - 1 : first;
    last = last > size ? size : last;
    f->first = first;
    f->n = last - first > 0 ? last - first : 1;
    for (int i = 0; i < f->n; i++) {
        double x = fabs((first + i + 0.5 - centre) / support);
        f->weights[i] = x < 1.0 ? (float)(1.0 - x) : 0.0f;
        sum += (double)f->weights[i];
    }
    for (int i = 0; i < f->n; i++)
        f->weights[i] = sum > 0 ? (float)((double)f->weights[i] / sum) : 1.0f / (float)f->n;
}

typedef struct resizer {
    const sn_picture *p;
    const sn_image_options *o;
    double step;      /* source pixels per output pixel, both axes */
    double left, top; /* of the crop, in the resized picture */
    float *row;       /* width * 3 sums */
    float *weights;   /* scratch of one filter */
} resizer;

/* Row y of the crop, summed over source rows, all columns of the source. */
static void sum_rows(const resizer *r, int y)
{
    filter f = {.weights = r->weights};
    size_t n = (size_t)r->p->width * 3;
    make_filter(&f, r->top + y, r->step, r->p->height);
    for (size_t i = 0; i < n; i++)
        r->row[i] = 0;
    for (int k = 0; k < f.n; k++) {
        const uint8_t *src = r->p->rgb + (size_t)(f.first + k) * n;
        float w = f.weights[k];
        for (size_t i = 0; i < n; i++)
            r->row[i] += w * (float)src[i];
    }
}

/* ------------------------------------------------------------------ elements */
static float normalise(const sn_image_options *o, float v, int c)
{
    v = o->scale != 0 ? v * o->scale : v / 255.0f;
    return (v - o->mean[c]) / o->deviation[c];
}

/* To the nearest integer the type has. */
static int64_t whole(float v, int64_t least, int64_t most)
{
    const double x = nearbyint((double)v);
    return !(x > (double)least) ? least : x >= (double)most ? most : (int64_t)x;
}

static void put(const sn_image_options *o, void *data, size_t i, float v)
{
    switch (o->dtype) {
    case SONDE_DTYPE_F64:
        ((double *)data)[i] = (double)v;
        break;
    case SONDE_DTYPE_F16:
        ((uint16_t *)data)[i] = sn_f32_to_f16(v);
        break;
    case SONDE_DTYPE_BF16:
        ((uint16_t *)data)[i] = sn_f32_to_bf16(v);
        break;
    case SONDE_DTYPE_U8:
        ((uint8_t *)data)[i] = (uint8_t)whole(v, 0, UINT8_MAX);
        break;
    case SONDE_DTYPE_I8:
        ((int8_t *)data)[i] = (int8_t)whole(v, INT8_MIN, INT8_MAX);
        break;
    case SONDE_DTYPE_U16:
        ((uint16_t *)data)[i] = (uint16_t)whole(v, 0, UINT16_MAX);
        break;
    case SONDE_DTYPE_I16:
        ((int16_t *)data)[i] = (int16_t)whole(v, INT16_MIN, INT16_MAX);
        break;
    case SONDE_DTYPE_U32:
        ((uint32_t *)data)[i] = (uint32_t)whole(v, 0, UINT32_MAX);
        break;
    case SONDE_DTYPE_I32:
        ((int32_t *)data)[i] = (int32_t)whole(v, INT32_MIN, INT32_MAX);
        break;
    case SONDE_DTYPE_U64:
        ((uint64_t *)data)[i] = (uint64_t)whole(v, 0, INT64_MAX);
        break;
    case SONDE_DTYPE_I64:
        ((int64_t *)data)[i] = whole(v, INT64_MIN, INT64_MAX);
        break;
    default:
        ((float *)data)[i] = v;
    }
}

static void write_row(const resizer *r, int y, void *out)
{
    const sn_image_options *o = r->o;
    size_t w = (size_t)o->width, h = (size_t)o->height;
    for (int x = 0; x < o->width; x++) {
        filter f = {.weights = r->weights};
        float sum[3] = {0};
        make_filter(&f, r->left + x, r->step, r->p->width);
        for (int k = 0; k < f.n; k++)
            for (int c = 0; c < 3; c++)
                sum[c] += f.weights[k] * r->row[(size_t)(f.first + k) * 3 + (size_t)c];
        for (int c = 0; c < 3; c++) {
            size_t plane = (size_t)(o->bgr ? 2 - c : c), pixel = (size_t)y * w + (size_t)x;
            /* Mean and deviation belong to the colour, whatever its place. */
            put(o, out, o->nhwc ? pixel * 3 + plane : plane * w * h + pixel,
                normalise(o, sum[c], c));
        }
    }
}

static sonde_status check_options(const sn_image_options *o, sonde_error *err)
{
    if (o->width < 1 || o->height < 1 || o->width > 1 << 14 || o->height > 1 << 14 ||
        o->resize < 0 || o->resize > 1 << 15)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "an image of %d x %d pixels is not possible",
                       o->width, o->height);
    if (!sn_image_dtype(o->dtype))
        return sn_fail(err, SONDE_UNSUPPORTED, "images do not become tensors of %s",
                       sn_dtype_name(o->dtype));
    if (!isfinite(o->scale))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the scale of an image must be a number");
    for (int c = 0; c < 3; c++)
        if (!(o->deviation[c] > 0) || !isfinite(o->deviation[c]) || !isfinite(o->mean[c]))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the mean of channel %d must be a number, and its standard deviation "
                           "a positive one",
                           c);
    return SONDE_OK;
}

sonde_status sn_image_to_tensor(const sn_picture *p, const sn_image_options *o, sn_allocator *alloc,
                                sn_slot *out, sonde_error *err)
{
    SN_TRY(check_options(o, err));
    int shorter = p->width < p->height ? p->width : p->height;
    double side = sn_image_resize(o);
    /* Never smaller than the crop. */
    double scale =
        fmax(side / shorter, fmax((double)o->width / p->width, (double)o->height / p->height));
    double wide = fmax(floor(p->width * scale + 0.5), o->width);
    double high = fmax(floor(p->height * scale + 0.5), o->height);
    resizer r = {.p = p, .o = o, .step = 1.0 / scale};
    r.left = floor((wide - o->width) / 2.0 + 0.5);
    r.top = floor((high - o->height) / 2.0 + 0.5);
    size_t most = (size_t)(2 * support_of(r.step)) + 4;
    size_t row_bytes = (size_t)p->width * 3 * sizeof(float), weight_bytes = most * sizeof(float);
    int64_t nchw[4] = {1, 3, o->height, o->width}, nhwc[4] = {1, o->height, o->width, 3};
    sonde_status st = sn_slot_new_tensor(out, o->dtype, o->nhwc ? nhwc : nchw, 4, alloc, err);
    SN_TRY(st);
    r.row = sn_alloc(alloc, row_bytes);
    r.weights = sn_alloc(alloc, weight_bytes);
    if (!r.row || !r.weights)
        st = sn_fail_memory(err, row_bytes);
    for (int y = 0; y < o->height && st == SONDE_OK; y++) {
        sum_rows(&r, y);
        write_row(&r, y, out->t.data);
    }
    sn_free(alloc, r.row, row_bytes);
    sn_free(alloc, r.weights, weight_bytes);
    if (st != SONDE_OK)
        sn_slot_clear(out);
    return st;
}

sonde_status sn_tensor_file_read_image(const char *path, const sn_image_options *o,
                                       sn_allocator *alloc, sn_slot *out, sonde_error *err)
{
    sn_image_options defaults;
    sn_file f;
    sn_picture p;
    sn_image_options_default(&defaults, SONDE_DTYPE_F32);
    SN_TRY(sn_file_open(&f, path, !(o && o->no_mmap), alloc, err));
    sonde_status st = sn_picture_decode(f.data, f.bytes, alloc, &p, err);
    sn_file_close(&f);
    if (st == SONDE_OK) {
        st = sn_image_to_tensor(&p, o ? o : &defaults, alloc, out, err);
        sn_picture_free(&p, alloc);
    }
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(err, "'%.300s'", path);
    return st;
}

/* The size, the layout and the elements an image input wants, as far as its type tells. */
static void image_options_from(const sn_type *as, sn_image_options *o)
{
    const bool known = as && as->kind == SN_KIND_TENSOR && as->dtype != SONDE_DTYPE_UNDEFINED;
    sn_image_options_default(o, known ? as->dtype : SONDE_DTYPE_F32);
    if (!as || as->kind != SN_KIND_TENSOR || as->rank != 4)
        return;
    const sn_dim *d = as->dims;
    o->nhwc = d[3] == 3 && d[1] != 3;
    sn_dim h = d[o->nhwc ? 1 : 2], w = d[o->nhwc ? 2 : 3];
    if (h > 0 && h <= 1 << 14)
        o->height = (int)h;
    if (w > 0 && w <= 1 << 14)
        o->width = (int)w;
}

sonde_status sn_image_read(const char *path, const sn_type *as, sn_named_list *out,
                           sonde_error *err)
{
    sn_image_options o;
    sn_slot slot = {0};
    image_options_from(as, &o);
    o.no_mmap = out->no_mmap;
    SN_TRY(sn_tensor_file_read_image(path, &o, out->alloc, &slot, err));
    sonde_status st = sn_named_add(out, "", &slot, err);
    sn_slot_clear(&slot);
    return st;
}
