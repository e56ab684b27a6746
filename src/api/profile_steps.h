/* SPDX-License-Identifier: Apache-2.0 */
/* Between profile_build.c, which orders spans, and profile_steps.c, which describes steps. */
#ifndef SN_API_PROFILE_STEPS_H
#define SN_API_PROFILE_STEPS_H

#include "api/internal.h"

/* Appends the steps of a binding, in order, then the nodes folding removed from its graph. */
sonde_status sn_api_profile_steps(sn_profile *p, const sn_binding *b, const sn_clock *clock,
                                  sonde_error *err);

/* What the plan knows of memory while a step runs. */
typedef struct sn_step_bytes {
    uint64_t used; /* weights and live values */
    uint64_t live; /* live values and the step's workspace */
} sn_step_bytes;

/* Appends where the values of a binding lie and when, and counts its memory. *bytes: by step, in
 * the profile's arena. */
sonde_status sn_api_profile_lives(sn_profile *p, const sn_binding *b, const sn_step_bytes **bytes,
                                  sonde_error *err);
/* What the context and the process hold. */
void sn_api_profile_memory(sn_profile *p, const sonde_context *c);
/* Share of zeros among the elements of a weight of a step; -1 when it was not counted. */
double sn_api_weight_zeros(const sn_binding *b, const sn_step *step, uint32_t input);

/* "kernel_shape=3,3;strides=1,1" in the arena; NULL when out of memory. */
const char *sn_api_attributes_text(const sn_node *node, sn_arena *arena);

#endif
