/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of a profile mean: sentences with their evidence and what to do. A pure function
 * of the profile; what needs the model or the machine is the doctor's. */
#ifndef SN_FINDINGS_FINDINGS_H
#define SN_FINDINGS_FINDINGS_H

#include "profile/profile.h"

typedef struct sn_findings {
    SN_VEC(sonde_finding) list; /* as the checks come: what takes the time first */
    /* Of each: the share of a run that following the remedy may gain at most; 0: not known. */
    SN_VEC(double) gains;
    sn_allocator *alloc;
    sn_arena arena; /* holds the texts */
} sn_findings;

/* Nothing is found in a profile without a measured run. Free it also after an error. */
sonde_status sn_findings_of(const sn_profile *p, sn_findings *out, sonde_error *err);
void sn_findings_free(sn_findings *f);

#endif
