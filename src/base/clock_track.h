/* SPDX-License-Identifier: Apache-2.0 */
/* The raw counter converted to the monotonic clock over hours, for those who convert while time
 * goes on and cannot take back what they said. The rate that the first millisecond gives is far too
 * rough for that, so the conversion is a chain of lines: each begins where the one before has got
 * to, and leads to where the monotonic clock is. Times stay in order, and the error stays small. */
#ifndef SN_BASE_CLOCK_TRACK_H
#define SN_BASE_CLOCK_TRACK_H

#include "base/clock.h"

enum { SN_CLOCK_LINES = 64 };

typedef struct sn_clock_line {
    uint64_t ticks, ns; /* where it begins */
    double ns_per_tick;
} sn_clock_line;

typedef struct sn_clock_track {
    sn_clock first; /* whose base is the process's: rates are taken from there */
    sn_clock_line lines[SN_CLOCK_LINES];
    int n; /* of lines, the oldest first */
} sn_clock_track;

/* From a calibrated clock. */
void sn_clock_track_init(sn_clock_track *t, const sn_clock *c);
/* At this moment the counter and the clock are these. To be called a few times a second. */
void sn_clock_track_follow(sn_clock_track *t, uint64_t ticks, uint64_t ns);
uint64_t sn_clock_track_ns(const sn_clock_track *t, uint64_t ticks);

#endif
