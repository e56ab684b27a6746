/* SPDX-License-Identifier: Apache-2.0 */
/* What joining profiles does beside their tables. Internal to this room. */
#ifndef SN_PROFILE_JOIN_FACTS_H
#define SN_PROFILE_JOIN_FACTS_H

#include "profile/profile.h"

/* Each counter is the sum of what it last was in every worker. */
sonde_status sn_prof_join_counters(sn_profile *to, sonde_error *err); /* join_counters.c */
/* What all workers say alike, sums of what can be added, and notes of what is missing. */
sonde_status sn_prof_join_facts(sn_profile *to, sonde_error *err);

#endif
