/* SPDX-License-Identifier: Apache-2.0 */
/* Noise for tests: normal, with neighbours that resemble each other, with outliers upward; and
 * series drawn from what was recorded. */
#ifndef SONDE_TESTS_CHANGES_NOISE_H
#define SONDE_TESTS_CHANGES_NOISE_H

#include <math.h>

#include "changes/recorded.h"
#include "test.h"

/* In (0, 1). */
static inline double noise_uniform(void)
{
    return ((double)(test_rand() >> 11) + 0.5) * 0x1p-53;
}

static inline double noise_normal(void)
{
    return sqrt(-2 * log(noise_uniform())) * cos(6.283185307179586 * noise_uniform());
}

/* Around 1 with that standard deviation: an AR(1) process with the coefficient `phi`, of which
 * `outliers` of all values are larger by `spread` / u, u uniform: half of them by more than twice
 * the spread, one in a hundred by more than a hundred times. */
static inline void noise_draw(double *x, size_t n, double spread, double phi, double outliers)
{
    double g = noise_normal();
    for (size_t i = 0; i < n; i++) {
        g = i ? phi * g + sqrt(1 - phi * phi) * noise_normal() : g;
        x[i] = 1 + spread * g;
        if (noise_uniform() < outliers)
            x[i] += spread / noise_uniform();
    }
}

/* Blocks of so many neighbours from random places of a recorded series, scaled to a median of 1 and
 * the spread that is asked for (1.4826 times the median deviation, which outliers do not change).
 */
static inline void noise_recorded(double *x, size_t n, double spread, const uint16_t *recorded,
                                  double median, double deviation, size_t block)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++, at++) {
        if (i % block == 0)
            at = (size_t)(test_rand() % (RECORDED - block + 1));
        x[i] = 1 + spread * (recorded[at] - median) / (1.4826 * deviation);
    }
}

#endif
