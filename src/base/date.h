/* SPDX-License-Identifier: Apache-2.0 */
/* Dates of the Gregorian calendar. The C library's functions for them take a lock that another
 * thread may hold while a process forks; its child would wait for it forever. */
#ifndef SN_BASE_DATE_H
#define SN_BASE_DATE_H

#include <stdint.h>

typedef struct sn_date {
    int64_t year;
    int month, day; /* from 1 */
    int hour, minute, second;
} sn_date;

/* Of seconds since 1970, in UTC; of any number of them. */
sn_date sn_date_of(int64_t seconds);

#endif
