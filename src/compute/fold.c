/* SPDX-License-Identifier: Apache-2.0 */
/* See fold.h. Each tap adds whole rows of the innermost axis, cut to what lies inside the image. */
#include "compute/fold.h"

#include <string.h>

#include "compute/parallel.h"
#include "compute/small_floats.h"
#include "compute/split.h"

/* y[i * step] += x[i] */
typedef void add_row_fn(void *y, int64_t step, const void *x, int64_t n);

/* X(DTYPE, element type, type the sum is made in, elements of that type per tensor element) */
#define NATIVE_LIST(X)                                                                             \
    X(F32, float, float, 1)                                                                        \
    X(F64, double, double, 1)                                                                      \
    X(C64, float, float, 2)                                                                        \
    X(C128, double, double, 2)                                                                     \
    X(I8, int8_t, uint32_t, 1)                                                                     \
    X(I16, int16_t, uint32_t, 1)                                                                   \
    X(I32, int32_t, uint32_t, 1)                                                                   \
    X(I64, int64_t, uint64_t, 1)                                                                   \
    X(U8, uint8_t, uint32_t, 1)                                                                    \
    X(U16, uint16_t, uint32_t, 1)                                                                  \
    X(U32, uint32_t, uint32_t, 1)                                                                  \
    X(U64, uint64_t, uint64_t, 1)

#define ADD_ROW(dtype, T, S, parts)                                                                \
    static void add_row_##dtype(void *py, int64_t step, const void *px, int64_t n)                 \
    {                                                                                              \
        T *y = py;                                                                                 \
        const T *x = px;                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t k = 0; k < (parts); k++)                                                  \
                y[i * step * (parts) + k] =                                                        \
                    (T)((S)y[i * step * (parts) + k] + (S)x[i * (parts) + k]);                     \
    }
NATIVE_LIST(ADD_ROW)
#undef ADD_ROW

static void add_row_BOOL(void *py, int64_t step, const void *px, int64_t n)
{
    uint8_t *y = py;
    const uint8_t *x = px;
    for (int64_t i = 0; i < n; i++)
        y[i * step] = y[i * step] || x[i];
}

#define ADD_HALF(dtype)                                                                            \
    static void add_row_##dtype(void *py, int64_t step, const void *px, int64_t n)                 \
    {                                                                                              \
        uint16_t *y = py;                                                                          \
        const uint16_t *x = px;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a, b;                                                                            \
            sn_load_f32(0, SONDE_DTYPE_##dtype, &a, y + i * step, 1);                              \
            sn_load_f32(0, SONDE_DTYPE_##dtype, &b, x + i, 1);                                     \
            a += b;                                                                                \
            sn_store_f32(0, SONDE_DTYPE_##dtype, y + i * step, &a, 1, (sn_rounding){0});           \
        }                                                                                          \
    }
ADD_HALF(F16)
ADD_HALF(BF16)
#undef ADD_HALF

static add_row_fn *row_of(sonde_dtype t, size_t *bytes)
{
    switch (t) {
#define CASE(dtype, T, S, parts)                                                                   \
    case SONDE_DTYPE_##dtype:                                                                      \
        *bytes = sizeof(T) * (parts);                                                              \
        return add_row_##dtype;
        NATIVE_LIST(CASE)
        CASE(BOOL, uint8_t, uint8_t, 1)
        CASE(F16, uint16_t, float, 1)
        CASE(BF16, uint16_t, float, 1)
#undef CASE
    default:
        return NULL;
    }
}

bool sn_fold_takes(sonde_dtype dtype)
{
    size_t bytes;
    return row_of(dtype, &bytes) != NULL;
}

/* Grid positions whose tap at `offset` lies inside the image: first … end-1. */
static void inside(int64_t offset, int64_t stride, int64_t image, int64_t grid, int64_t *first,
                   int64_t *end)
{
    *first = offset >= 0 ? 0 : sn_ceil_div(-offset, stride);
    *end = offset >= image ? 0 : sn_min(grid, (image - 1 - offset) / stride + 1);
}

/* All rows of one tap. */
static void add_tap(const sn_fold *f, add_row_fn *add, size_t bytes, const int64_t *tap,
                    const char *x, char *y)
{
    const int last = f->rank - 1;
    int64_t first[SN_FOLD_MAX_RANK], end[SN_FOLD_MAX_RANK], at[SN_FOLD_MAX_RANK],
        offset[SN_FOLD_MAX_RANK];
    for (int a = 0; a <= last; a++) {
        offset[a] = tap[a] * f->dilation[a] - f->pad[a];
        inside(offset[a], f->stride[a], f->image[a], f->grid[a], &first[a], &end[a]);
        if (first[a] >= end[a])
            return;
        at[a] = first[a];
    }
    for (;;) {
        int64_t from = 0, to = 0;
        for (int a = 0; a <= last; a++) {
            from = from * f->grid[a] + at[a];
            to = to * f->image[a] + at[a] * f->stride[a] + offset[a];
        }
        add(y + (size_t)to * bytes, f->stride[last], x + (size_t)from * bytes,
            end[last] - first[last]);
        int a = last - 1;
        for (; a >= 0 && ++at[a] == end[a]; a--)
            at[a] = first[a];
        if (a < 0)
            return;
    }
}

void sn_fold_add(const sn_fold *f, const void *columns, void *y)
{
    size_t bytes = 0;
    add_row_fn *add = row_of(f->dtype, &bytes);
    int64_t tap[SN_FOLD_MAX_RANK] = {0}, grid = 1, taps = 1;
    const char *x = columns;
    for (int a = 0; a < f->rank; a++) {
        grid *= f->grid[a];
        taps *= f->kernel[a];
    }
    for (int64_t k = 0; k < taps; k++, x += (size_t)grid * bytes) {
        add_tap(f, add, bytes, tap, x, y);
        for (int a = f->rank - 1; a >= 0 && ++tap[a] == f->kernel[a]; a--)
            tap[a] = 0;
    }
}

/* ------------------------------------------------------------------ position by position */
/* A row of taps into each channel. `n` is a constant where rows are short. */
static inline void add_taps(float *restrict y, int64_t plane, const float *restrict x, int64_t taps,
                            int64_t channels, int64_t step, const int64_t n)
{
    for (int64_t c = 0; c < channels; c++, y += plane, x += taps)
        for (int64_t k = 0; k < n; k++)
            y[k * step] += x[k];
}

static void add_row_of_taps(float *y, int64_t plane, const float *x, int64_t taps, int64_t channels,
                            int64_t step, int64_t n)
{
    if (step == 1 && n == 4)
        add_taps(y, plane, x, taps, channels, 1, 4);
    else if (step == 1 && n == 3)
        add_taps(y, plane, x, taps, channels, 1, 3);
    else if (step == 1 && n == 2)
        add_taps(y, plane, x, taps, channels, 1, 2);
    else
        add_taps(y, plane, x, taps, channels, step, n);
}

/* Where outer taps of a position land: false, outside. */
static bool outer_place(const sn_fold *f, const int64_t *at, int64_t tap, int64_t *place)
{
    int64_t scale = 1;
    *place = 0;
    for (int a = f->rank - 2; a >= 0; a--) {
        const int64_t i = at[a] * f->stride[a] + tap % f->kernel[a] * f->dilation[a] - f->pad[a];
        if (i < 0 || i >= f->image[a])
            return false;
        *place += i * scale;
        scale *= f->image[a];
        tap /= f->kernel[a];
    }
    return true;
}

/* Positions side by side, up to the end of a row of the grid. */
typedef struct fold_run {
    const sn_fold *f;
    const float *columns;
    int64_t width, at[SN_FOLD_MAX_RANK], count;
    int64_t outer, plane; /* taps but for those of the last axis; pixels */
} fold_run;

/* Position by position: whole rows of taps. */
static void add_wide(const fold_run *r, int64_t channels, float *y)
{
    const sn_fold *f = r->f;
    const int last = f->rank - 1;
    const int64_t kernel = f->kernel[last], step = f->dilation[last], image = f->image[last];
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t x = (r->at[last] + i) * f->stride[last] - f->pad[last];
        int64_t from, end, place;
        inside(x, step, image, kernel, &from, &end);
        for (int64_t tap = 0; tap < r->outer && from < end; tap++)
            if (outer_place(f, r->at, tap, &place))
                add_row_of_taps(y + place * image + x + from * step, r->plane,
                                r->columns + i * r->width + tap * kernel + from, r->outer * kernel,
                                channels, step, end - from);
    }
}

/* Tap by tap: where taps of neighbours meet, a row of taps would wait for the one before it. */
static void add_narrow(const fold_run *r, int64_t channels, float *y)
{
    const sn_fold *f = r->f;
    const int last = f->rank - 1;
    const int64_t kernel = f->kernel[last], stride = f->stride[last], image = f->image[last];
    for (int64_t tap = 0; tap < r->outer; tap++) {
        int64_t place;
        if (!outer_place(f, r->at, tap, &place))
            continue;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = 0; k < kernel; k++) {
                const int64_t offset = k * f->dilation[last] - f->pad[last];
                int64_t from, end;
                inside(offset, stride, image, f->grid[last], &from, &end);
                from = sn_max(from, r->at[last]);
                end = sn_min(end, r->at[last] + r->count);
                const float *x = r->columns + (from - r->at[last]) * r->width +
                                 (c * r->outer + tap) * kernel + k;
                float *to = y + c * r->plane + place * image + from * stride + offset;
                for (; from < end; from++, x += r->width, to += stride)
                    *to += *x;
            }
    }
}

void sn_fold_add_positions(const sn_fold *f, const float *columns, int64_t width, int64_t first,
                           int64_t count, int64_t channels, float *y)
{
    enum { NARROW = 128 }; /* floats: columns of a row of the grid lie in the first-level cache */
    const int last = f->rank - 1;
    const bool meet = (f->kernel[last] - 1) * f->dilation[last] >= f->stride[last];
    fold_run r = {.f = f, .columns = columns, .width = width, .outer = 1, .plane = f->image[last]};
    for (int a = 0; a < last; a++) {
        r.outer *= f->kernel[a];
        r.plane *= f->image[a];
    }
    for (int64_t i = first; i < first + count; i += r.count, r.columns += r.count * width) {
        int64_t left = i;
        for (int a = last; a >= 0; left /= f->grid[a], a--)
            r.at[a] = left % f->grid[a];
        r.count = sn_min(f->grid[last] - r.at[last], first + count - i);
        if (meet && width <= NARROW)
            add_narrow(&r, channels, y);
        else
            add_wide(&r, channels, y);
    }
}

/* ------------------------------------------------------------------ channels side by side */
typedef struct fold_call {
    const sn_fold *f;
    const uint8_t *columns;
    uint8_t *y;
    size_t column_bytes, image_bytes; /* of a channel */
} fold_call;

static void fold_range(void *arg, size_t lo, size_t hi)
{
    const fold_call *c = arg;
    for (size_t i = lo; i < hi; i++)
        sn_fold_add(c->f, c->columns + i * c->column_bytes, c->y + i * c->image_bytes);
}

void sn_fold_run(const sn_fold *f, int64_t channels, const void *columns, void *y, sn_pool *pool)
{
    size_t cells = 1, pixels = 1;
    for (int i = 0; i < f->rank; i++) {
        cells *= (size_t)(f->kernel[i] * f->grid[i]);
        pixels *= (size_t)f->image[i];
    }
    const size_t elem = sn_dtype_bytes(f->dtype);
    fold_call c = {f, columns, y, cells * elem, pixels * elem};
    memset(y, 0, (size_t)channels * c.image_bytes);
    sn_parallel_range(pool, (size_t)channels, cells, fold_range, &c);
}
