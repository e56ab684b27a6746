/* SPDX-License-Identifier: Apache-2.0 */
/* One channel of one image at a time. */
#include "compute/image_scale.h"

#include <stddef.h>

void sn_image_scale_run(float *y, const float *x, int64_t images, int64_t channels, int64_t pixels,
                        float scale, const float *bias)
{
    for (int64_t row = 0; row < images * channels; row++, x += pixels, y += pixels) {
        const float shift = bias ? bias[row % channels] : 0.0f;
        for (int64_t i = 0; i < pixels; i++)
            y[i] = x[i] * scale + shift;
    }
}
