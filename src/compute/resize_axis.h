/* SPDX-License-Identifier: Apache-2.0 */
/* One axis of a resize: where each output position lies in the input, and which input positions it
 * mixes with which weights. The formulas are those of the operator's reference text. */
#ifndef SN_COMPUTE_RESIZE_AXIS_H
#define SN_COMPUTE_RESIZE_AXIS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_resize_mode {
    SN_RESIZE_NEAREST,
    SN_RESIZE_LINEAR,
    SN_RESIZE_CUBIC,
    SN_RESIZE_MODES
} sn_resize_mode;

typedef enum sn_resize_coords {
    SN_COORDS_HALF_PIXEL,
    SN_COORDS_HALF_PIXEL_SYMMETRIC,
    SN_COORDS_PYTORCH_HALF_PIXEL,
    SN_COORDS_ALIGN_CORNERS,
    SN_COORDS_ASYMMETRIC,
    SN_COORDS_TF_CROP_AND_RESIZE,
    SN_COORDS_TF_HALF_PIXEL_FOR_NN,
    SN_COORDS_COUNT
} sn_resize_coords;

typedef enum sn_resize_round {
    SN_ROUND_PREFER_FLOOR,
    SN_ROUND_PREFER_CEIL,
    SN_ROUND_FLOOR,
    SN_ROUND_CEIL,
    SN_ROUND_COUNT
} sn_resize_round;

typedef struct sn_resize_axis {
    int64_t in, out;
    int64_t num, den;          /* the scale as it is given: sizes make a fraction, so do floats */
    double scale;              /* num / den */
    double roi_begin, roi_end; /* TF_CROP_AND_RESIZE only */
} sn_resize_axis;

typedef struct sn_resize_how {
    sn_resize_mode mode;
    sn_resize_coords coords;
    sn_resize_round round;
    double cubic_a;
    bool antialias, exclude_outside;
} sn_resize_how;

/* Sets the scale, positive both ways. */
void sn_resize_by_ratio(sn_resize_axis *a, int64_t num, int64_t den);
void sn_resize_by_scale(sn_resize_axis *a, double scale);
/* a->in × scale to the nearest whole number, halves up; false: that is no size. */
bool sn_resize_rounded(const sn_resize_axis *a, int64_t *out);

/* Most weights any output position of an axis of these sizes can need (linear and cubic). */
int64_t sn_resize_max_taps(const sn_resize_how *how, int64_t in, int64_t out);
/* Number of weights per output position at this scale. */
int64_t sn_resize_taps(const sn_resize_how *how, double scale);

/* Nearest: index[o] = input position, or -1 outside the region of interest. */
void sn_resize_nearest(const sn_resize_how *how, const sn_resize_axis *a, int64_t *index);
/* Linear and cubic: taps per output position; index[o * taps] = -1 outside the region of interest.
 */
void sn_resize_weights(const sn_resize_how *how, const sn_resize_axis *a, int64_t taps,
                       int32_t *index, float *weight);

#endif
