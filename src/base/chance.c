/* SPDX-License-Identifier: Apache-2.0 */
#include "base/chance.h"

#include <math.h>

#define SQRT2   1.4142135623730951
#define SQRT2PI 2.5066282746310002

double sn_chance_density(double z)
{
    return exp(-z * z / 2) / SQRT2PI;
}

double sn_chance_tail(double z)
{
    return erfc(z / SQRT2) / 2;
}

/* Newton's method from a start that is good to three digits (Abramowitz and Stegun 26.2.23). */
double sn_chance_quantile(double p)
{
    if (!(p > 0 && p < 1))
        return p > 0 ? INFINITY : -INFINITY;
    const double tail = p < 0.5 ? p : 1 - p, r = sqrt(-2 * log(tail));
    double z = r - (2.515517 + r * (0.802853 + r * 0.010328)) /
                       (1 + r * (1.432788 + r * (0.189269 + r * 0.001308)));
    for (int i = 0; i < 2; i++)
        z += (sn_chance_tail(z) - tail) / sn_chance_density(z);
    return p < 0.5 ? -z : z;
}

/* Wallace's approximation ("Bounds on normal approximations to Student's and the chi-square
 * distributions", 1959), good to a percent of z with 5 degrees of freedom and far tails. */
double sn_chance_of_t(double t, double freedom)
{
    const double z = sqrt(freedom * log1p(t * t / freedom));
    return (8 * freedom + 1) / (8 * freedom + 3) * z;
}

double sn_chance_t_of(double z, double freedom)
{
    const double scaled = z * (8 * freedom + 3) / (8 * freedom + 1);
    return sqrt(freedom * expm1(scaled * scaled / freedom));
}
