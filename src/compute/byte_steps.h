/* SPDX-License-Identifier: Apache-2.0 */
/* What quantising to 8 bits at run leaves of numbers: DynamicQuantizeLinear, as the products that
 * do it on the way see it. */
#ifndef SN_COMPUTE_BYTE_STEPS_H
#define SN_COMPUTE_BYTE_STEPS_H

#include <math.h>
#include <stdint.h>

/* y = x in whole steps of its own range, 256 of them from the smallest number to the largest, 0
 * among them; returns the step. */
static inline float sn_byte_steps(const float *x, float *y, int64_t n)
{
    float lo = 0.0f, hi = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    const float step = hi == lo ? 1.0f : (hi - lo) / 255.0f;
    const float zero = nearbyintf(fminf(fmaxf(-lo / step, 0.0f), 255.0f));
    for (int64_t i = 0; i < n; i++) {
        const float v = nearbyintf(x[i] / step) + zero;
        y[i] = fminf(fmaxf(v, 0.0f), 255.0f) - zero;
    }
    return step;
}

/* The same with the step in the result: x, rounded. */
static inline void sn_byte_round(const float *x, float *y, int64_t n)
{
    const float step = sn_byte_steps(x, y, n);
    for (int64_t i = 0; i < n; i++)
        y[i] *= step;
}

#endif
