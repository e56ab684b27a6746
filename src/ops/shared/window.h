/* SPDX-License-Identifier: Apache-2.0 */
/* The sliding window that convolutions and pools share: attributes kernel_shape, strides,
 * dilations, pads, auto_pad and ceil_mode, and the sizes that follow from them. */
#ifndef SN_OPS_SHARED_WINDOW_H
#define SN_OPS_SHARED_WINDOW_H

#include "compute/conv.h"
#include "compute/pooling.h"
#include "ops/framework/op.h"

typedef enum sn_auto_pad {
    SN_PAD_NOTSET,
    SN_PAD_VALID,
    SN_PAD_SAME_UPPER,
    SN_PAD_SAME_LOWER
} sn_auto_pad;

/* Arrays have `n` entries (pads 2n: begins, then ends) or are NULL when the attribute is absent.
 * All entries are at most INT32_MAX, so that sizes computed from them do not overflow. */
typedef struct sn_window {
    size_t n; /* spatial rank the attributes speak of; 0 = none of them is given */
    const int64_t *kernel, *strides, *dilations, *pads;
    sn_auto_pad auto_pad;
    bool ceil;
    bool may_miss; /* a window larger than the padded input: there is no output, not an error */
    bool cuts; /* … by less than a stride: there is one, of what the window has of the input */
    bool pads_cut; /* … and of padding for what it does not have */
} sn_window;

sonde_status sn_window_prepare(sn_prep *p, sn_window *w);
/* Attribute `group` of a convolution: 1 to INT32_MAX. */
sonde_status sn_window_groups(sn_prep *p, int64_t *groups);
/* Attributes against the spatial rank of the input. */
sonde_status sn_window_check(sn_infer *c, const sn_window *w, int spatial);

/* The window on one axis, with everything resolved. */
typedef struct sn_axis_window {
    int64_t in, out, kernel, stride, dilation, pad, pad_end;
} sn_axis_window;
/* False: the window does not fit (or sizes overflow). */
bool sn_window_axis(const sn_window *w, int axis, int64_t in, int64_t kernel, sn_axis_window *out);
/* Along spatial axis `axis`; 1 where the attribute does not speak of it. */
static inline int64_t sn_window_dilation(const sn_window *w, int axis)
{
    return w->dilations && axis >= 0 && (size_t)axis < w->n ? w->dilations[axis] : 1;
}
static inline int64_t sn_window_stride(const sn_window *w, int axis)
{
    return w->strides && axis >= 0 && (size_t)axis < w->n ? w->strides[axis] : 1;
}
/* Does result r read pixel r, if the kernel is one pixel? */
static inline bool sn_window_is_pixel(const sn_window *w)
{
    for (size_t i = 0; i < w->n; i++)
        if ((w->strides && w->strides[i] != 1) ||
            (w->pads && (w->pads[i] != 0 || w->pads[w->n + i] != 0)))
            return false;
    return true;
}
/* Output dim; unknown input dims give unknown ones. */
sonde_status sn_window_dim(sn_infer *c, const sn_window *w, int axis, sn_dim in, sn_dim kernel,
                           sn_dim *out);

/* The window over an image of `spatial` dims, into the spatial arrays of a driver's descriptor:
 * three axes, the missing ones in front. False: it does not fit, or there are more than three. */
bool sn_window_conv(const sn_window *w, const int64_t *in_dims, int spatial,
                    const int64_t *kernel_dims, sn_conv_desc *d);
/* w NULL: one window as large as the image. */
bool sn_window_pooling(const sn_window *w, const int64_t *in_dims, int spatial, sn_pooling_desc *d);

#endif
