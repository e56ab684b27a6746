/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of matrix products and convolutions by the variant a binding asks for. An operator that
 * makes its f32 plan here takes part in tuning; one that asks the driver itself gets what the cost
 * model says. */
#ifndef SN_OPS_SHARED_TUNED_PLAN_H
#define SN_OPS_SHARED_TUNED_PLAN_H

#include "compute/conv.h"
#include "compute/gemm.h"
#include "ops/framework/op.h"

sonde_status sn_gemm_plan_tuned(sn_bind *b, const sn_gemm_desc *d, sn_gemm_plan *p);
sonde_status sn_conv_plan_tuned(sn_bind *b, const sn_conv_desc *d, sn_conv_plan *p);

#endif
