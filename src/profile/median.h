/* SPDX-License-Identifier: Apache-2.0 */
/* The median of values that follow each other in time, and between which limits the true one lies.
 * Internal to this room. */
#ifndef SN_PROFILE_MEDIAN_H
#define SN_PROFILE_MEDIAN_H

#include <stddef.h>

double sn_median_of(double *values, size_t n); /* sorts them; n > 0 */

typedef struct sn_median {
    const double *sorted;
    size_t n;
    double value;
    double
        inflation; /* of the variance of ranks, by neighbours that resemble each other; 1 or more */
    double freedom; /* of its estimate; 0: there is none, the values count as independent */
} sn_median;

/* `values` are in the order of time, n > 0; `sorted` has room for them and must live as long. */
void sn_median_make(sn_median *m, const double *values, double *sorted, size_t n);
/* The limits at so many standard deviations of a normal variable, such as 1.96 for 95 %, z > 0.
 * Nothing is assumed about how the values are distributed. They are infinite where there are too
 * few values for that many. */
void sn_median_limits(const sn_median *m, double z, double *low, double *high);

#endif
