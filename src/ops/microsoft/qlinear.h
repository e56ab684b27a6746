/* SPDX-License-Identifier: Apache-2.0 */
/* What the 8-bit operators of com.microsoft share: one scale and one zero point per tensor, as
 * inputs. */
#ifndef SN_OPS_MICROSOFT_QLINEAR_H
#define SN_OPS_MICROSOFT_QLINEAR_H

#include "compute/quantized.h"
#include "ops/framework/op.h"

/* Inputs i and i + 1 are a scale (f32) and a zero point (type t, may be absent), one element each.
 */
sonde_status sn_qparam_check(sn_bind *b, uint32_t i, sn_dtype t);
sn_qparam sn_qparam_read(const sn_step *s, const sn_frame *f, uint32_t i);

#endif
