/* SPDX-License-Identifier: Apache-2.0 */
/* Units of time for people. A table has one, chosen by its total, so that its rows can be added up
 * by eye; files for programs keep their milliseconds. */
#ifndef SN_EXPORT_UNITS_H
#define SN_EXPORT_UNITS_H

#include "export/writer.h"

typedef struct sn_time_unit {
    double ns;        /* one of it */
    const char *name; /* "ns", "µs", "ms", "s" */
    int decimals;     /* of rows; a total has one more */
} sn_time_unit;

/* Milliseconds from 1 ms on and where nothing was measured, seconds from 10 s on. */
sn_time_unit sn_time_unit_for(double total_ns);
/* With at least that many decimals, more where only zeros would be left of it. */
void sn_put_in_unit(sn_writer *w, double ns, const sn_time_unit *unit, int decimals);

#endif
