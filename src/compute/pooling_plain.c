/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of one channel of a plain tensor, any element type: the loops are written once per
 * arithmetic (maximum, sum, power sum) and expanded per type. */
#include <float.h>
#include <math.h>

#include "compute/conv.h"
#include "compute/pooling.h"
#include "compute/split.h"

/* The window of one output element, cut to the image. */
typedef struct window {
    int64_t first[3], end[3]; /* taps */
    int64_t at[3];            /* input position of tap 0 */
    int64_t taps;             /* inside */
    int64_t padded;           /* inside the padded image */
} window;

static void window_at(const sn_pooling_desc *d, const int64_t o[3], window *w)
{
    w->taps = w->padded = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t reach = (d->kernel[i] - 1) * d->dilation[i] + 1;
        w->at[i] = o[i] * d->stride[i] - d->pad[i];
        if (w->at[i] >= 0 && w->at[i] <= d->in[i] - reach && d->pad_end[i] >= 0) {
            w->first[i] = 0; /* most are whole, and divisions take longer than small windows */
            w->end[i] = d->kernel[i];
            w->taps *= d->kernel[i];
            w->padded *= d->kernel[i];
            continue;
        }
        sn_conv_taps(o[i], d->stride[i], d->pad[i], d->dilation[i], d->kernel[i], d->in[i],
                     &w->first[i], &w->end[i]);
        w->taps *= w->end[i] - w->first[i];
        w->padded *=
            sn_min(d->kernel[i], sn_ceil_div(d->in[i] + d->pad_end[i] - w->at[i], d->dilation[i]));
    }
}

/* Calls BODY with `offset`, the position in the plane, for each tap of w. */
#define EACH_TAP(d, w, BODY)                                                                       \
    for (int64_t k0 = (w).first[0]; k0 < (w).end[0]; k0++)                                         \
        for (int64_t k1 = (w).first[1]; k1 < (w).end[1]; k1++)                                     \
            for (int64_t k2 = (w).first[2]; k2 < (w).end[2]; k2++) {                               \
                const int64_t i0 = (w).at[0] + k0 * (d)->dilation[0];                              \
                const int64_t i1 = (w).at[1] + k1 * (d)->dilation[1];                              \
                const int64_t i2 = (w).at[2] + k2 * (d)->dilation[2];                              \
                const int64_t offset = (i0 * (d)->in[1] + i1) * (d)->in[2] + i2;                   \
                BODY                                                                               \
            }

/* The index ONNX's storage_order 1 gives: the spatial dims counted first to last. */
static int64_t column_major(const sn_pooling_desc *d, int64_t offset)
{
    const int64_t w = offset % d->in[2], h = offset / d->in[2] % d->in[1];
    const int64_t depth = offset / d->in[2] / d->in[1];
    return depth + d->in[0] * (h + d->in[1] * w);
}

#define MAX_PLANE(T, LOWEST)                                                                       \
    static void max_plane_##T(const sn_pooling_desc *d, const T *x, T *y, int64_t *indices,        \
                              int64_t base)                                                        \
    {                                                                                              \
        window w;                                                                                  \
        int64_t o[3], out = 0;                                                                     \
        for (o[0] = 0; o[0] < d->out[0]; o[0]++)                                                   \
            for (o[1] = 0; o[1] < d->out[1]; o[1]++)                                               \
                for (o[2] = 0; o[2] < d->out[2]; o[2]++, out++) {                                  \
                    T best = (T)0;                                                                 \
                    int64_t where = -1;                                                            \
                    window_at(d, o, &w);                                                           \
                    EACH_TAP(d, w, {                                                               \
                        T v = x[offset];                                                           \
                        if (where < 0 || v > best || (v != v && best == best)) {                   \
                            best = v;                                                              \
                            where = offset;                                                        \
                        }                                                                          \
                    })                                                                             \
                    y[out] = where < 0 ? (T)(LOWEST) : best;                                       \
                    if (indices && where >= 0)                                                     \
                        indices[out] = base + (d->column_major ? column_major(d, where) : where);  \
                    else if (indices)                                                              \
                        indices[out] = base;                                                       \
                }                                                                                  \
    }
MAX_PLANE(float, -FLT_MAX)
MAX_PLANE(double, -DBL_MAX)
MAX_PLANE(int8_t, INT8_MIN)
MAX_PLANE(uint8_t, 0)
MAX_PLANE(int32_t, INT32_MIN)
MAX_PLANE(int64_t, INT64_MIN)

#define SUM_PLANE(T)                                                                               \
    static void sum_plane_##T(const sn_pooling_desc *d, const T *x, T *y)                          \
    {                                                                                              \
        window w;                                                                                  \
        int64_t o[3], out = 0;                                                                     \
        for (o[0] = 0; o[0] < d->out[0]; o[0]++)                                                   \
            for (o[1] = 0; o[1] < d->out[1]; o[1]++)                                               \
                for (o[2] = 0; o[2] < d->out[2]; o[2]++, out++) {                                  \
                    double sum = 0;                                                                \
                    window_at(d, o, &w);                                                           \
                    if (d->kind == SN_POOL_LP) {                                                   \
                        EACH_TAP(d, w, { sum += pow(fabs((double)x[offset]), d->p); })             \
                        y[out] = (T)pow(sum, 1.0 / d->p);                                          \
                        continue;                                                                  \
                    }                                                                              \
                    EACH_TAP(d, w, { sum += (double)x[offset]; })                                  \
                    const int64_t n = d->include_pad ? w.padded : w.taps;                          \
                    y[out] = n > 0 ? (T)(sum / (double)n) : (T)0;                                  \
                }                                                                                  \
    }
SUM_PLANE(float)
SUM_PLANE(double)

void sn_pooling_plane(const sn_pooling_desc *d, int64_t plane, const void *x, void *y,
                      int64_t *indices)
{
    const int64_t in = d->in[0] * d->in[1] * d->in[2], out = d->out[0] * d->out[1] * d->out[2];
    const int64_t from = plane * in, to = plane * out;
    if (indices)
        indices += to;
#define MAX_CASE(dtype, T)                                                                         \
    case SONDE_DTYPE_##dtype:                                                                      \
        max_plane_##T(d, (const T *)x + from, (T *)y + to, indices, from);                         \
        break;
    if (d->kind == SN_POOL_MAX) {
        switch (d->dtype) {
            MAX_CASE(F32, float)
            MAX_CASE(F64, double)
            MAX_CASE(I8, int8_t)
            MAX_CASE(U8, uint8_t)
            MAX_CASE(I32, int32_t)
            MAX_CASE(I64, int64_t)
        default:
            break;
        }
        return;
    }
#undef MAX_CASE
    if (d->dtype == SONDE_DTYPE_F32)
        sum_plane_float(d, (const float *)x + from, (float *)y + to);
    else
        sum_plane_double(d, (const double *)x + from, (double *)y + to);
}
