/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of the raw counter is measured, not asked for: cpuid's answer is missing or rounded on
 * many machines and a hypervisor may scale the counter. One pair (ticks, ns) is taken at the first
 * use in the process and never changes; each calibration lays a line through it and the present, so
 * the rate gets better with time and never worse than the first millisecond's. */
#include "base/clock.h"

#include <pthread.h>
#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sn_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t sn_coarse_ns(void)
{
    return read_ns(CLOCK_MONOTONIC_COARSE);
}

uint64_t sn_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

typedef struct pair {
    uint64_t ticks, ns;
} pair;

/* Both clocks at one moment: of several readings the one that took least, so that an interruption
 * between the two reads does not count. */
static pair read_pair(void)
{
    pair best = {0, 0};
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = sn_ticks();
        uint64_t ns = sn_now_ns();
        uint64_t width = sn_ticks() - before;
        if (width < best_width) {
            best_width = width;
            best = (pair){before + width / 2, ns};
        }
    }
    return best;
}

void sn_clock_read(uint64_t *ticks, uint64_t *ns)
{
    const pair now = read_pair();
    *ticks = now.ticks;
    *ns = now.ns;
}

/* The process's fixed point; written once. */
static pair anchor;
static pthread_once_t anchor_once = PTHREAD_ONCE_INIT;

static void set_anchor(void)
{
    anchor = read_pair();
}

void sn_clock_calibrate(sn_clock *c)
{
    pthread_once(&anchor_once, set_anchor);
    pair now;
    do {
        now = read_pair();
    } while (now.ns - anchor.ns < 1000000 || now.ticks <= anchor.ticks);
    c->base_ticks = anchor.ticks;
    c->base_ns = anchor.ns;
    c->ns_per_tick = (double)(now.ns - anchor.ns) / (double)(now.ticks - anchor.ticks);
}
