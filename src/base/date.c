/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

enum {
    DAY = 24 * 60 * 60,
    ERA = 146097,          /* days of 400 years, after which the calendar repeats */
    ERA_YEARS = 400,       /* an era begins on 1 March: the day that comes and goes is its last */
    TO_1970 = 719468,      /* days from 1 March of the year 0 */
    FOUR_YEARS = 1460,     /* days but for the leap one */
    HUNDRED_YEARS = 36524, /* days but for that of a fourth century */
};

sn_date sn_date_of(int64_t seconds)
{
    const int64_t second = (seconds % DAY + DAY) % DAY;
    const int64_t days = seconds / DAY - (seconds % DAY < 0) + TO_1970;
    const int64_t of_era = (days % ERA + ERA) % ERA, era = (days - of_era) / ERA;
    const int64_t year =
        (of_era - of_era / FOUR_YEARS + of_era / HUNDRED_YEARS - of_era / (ERA - 1)) / 365;
    const int64_t day = of_era - (365 * year + year / 4 - year / 100);
    /* Months from March have 31, 30, 31, 30, 31, 31, 30, … days: 153 in five. */
    const int64_t month = (5 * day + 2) / 153;
    return (sn_date){.year = era * ERA_YEARS + year + (month >= 10),
                     .month = (int)(month < 10 ? month + 3 : month - 9),
                     .day = (int)(day - (153 * month + 2) / 5 + 1),
                     .hour = (int)(second / 3600),
                     .minute = (int)(second / 60 % 60),
                     .second = (int)(second % 60)};
}
