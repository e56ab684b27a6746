/* SPDX-License-Identifier: Apache-2.0 */
#include "export/units.h"

sn_time_unit sn_time_unit_for(double total_ns)
{
    /* Borders lie where the last digit shown would round up to the next unit. */
    if (!(total_ns > 0) || (total_ns >= 999999.5 && total_ns < 1e10))
        return (sn_time_unit){1e6, "ms", 2};
    if (total_ns >= 1e10)
        return (sn_time_unit){1e9, "s", 2};
    return total_ns < 999.995 ? (sn_time_unit){1, "ns", 1}
                              : (sn_time_unit){1e3, "\xC2\xB5s", 2}; /* µs */
}

void sn_put_in_unit(sn_writer *w, double ns, const sn_time_unit *unit, int decimals)
{
    double scale = 1;
    for (int k = 0; k < decimals; k++)
        scale *= 10;
    for (; decimals < 6 && ns > 0 && ns / unit->ns * scale < 0.5; decimals++)
        scale *= 10;
    sn_put_fixed(w, ns / unit->ns, decimals);
}
