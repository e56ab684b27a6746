/* SPDX-License-Identifier: Apache-2.0 */
/* Where a series of measurements changes its level for good: medians of one benchmark over many
 * commits, for example.
 *
 *     sonde_change_point changes[16];
 *     size_t n;
 *     sonde_changes_find(medians, count, NULL, changes, 16, &n, &err);
 *     for (size_t i = 0; i < n && i < 16; i++)
 *         printf("from %zu on %.2f times as long\n", changes[i].at,
 *                changes[i].after / changes[i].before);
 *
 * The test uses ranks, so it needs no assumption on how the noise is distributed, and single
 * outliers of any size count little. It estimates how much neighbours resemble each other. The
 * result depends on the values alone: there is no chance in it. docs/changes.md tells the method
 * and how often it is wrong. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_CHANGES_H
#define SONDE_EXPERIMENTAL_CHANGES_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_change_point {
    size_t at;            /* index of the first value behind the change */
    double before, after; /* medians of the values between this change and its neighbours */
    /* 95 % interval of after / before. 0 and infinity: not known, as where a median is 0 or the two
     * have different signs. */
    double low, high;
    double
        p; /* chance that a series of noise alone shows a change like it anywhere; an upper bound */
} sonde_change_point;

typedef struct sonde_change_options {
    size_t struct_size;
    double false_alarms; /* chance that a series without a change shows one; 0: 0.005 */
    double least;        /* smallest |after / before - 1| that is reported; 0: 0.01 */
    size_t shortest;     /* values that a level must last, 2 or more; 0: 5 */
} sonde_change_options;

/* In order of `at`; at most `room` are written, *found counts all. `changes` may be NULL where room
 * is 0. Values that are not finite are skipped: they are no part of any level, and `at` counts
 * them. Takes time that grows like count · log² count, and about 120 bytes of memory a value.
 * Series that are shorter than two levels have no change. */
SONDE_API sonde_status sonde_changes_find(const double *values, size_t count,
                                          const sonde_change_options *options,
                                          sonde_change_point *changes, size_t room, size_t *found,
                                          sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
