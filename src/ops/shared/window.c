/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows: reading the attributes once, and one place for the formulas of output sizes and
 * automatic padding (ONNX operators Conv, MaxPool, AveragePool). */
#include "ops/shared/window.h"

#include <string.h>

static sonde_status read_ints(sn_prep *p, sn_window *w, const char *name, size_t per_axis,
                              int64_t least, const int64_t **out)
{
    size_t n;
    SN_TRY(sn_prep_ints(p, name, out, &n));
    if (n == 0) {
        *out = NULL;
        return SONDE_OK;
    }
    if (n % per_axis != 0 || (w->n != 0 && n != w->n * per_axis))
        return sn_prep_fail(p, "attribute '%s' has %zu entries, expected %zu", name, n,
                            w->n * per_axis);
    w->n = n / per_axis;
    for (size_t i = 0; i < n; i++)
        if ((*out)[i] < least || (*out)[i] > INT32_MAX)
            return sn_prep_fail(p, "attribute '%s' contains %lld, which is invalid", name,
                                (long long)(*out)[i]);
    return SONDE_OK;
}

sonde_status sn_window_prepare(sn_prep *p, sn_window *w)
{
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char *pad;
    int64_t ceil;
    SN_TRY(read_ints(p, w, "kernel_shape", 1, 1, &w->kernel));
    SN_TRY(read_ints(p, w, "strides", 1, 1, &w->strides));
    SN_TRY(read_ints(p, w, "dilations", 1, 1, &w->dilations));
    SN_TRY(read_ints(p, w, "pads", 2, 0, &w->pads));
    SN_TRY(sn_prep_int(p, "ceil_mode", 0, &ceil));
    SN_TRY(sn_prep_string(p, "auto_pad", "NOTSET", &pad));
    w->ceil = ceil != 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(pad, names[i]) == 0) {
            w->auto_pad = (sn_auto_pad)i;
            return SONDE_OK;
        }
    }
    return sn_prep_fail(p, "attribute 'auto_pad' is '%s'", pad);
}

sonde_status sn_window_groups(sn_prep *p, int64_t *groups)
{
    SN_TRY(sn_prep_int(p, "group", 1, groups));
    if (*groups < 1 || *groups > INT32_MAX)
        return sn_prep_fail(p, "attribute 'group' is %lld", (long long)*groups);
    return SONDE_OK;
}

sonde_status sn_window_check(sn_infer *c, const sn_window *w, int spatial)
{
    if (w->n != 0 && (size_t)spatial != w->n)
        return sn_infer_fail(c, "the attributes have %zu spatial dims, but the input has %d", w->n,
                             spatial);
    return SONDE_OK;
}

bool sn_window_axis(const sn_window *w, int axis, int64_t in, int64_t kernel, sn_axis_window *out)
{
    const int64_t stride = w->strides ? w->strides[axis] : 1;
    const int64_t dilation = w->dilations ? w->dilations[axis] : 1;
    if (in < 0 || in > INT64_MAX / 8 || kernel < 1 || kernel > INT32_MAX)
        return false;
    const int64_t reach = (kernel - 1) * dilation + 1; /* input elements a window spans */
    int64_t begin = 0, end = 0, n;
    if (w->auto_pad == SN_PAD_SAME_UPPER || w->auto_pad == SN_PAD_SAME_LOWER) {
        n = in / stride + (in % stride > 0);
        int64_t total = n > 0 ? (n - 1) * stride + reach - in : 0;
        total = total > 0 ? total : 0;
        begin = w->auto_pad == SN_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        end = total - begin;
    } else {
        if (w->auto_pad == SN_PAD_NOTSET && w->pads) {
            begin = w->pads[axis];
            end = w->pads[(size_t)axis + w->n];
        }
        const int64_t room = in + begin + end - reach;
        if (room < 0 && !w->may_miss && !w->cuts)
            return false;
        /* Cut off to 0, as ONNX Runtime does: a pool of 2 by steps of 2 has a result of one row. */
        n = room / stride + 1;
        if (room < 0 && (!w->cuts || in == 0))
            n = 0;
        else if (n < 0)
            return false;
        if (room < 0 && n > 0 && w->pads_cut && !w->ceil)
            end -= room;
        /* Rounded up, one more may be cut off: less than a stride is missing, and it starts inside
         * the input or the padding before it. */
        n += w->ceil && room > 0 && room % stride > 0 && n * stride < in + begin;
    }
    *out = (sn_axis_window){in, n, kernel, stride, dilation, begin, end};
    return true;
}

sonde_status sn_window_dim(sn_infer *c, const sn_window *w, int axis, sn_dim in, sn_dim kernel,
                           sn_dim *out)
{
    sn_axis_window a;
    *out = SN_DIM_UNKNOWN;
    if (!sn_dim_known(in) || !sn_dim_known(kernel))
        return SONDE_OK;
    if (!sn_window_axis(w, axis, in, kernel, &a))
        return sn_infer_fail(c, "a window of %lld does not fit %lld elements of spatial dim %d",
                             (long long)kernel, (long long)in, axis);
    *out = a.out;
    return SONDE_OK;
}

/* Three axes, the missing ones in front. w NULL: one window as large as the image; kernel NULL: the
 * window's own. */
static bool three_axes(const sn_window *w, const int64_t *in, int spatial, const int64_t *kernel,
                       sn_axis_window axes[3])
{
    if (spatial > 3)
        return false;
    for (int i = 0; i < 3 - spatial; i++)
        axes[i] = (sn_axis_window){1, 1, 1, 1, 1, 0, 0};
    for (int i = 0; i < spatial; i++) {
        sn_axis_window *a = &axes[3 - spatial + i];
        if (!w)
            *a = (sn_axis_window){in[i], 1, in[i], 1, 1, 0, 0};
        else if (!sn_window_axis(w, i, in[i], kernel ? kernel[i] : w->kernel[i], a))
            return false;
    }
    return true;
}

bool sn_window_conv(const sn_window *w, const int64_t *in_dims, int spatial,
                    const int64_t *kernel_dims, sn_conv_desc *d)
{
    sn_axis_window axes[3];
    if (!three_axes(w, in_dims, spatial, kernel_dims, axes))
        return false;
    for (int i = 0; i < 3; i++) {
        d->in[i] = axes[i].in;
        d->out[i] = axes[i].out;
        d->kernel[i] = axes[i].kernel;
        d->stride[i] = axes[i].stride;
        d->dilation[i] = axes[i].dilation;
        d->pad[i] = axes[i].pad;
    }
    return true;
}

bool sn_window_pooling(const sn_window *w, const int64_t *in_dims, int spatial, sn_pooling_desc *d)
{
    sn_axis_window axes[3];
    if (!three_axes(w, in_dims, spatial, NULL, axes))
        return false;
    for (int i = 0; i < 3; i++) {
        d->in[i] = axes[i].in;
        d->out[i] = axes[i].out;
        d->kernel[i] = axes[i].kernel;
        d->stride[i] = axes[i].stride;
        d->dilation[i] = axes[i].dilation;
        d->pad[i] = axes[i].pad;
        d->pad_end[i] = axes[i].pad_end;
    }
    return true;
}
