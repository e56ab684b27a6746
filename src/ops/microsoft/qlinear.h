/* SPDX-License-Identifier: Apache-2.0 */
/* What the 8-bit operators of com.microsoft share: one scale and one zero point per tensor. */
#ifndef SN_OPS_MICROSOFT_QLINEAR_H
#define SN_OPS_MICROSOFT_QLINEAR_H

#include "compute/bytes.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/converted.h"

typedef struct sn_qparam {
    float scale;
    int32_t zero;
} sn_qparam;

/* Inputs i and i + 1 are a scale (f32) and a zero point (type t, may be absent), one element each.
 */
sonde_status sn_qparam_check(sn_bind *b, uint32_t i, sn_dtype t);
sn_qparam sn_qparam_read(const sn_step *s, const sn_frame *f, uint32_t i);
/* saturate(round(v / scale) + zero) as the byte it is stored as. */
uint8_t sn_quantize_byte(float v, sn_qparam q, sn_dtype t);
/* n bytes ► f32. */
void sn_dequantize_bytes(uint32_t cpu_flags, const sn_tensor *t, sn_qparam q, float *dst,
                         int64_t n);

#endif
