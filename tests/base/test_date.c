/* SPDX-License-Identifier: Apache-2.0 */
/* Dates against those of the C library. */
#include "base/date.h"

#include <time.h>

#include "test.h"

static void check(int64_t seconds)
{
    const time_t t = (time_t)seconds;
    struct tm want;
    const sn_date d = sn_date_of(seconds);
    if (!gmtime_r(&t, &want)) /* a year beyond int */
        return;
    CHECK_MSG(d.year == (int64_t)want.tm_year + 1900 && d.month == want.tm_mon + 1 &&
                  d.day == want.tm_mday && d.hour == want.tm_hour && d.minute == want.tm_min &&
                  d.second == want.tm_sec,
              "%lld: %lld-%d-%d %d:%d:%d", (long long)seconds, (long long)d.year, d.month, d.day,
              d.hour, d.minute, d.second);
}

TEST(every_day_of_eight_centuries_is_that_of_the_library)
{
    enum { DAY = 86400 };
    for (int64_t day = -150000; day < 150000 && !test_errors; day++) {
        check(day * DAY);
        check(day * DAY + DAY - 1);
    }
}

TEST(any_second_has_a_date)
{
    for (int i = 0; i < 100000 && !test_errors; i++)
        check((int64_t)test_rand() >> (test_rand() % 40));
    check(0);
    check(-1);
    check(INT64_MAX);
    check(INT64_MIN);
    CHECK(sn_date_of(INT64_MIN).month == 1 && sn_date_of(INT64_MAX).year > 292000000000);
}

TEST_MAIN()
