/* SPDX-License-Identifier: Apache-2.0 */
/* The activation that a pass has fused into an operator of the domain `sonde`. */
#ifndef SN_OPS_SHARED_ACTIVATION_H
#define SN_OPS_SHARED_ACTIVATION_H

#include "compute/act.h"
#include "ops/framework/op.h"

/* From the attribute `name`, a text, and `params`, floats. Without them there is none. */
sonde_status sn_prep_act(sn_prep *p, const char *name, const char *params, sn_act *act);

#endif
