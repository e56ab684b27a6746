/* SPDX-License-Identifier: Apache-2.0 */
/* What a Chrome trace of sonde says beside its events. */
#ifndef SN_PROFILE_READERS_CHROME_FACTS_H
#define SN_PROFILE_READERS_CHROME_FACTS_H

#include "profile_readers/build.h"

/* The value of "otherData", into the profile; anything that is no object is skipped. */
void sn_chrome_read_facts(sn_build *b, sn_json *j);
/* {"calls":…}: what hardware counters counted in a step. */
sn_prof_hw sn_chrome_read_counts(sn_json *j);

#endif
