/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a median are order statistics: how many of n independent values lie below the true
 * median is binomial, whatever the distribution of the values, so outliers, two clock speeds and
 * clocks of whole microseconds need no model. Runs of a computer are not independent: while the
 * machine is busy or its clock is low, all of them are slow. How much more the number below the
 * median varies for that is measured over blocks of consecutive values, 20 or so: the variance of
 * the blocks' counts over what it would be for independent values. Blocks know nothing of what
 * lasts longer than they do. Blocks of twice the length show how much that is, and the trend from
 * the one to the other is continued (Vats and Flegal, "Lugsail lag windows for estimating
 * time-average covariance matrices", 2022). With so few blocks the estimate is uncertain itself,
 * which Student's t in the place of a normal variable accounts for. Of fewer than 20 values nothing
 * can be learned about that; they are taken as independent. */
#include "profile/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/chance.h"

enum { FEWEST_FOR_BLOCKS = 20, BLOCKS = 20 };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Two values may be infinite, and of either sign. */
static double middle_of(const double *sorted, size_t n)
{
    const double a = sorted[(n - 1) / 2], b = sorted[n / 2];
    return a == b ? a : a / 2 + b / 2;
}

double sn_median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return middle_of(values, n);
}

/* Which side of the median a value lies on. */
static double side_of(double value, double median)
{
    return value > median ? 0.5 : value < median ? -0.5 : 0;
}

/* How much more the counts of so many blocks vary than those of independent values. `mean` and
 * `variance` are of the sides of all values. */
static double between_blocks(const sn_median *m, const double *values, size_t blocks, double mean,
                             double variance)
{
    double sum = 0;
    for (size_t k = 0; k < blocks; k++) {
        const size_t from = m->n * k / blocks, to = m->n * (k + 1) / blocks;
        double d = -mean * (double)(to - from);
        for (size_t i = from; i < to; i++)
            d += side_of(values[i], m->value);
        sum += d * d;
    }
    const double expected = variance * (double)m->n * ((double)blocks - 1) / (double)blocks;
    return sum / expected;
}

static void measure_blocks(sn_median *m, const double *values)
{
    const size_t n = m->n, many = (size_t)sqrt((double)n);
    const size_t most = many > BLOCKS ? many : BLOCKS, blocks = most < n / 2 ? most : n / 2;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double side = side_of(values[i], m->value);
        sum += side;
        squares += side * side;
    }
    const double mean = sum / (double)n, variance = squares / (double)n;
    m->freedom = (double)(blocks / 2) - 1; /* of the longer ones */
    if (!(variance > 0))
        return;
    const double single = between_blocks(m, values, blocks, mean, variance);
    const double paired = between_blocks(m, values, blocks / 2, mean, variance);
    m->inflation = fmax(1, fmax(single, 2 * paired - single));
}

void sn_median_make(sn_median *m, const double *values, double *sorted, size_t n)
{
    *m = (sn_median){.sorted = sorted, .n = n, .inflation = 1};
    memcpy(sorted, values, n * sizeof *sorted);
    m->value = sn_median_of(sorted, n);
    if (n >= FEWEST_FOR_BLOCKS)
        measure_blocks(m, values);
}

void sn_median_limits(const sn_median *m, double z, double *low, double *high)
{
    const double n = (double)m->n;
    const double t = m->freedom > 0 ? sn_chance_t_of(z, m->freedom) : z;
    const double below = floor((n + 1) / 2 - t * sqrt(n / 4 * m->inflation) + 0.5);
    *low = -INFINITY;
    *high = INFINITY;
    if (!(below >= 1))
        return;
    const size_t c = (size_t)below;
    *low = m->sorted[c - 1];
    *high = m->sorted[m->n - c];
}
