/* SPDX-License-Identifier: Apache-2.0 */
/* Time: a raw counter that costs a few nanoseconds to read, and its conversion to nanoseconds of
 * the monotonic clock. */
#ifndef SN_BASE_CLOCK_H
#define SN_BASE_CLOCK_H

#include "base/status.h"

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t sn_ticks(void)
{
    return __rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t sn_ticks(void)
{
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
}
#else
#error "sonde runs on x86_64 and aarch64"
#endif

/* Monotonic nanoseconds from the operating system. */
uint64_t sn_now_ns(void);
/* The same to a few milliseconds, for the price of a load. */
uint64_t sn_coarse_ns(void);
/* Wall clock, nanoseconds since the epoch. */
uint64_t sn_wall_ns(void);

/* ns = base_ns + (ticks - base_ticks) * mult / 2^32; measured against the monotonic clock over the
 * life of the process: the longer the interval, the better the rate. */
typedef struct sn_clock {
    uint64_t base_ticks, base_ns;
    double ns_per_tick;
} sn_clock;

/* Both at one moment. */
void sn_clock_read(uint64_t *ticks, uint64_t *ns);
void sn_clock_calibrate(sn_clock *c); /* first call takes about a millisecond, later ones refine */
static inline double sn_ticks_to_ns(const sn_clock *c, uint64_t ticks)
{
    return (double)ticks * c->ns_per_tick;
}
static inline uint64_t sn_clock_ns(const sn_clock *c, uint64_t ticks)
{
    return c->base_ns +
           (uint64_t)(int64_t)((double)(int64_t)(ticks - c->base_ticks) * c->ns_per_tick);
}

#endif
