/* SPDX-License-Identifier: Apache-2.0 */
/* Probabilities of a search. The best of many places has a large z by chance, so what counts is the
 * chance that noise has such a z at any place. For one stretch Siegmund's approximation gives it
 * (James, James and Siegmund, "Tests for a change-point", Biometrika 74, 1987), which is close even
 * for a few values because it knows that places are discrete. Over all stretches the chances are
 * added. That is much too large, because stretches overlap and what is found in one is tested again
 * between its neighbours; so those but the longest count by OVERLAP, which simulation found: with
 * it 20 to 1000 independent values have a false alarm as often as they are said to, or less. */
#include <math.h>

#include "changes/changes.h"

#define OVERLAP 0.16

/* By how much a random walk that is looked at in steps of y passes a limit less often than one that
 * is looked at all the time (Siegmund and Yakir, "The Statistics of Gene Mapping", 2007). */
static double in_steps(double y)
{
    const double half = y / 2;
    if (y < 1e-6)
        return 1;
    return 1 / half * (0.5 - sn_chance_tail(half)) /
           (half * (1 - sn_chance_tail(half)) + sn_chance_density(half));
}

/* That |z| is reached at any place at least `shortest` away from the ends of `length` values. */
static double in_one(size_t length, size_t shortest, double z)
{
    enum { PARTS = 32 };
    const double n = (double)length, from = (double)shortest / n;
    if (length < 2 * shortest)
        return 0;
    /* The integral of in_steps(z / sqrt(n x (1 - x))) / (x (1 - x)) over x, which is symmetric;
     * with u = log(x / (1 - x)) it becomes a smooth one over u. Simpson's rule. */
    const double end = log((1 - from) / from);
    double sum = 0;
    for (int i = 0; i <= PARTS; i++) {
        const double x = 1 / (1 + exp(-end * i / (double)PARTS));
        const double weight = i == 0 || i == PARTS ? 1 : i % 2 ? 4 : 2;
        sum += weight * in_steps(z / sqrt(n * x * (1 - x)));
    }
    return 2 * sn_chance_tail(z) + z * sn_chance_density(z) * 2 * sum * end / (3 * PARTS);
}

double sn_chance_anywhere(const sn_search_layers *layers, double z)
{
    double sum = 0;
    if (!(z > 1))
        return 1;
    for (size_t i = 0; i < layers->n; i++)
        sum += (i ? OVERLAP : 1) * (double)layers->row[i].count *
               in_one(layers->row[i].length, layers->shortest, z);
    return sum < 1 ? sum : 1;
}

double sn_chance_threshold(const sn_search_layers *layers, double chance)
{
    double low = 1, high = 40;     /* a chance of 1e-349 */
    for (int i = 0; i < 26; i++) { /* to a millionth */
        const double middle = (low + high) / 2;
        if (sn_chance_anywhere(layers, middle) > chance)
            low = middle;
        else
            high = middle;
    }
    return high;
}
