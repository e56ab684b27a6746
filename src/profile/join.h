/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of several processes as one: each stays a worker of the joined profile, whose tables
 * hold what all of them have, on one line of time and with numbers that differ.
 *
 *     sn_profile_new(&all, alloc, err);
 *     sn_profile_join(all, a, err);
 *     sn_profile_join(all, b, err);
 *     sn_profile_join_end(all, err);
 *
 * The parts' start_wall_ns must be one clock (merge/align.h); one of 0 is not known and begins with
 * the first of the others. Steps, threads and spans stay apart even where two workers have equal
 * ones. Times, counts and bytes are sums over the workers: what these share is counted for each. */
#ifndef SN_PROFILE_JOIN_H
#define SN_PROFILE_JOIN_H

#include "profile/profile.h"

/* Takes over the part, which is not itself joined, also on failure; then `to` can only be freed. */
sonde_status sn_profile_join(sn_profile *to, sn_profile *part, sonde_error *err);
/* After the last one, of which there are two at least. */
sonde_status sn_profile_join_end(sn_profile *to, sonde_error *err);

/* "host / worker" of a profile: its labels, or what else there is to call it by. */
const char *sn_profile_worker_name(const sn_profile *p, sn_arena *arena); /* NULL: no memory */

#endif
