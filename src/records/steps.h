/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says of steps and of memory, copied out of bindings. */
#ifndef SN_RECORDS_STEPS_H
#define SN_RECORDS_STEPS_H

#include "plan/binding.h"
#include "records/records.h"

/* Appends the steps of a binding, in order, then the nodes folding removed from its graph. `brief`:
 * no weight is looked at. */
sonde_status sn_records_add_steps(sn_profile *p, const sn_binding *b, const sn_clock *clock,
                                  bool brief, sonde_error *err);

/* What the plan knows of memory while a step runs. */
typedef struct sn_step_bytes {
    uint64_t used; /* weights and live values */
    uint64_t live; /* live values and the step's workspace */
} sn_step_bytes;

/* Appends where the values of a binding lie and when, and counts its memory. *bytes: by step, in
 * the profile's arena. */
sonde_status sn_records_add_lives(sn_profile *p, const sn_binding *b, const sn_step_bytes **bytes,
                                  sonde_error *err);
/* One more value for each step that runs bodies: what these need. Behind all spans. */
sonde_status sn_records_add_body_lives(sn_profile *p, sonde_error *err);
/* What the context and the process hold. */
void sn_records_describe_memory(sn_profile *p, sn_records *r);
/* Share of zeros among the elements of a weight of a step; -1 when it was not counted. */
double sn_records_weight_zeros(const sn_binding *b, const sn_step *step, uint32_t input);

#endif
