/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs of the floats that C has no type for, one number at a time. Rules as in ONNX's Cast: round
 * to nearest even; `saturate` decides what is beyond the largest finite value. */
#ifndef SN_BASE_SMALL_FLOAT_H
#define SN_BASE_SMALL_FLOAT_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/types.h"

float sn_f16_to_f32(uint16_t h);
uint16_t sn_f32_to_f16(float f);
float sn_bf16_to_f32(uint16_t h);
uint16_t sn_f32_to_bf16(float f);
float sn_f8_to_f32(sonde_dtype t, uint8_t v);                /* every F8* and F4E2M1 */
uint8_t sn_f32_to_f8(sonde_dtype t, float f, bool saturate); /* F8E8M0: rounds up, Cast's default */

/* Cast's round_mode for F8E8M0 (value 2^(code-127), 0xFF is NaN). NEAREST: ties go up. */
typedef enum sn_e8m0_round { SN_E8M0_UP, SN_E8M0_DOWN, SN_E8M0_NEAREST } sn_e8m0_round;
uint8_t sn_f32_to_e8m0(float f, sn_e8m0_round round, bool saturate);

#endif
