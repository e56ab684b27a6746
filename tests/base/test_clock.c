/* SPDX-License-Identifier: Apache-2.0 */
/* The raw counter, converted, agrees with the monotonic clock. */
#include "base/clock.h"
#include "base/log.h"
#include "test.h"

TEST(converted_ticks_agree_with_the_monotonic_clock)
{
    sn_clock c;
    sn_clock_calibrate(&c);
    CHECK(c.ns_per_tick > 0.01 && c.ns_per_tick < 1000);
    /* Both clocks are read in one go; take the tightest of many tries so that being interrupted
     * between the reads does not matter. The rate was measured over a millisecond or more, and an
     * interruption then may have cost it a few percent. */
    double best = 1e18;
    for (int i = 0; i < 1000; i++) {
        uint64_t t0 = sn_ticks(), ns = sn_now_ns(), t1 = sn_ticks();
        double lo = (double)sn_clock_ns(&c, t0) - (double)ns,
               hi = (double)sn_clock_ns(&c, t1) - (double)ns;
        double since = (double)(ns - c.base_ns), off = fabs((lo + hi) / 2) - 0.05 * since;
        if (off < best)
            best = off;
    }
    CHECK_MSG(best < 50000, "off by %.0f ns more than it may", best);
}

TEST(later_calibrations_stay_close_to_the_first)
{
    sn_clock a, b;
    sn_clock_calibrate(&a);
    for (int i = 0; i < 3; i++)
        sn_clock_calibrate(&b);
    CHECK_EQ(a.base_ticks, b.base_ticks);
    CHECK_MSG(fabs(a.ns_per_tick / b.ns_per_tick - 1) < 0.1, "%g and %g", a.ns_per_tick,
              b.ns_per_tick);
}

TEST(times_before_the_base_convert_too)
{
    sn_clock c = {.base_ticks = 1000, .base_ns = 5000, .ns_per_tick = 0.5};
    CHECK_EQ(sn_clock_ns(&c, 2000), 5500);
    CHECK_EQ(sn_clock_ns(&c, 0), 4500);
    CHECK(sn_ticks_to_ns(&c, 10) == 5.0);
}

TEST(the_wall_clock_is_past_2024)
{
    CHECK(sn_wall_ns() > 1704067200ull * 1000000000ull);
}

static void keep_line(void *user, sn_log_level level, const char *line)
{
    snprintf(user, 3000, "%d:%s", (int)level, line);
}

TEST(log_lines_reach_the_sink_at_their_level_only)
{
    char got[3000] = "";
    sn_log log = {.level = SN_LOG_WARN, .sink = keep_line, .user = got};
    sn_log_write(&log, SN_LOG_INFO, "quiet");
    CHECK_STR(got, "");
    sn_log_write(&log, SN_LOG_WARN, "n = %d", 3);
    CHECK_STR(got, "2:n = 3");
    sn_log_write(&log, SN_LOG_ERROR, "%5000d", 1);
    CHECK_EQ(strlen(got), 2049);
    log.sink = NULL;
    sn_log_write(&log, SN_LOG_ERROR, "nobody");
    sn_log_write(NULL, SN_LOG_ERROR, "nobody");
}

TEST(log_levels_parse_by_name)
{
    sn_log_level l = SN_LOG_NONE;
    CHECK(sn_log_parse_level("debug", &l) && l == SN_LOG_DEBUG);
    CHECK(sn_log_parse_level("warn", &l) && l == SN_LOG_WARN);
    CHECK(sn_log_parse_level("warning", &l) && l == SN_LOG_WARN);
    CHECK(!sn_log_parse_level("loud", &l) && l == SN_LOG_WARN);
}

TEST_MAIN()
