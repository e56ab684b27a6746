/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles whose runs took turns: what the machine did meanwhile met both, so neighbours are
 * compared. Internal to this room. */
#ifndef SN_PROFILE_TURNS_H
#define SN_PROFILE_TURNS_H

#include "profile/profile.h"

#define SN_TURN_NONE UINT32_MAX

typedef struct sn_turns {
    uint32_t n; /* 0: the profiles were not recorded in turns */
    uint32_t
        *of_run[2]; /* of each profile's measured runs in order, its turn; SN_TURN_NONE: none */
    size_t runs[2];
    sn_allocator *alloc;
} sn_turns;

/* Turns of the measured runs of two profiles. There are some if both know one clock, of the machine
 * since it was booted, and at least half of the time of each was shared with the other. */
sonde_status sn_turns_make(sn_turns *t, const sn_profile *old, const sn_profile *now,
                           sn_allocator *alloc, sonde_error *err);
void sn_turns_free(sn_turns *t);

/* What was measured in some of a profile's runs, in their order. */
typedef struct sn_run_values {
    double *values;
    uint32_t *run;
    size_t n;
} sn_run_values;

/* log(new / old) of each turn in which both have a value, into `out`, which has room for t->n; how
 * many there are. `room` is for as many numbers as there are runs. */
size_t sn_turns_ratios(const sn_turns *t, const sn_run_values *old, const sn_run_values *now,
                       double *room, double *out);

#endif
