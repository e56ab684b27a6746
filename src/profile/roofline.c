/* SPDX-License-Identifier: Apache-2.0 */
/* How near an operator comes to what the machine can do. A call that touches less than a cache
 * holds is held against that cache's bandwidth: what comes before has usually just written it.
 * Against the memory's it would look faster than possible. */
#include <string.h>

#include "profile/profile.h"

double sn_prof_peak_ns(const sn_profile *p, sn_arithmetic a, double flops)
{
    const double peak = p->peak_gops[a == SN_ARITH_NONE ? SN_ARITH_F32 : a];
    return !(flops > 0) ? 0 : peak > 0 ? flops / peak : -1;
}

double sn_prof_attained(const sn_profile *p, double peak_ns, double bytes, double ns,
                        const char **bound)
{
    static const char *const names[] = {"l2", "l3"};
    const char *what = "memory", *none;
    *(bound ? bound : &none) = "";
    if (!(p->peak_gops[SN_ARITH_F32] > 0) || !(ns > 0) || peak_ns < 0 ||
        !(peak_ns > 0 || bytes > 0))
        return -1;
    double gbps = p->peak_gbps;
    for (int k = 1; k >= 0; k--)
        if (p->caches[k].gbps > 0 && (bytes <= p->caches[k].bytes || !(gbps > 0))) {
            gbps = p->caches[k].gbps;
            what = names[k];
        }
    const double compute = peak_ns / ns;
    const double reading = gbps > 0 ? bytes / ns / gbps : 0;
    const double most = compute > reading ? compute : reading;
    *(bound ? bound : &none) = compute > reading ? "compute" : what;
    return most < 1 ? most : 1; /* beyond the peak there is only noise */
}

bool sn_prof_counts_direct(const sn_prof_row *row)
{
    return strstr(row->kernel, "winograd") != NULL;
}

double sn_prof_roofline(const sn_profile *p, const sn_prof_row *row)
{
    if (row->bracket || !(row->calls > 0))
        return -1;
    return sn_prof_attained(p, row->peak_ns / row->calls, row->bytes / row->calls,
                            row->mean_ns / row->calls, NULL);
}
