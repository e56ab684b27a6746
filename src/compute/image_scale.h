/* SPDX-License-Identifier: Apache-2.0 */
/* Images scaled by one number and shifted by one per channel. */
#ifndef SN_COMPUTE_IMAGE_SCALE_H
#define SN_COMPUTE_IMAGE_SCALE_H

#include <stdint.h>

/* y = x · scale + bias[channel] of [images][channels][pixels]; bias NULL: none. y may be x. */
void sn_image_scale_run(float *y, const float *x, int64_t images, int64_t channels, int64_t pixels,
                        float scale, const float *bias);

#endif
