/* SPDX-License-Identifier: Apache-2.0 */
/* Between profile_build.c, which orders spans, and profile_steps.c, which describes steps. */
#ifndef SN_API_PROFILE_STEPS_H
#define SN_API_PROFILE_STEPS_H

#include "api/internal.h"

/* Appends the steps of a binding, in order, then the nodes folding removed from its graph. */
sonde_status sn_api_profile_steps(sn_profile *p, const sn_binding *b, const sn_clock *clock,
                                  sonde_error *err);

/* "kernel_shape=3,3;strides=1,1" in the arena; NULL when out of memory. */
const char *sn_api_attributes_text(const sn_node *node, sn_arena *arena);

#endif
