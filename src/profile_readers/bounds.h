/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a file brought into the bounds that profile.h states. What a file that was cut, or
 * another program's, may lack or exaggerate is put right; what contradicts itself is left for
 * sn_profile_check to refuse. */
#ifndef SN_PROFILE_READERS_BOUNDS_H
#define SN_PROFILE_READERS_BOUNDS_H

#include "profile/profile.h"

/* `zero`: subtracts the earliest start of a span from all. */
void sn_bounds_apply(sn_profile *p, bool zero);

#endif
