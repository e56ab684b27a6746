/* SPDX-License-Identifier: Apache-2.0 */
/* Hours of converting while time goes on, with a counter of three ticks per ns and made-up errors.
 */
#include "base/clock_track.h"

#include "test.h"

#define SECOND UINT64_C(1000000000)

static uint64_t ticks_at(uint64_t ns)
{
    return 7777 + 3 * ns;
}

/* A track whose first rate is wrong by so much. */
static sn_clock_track track(double wrong)
{
    const sn_clock c = {.base_ticks = ticks_at(0), .base_ns = 0, .ns_per_tick = (1 + wrong) / 3};
    sn_clock_track t;
    sn_clock_track_init(&t, &c);
    return t;
}

TEST(a_bad_first_rate_does_not_add_up_over_hours)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        sn_clock_track t = track(sign * 0.02);
        uint64_t before = 0;
        int lines = 0;
        for (uint64_t ns = SECOND / 10; ns < 3600 * SECOND; ns += SECOND / 10) {
            const uint64_t said = sn_clock_track_ns(&t, ticks_at(ns));
            CHECK_MSG(said >= before, "time went back at %llu", (unsigned long long)ns);
            if (ns > SECOND)
                CHECK_MSG(fabs((double)said - (double)ns) < 2000, "%lld ns off at %llu s",
                          (long long)(said - ns), (unsigned long long)(ns / SECOND));
            before = said;
            const int n = t.n;
            sn_clock_track_follow(&t, ticks_at(ns), ns);
            lines += t.n != n;
        }
        CHECK(lines < SN_CLOCK_LINES);
    }
}

TEST(what_was_said_stays_said_where_a_line_begins)
{
    sn_clock_track t = track(0.001);
    const uint64_t at = ticks_at(SECOND), early = ticks_at(SECOND / 2);
    const uint64_t said = sn_clock_track_ns(&t, at), said_early = sn_clock_track_ns(&t, early);
    sn_clock_track_follow(&t, at, SECOND);
    CHECK(t.n > 1);
    CHECK_EQ(sn_clock_track_ns(&t, at), said);
    CHECK_EQ(sn_clock_track_ns(&t, early), said_early);
    CHECK(sn_clock_track_ns(&t, at + 3) >= said);
}

TEST(a_clock_that_leaps_ahead_is_followed_at_once_and_one_that_falls_back_is_awaited)
{
    sn_clock_track t = track(0);
    sn_clock_track_follow(&t, ticks_at(SECOND), 60 * SECOND); /* it was suspended */
    CHECK_EQ(sn_clock_track_ns(&t, ticks_at(SECOND)), 60 * SECOND);
    t = track(0);
    uint64_t before = 0;
    for (uint64_t ns = SECOND; ns < 30 * SECOND; ns += SECOND / 10) {
        sn_clock_track_follow(&t, ticks_at(ns), ns - SECOND / 2); /* half a second was wrong */
        const uint64_t said = sn_clock_track_ns(&t, ticks_at(ns));
        CHECK(said >= before);
        before = said;
    }
    const double off = (double)before - (double)(30 * SECOND - SECOND / 10 - SECOND / 2);
    CHECK_MSG(fabs(off) < 1e5, "%.0f ns off", off);
}

TEST(a_look_that_comes_late_does_no_harm)
{
    sn_clock_track t = track(0.02);
    uint64_t before = 0;
    for (uint64_t ns = SECOND / 10; ns < 900 * SECOND; ns += (ns / 7) % (20 * SECOND) + 1000) {
        const uint64_t said = sn_clock_track_ns(&t, ticks_at(ns));
        CHECK_MSG(said >= before, "time went back at %llu", (unsigned long long)ns);
        before = said;
        sn_clock_track_follow(&t, ticks_at(ns), ns);
    }
    const double off = (double)sn_clock_track_ns(&t, ticks_at(1000 * SECOND)) - 1000e9;
    CHECK_MSG(fabs(off) < 2000, "%.0f ns off", off);
}

TEST(many_lines_forget_the_oldest)
{
    sn_clock_track t = track(0);
    for (uint64_t i = 1; i < 1000; i++) /* it wanders by 5 µs and back */
        sn_clock_track_follow(&t, ticks_at(i * SECOND), i * SECOND + (i % 2 ? 5000 : 0));
    CHECK(t.n <= SN_CLOCK_LINES);
    const double off = (double)sn_clock_track_ns(&t, ticks_at(999 * SECOND)) - 999e9;
    CHECK_MSG(fabs(off) < 100000, "%.0f ns off", off);
}

TEST_MAIN()
