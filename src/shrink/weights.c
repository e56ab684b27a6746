/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as 8-bit integers: symmetric, -127 to 127, one scale for all or one for each channel. */
#include <math.h>

#include "shrink/quantizer.h"

sn_q_layout sn_q_layout_of(const sn_tensor *t, int axis)
{
    sn_q_layout l = {1, 1, 1};
    for (int i = 0; i < t->rank; i++) {
        if (i == axis)
            l.channels = t->dims[i];
        else if (i < axis)
            l.outer *= t->dims[i];
        else
            l.inner *= t->dims[i];
    }
    return l;
}

void sn_q_weight_scales(const float *w, sn_q_layout l, float *scales)
{
    for (int64_t c = 0; c < l.channels; c++) {
        float largest = 0;
        for (int64_t o = 0; o < l.outer; o++)
            for (int64_t i = 0; i < l.inner; i++)
                largest = fmaxf(largest, fabsf(w[(o * l.channels + c) * l.inner + i]));
        const float scale = largest / 127.0f;
        scales[c] = scale >= 0x1p-120f ? scale : 1.0f; /* a channel of zeros */
    }
}

void sn_q_weight_round(const float *w, sn_q_layout l, const float *scales, int8_t *out)
{
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t c = 0; c < l.channels; c++)
            for (int64_t i = 0; i < l.inner; i++) {
                const int64_t at = (o * l.channels + c) * l.inner + i;
                out[at] = (int8_t)fmaxf(-127.0f, fminf(127.0f, rintf(w[at] / scales[c])));
            }
}

double sn_q_decibel(double signal, double noise)
{
    if (signal <= 0)
        return noise <= 0 ? INFINITY : -INFINITY;
    return noise <= 0 ? INFINITY : 10.0 * log10(signal / noise);
}

double sn_q_weight_sqnr(const float *w, sn_q_layout l, const float *scales, const int8_t *rounded)
{
    double signal = 0, noise = 0;
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t c = 0; c < l.channels; c++)
            for (int64_t i = 0; i < l.inner; i++) {
                const int64_t at = (o * l.channels + c) * l.inner + i;
                const double x = (double)w[at];
                const double d = (double)rounded[at] * (double)scales[c] - x;
                signal += x * x;
                noise += d * d;
            }
    return sn_q_decibel(signal, noise);
}
