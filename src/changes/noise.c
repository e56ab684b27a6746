/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements that follow each other resemble each other: the clock, the neighbours of a shared
 * machine and its memory are as they were. A mean of such values varies more than one of
 * independent values. How much is taken from the variogram, half the mean square of the difference
 * of two values with a distance. Differences do not know of levels, so unlike the deviations from
 * fitted levels they are not made smaller by fitting too many; only the few that span a change
 * count too much, and those are left out once the change is known. The estimate from a short series
 * is uncertain, so a third of its standard error is taken off: otherwise series without any
 * resemblance would lose more changes than others gain in certainty. */
#include <math.h>

#include "changes/changes.h"

/* Half the mean square difference of values `distance` apart that no change separates. */
static double variogram(const double *scores, size_t count, size_t distance, const size_t *at,
                        size_t n, size_t *pairs)
{
    double sum = 0;
    size_t used = 0, next = 0;
    for (size_t i = 0; i + distance < count; i++) {
        while (next < n && at[next] <= i)
            next++;
        if (next < n && at[next] <= i + distance)
            continue;
        const double d = scores[i + distance] - scores[i];
        sum += d * d;
        used++;
    }
    *pairs = used;
    return used ? sum / (2 * (double)used) : 0;
}

double sn_noise_inflation(sn_scan *s, const size_t *at, size_t n)
{
    size_t pairs = 0;
    if (s->count < 8 || !(sn_scan_scores(s, 0, s->count) > 0))
        return 1;
    const double near = variogram(s->scores, s->count, 1, at, n, &pairs);
    double far = 0, weight = 0;
    for (size_t distance = 3; distance <= 6; distance++) {
        const double v = variogram(s->scores, s->count, distance, at, n, &pairs);
        far += v * (double)pairs;
        weight += (double)pairs;
    }
    if (!(weight > 0) || !(far > 0))
        return 1;
    /* The correlation of neighbours, as if that of others followed from it (an AR(1) process). */
    const double r = 1 - near / (far / weight) - 0.3 / sqrt((double)s->count);
    const double bounded = fmin(fmax(r, 0), 0.9);
    return (1 + bounded) / (1 - bounded);
}
