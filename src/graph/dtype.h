/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: sizes in memory and in files, classes, and the codecs of small floats. */
#ifndef SN_GRAPH_DTYPE_H
#define SN_GRAPH_DTYPE_H

#include "base/alloc.h"

typedef sonde_dtype sn_dtype;

const char *sn_dtype_name(sn_dtype t);      /* "f32" */
const char *sn_dtype_onnx_name(sn_dtype t); /* "float" */
bool sn_dtype_valid(int64_t number);        /* a type we have, not UNDEFINED */
/* What to say of a number that is not valid: "27 (float6e2m3)", into at least 40 bytes. */
const char *sn_dtype_number_text(int64_t number, char *buf);
size_t
sn_dtype_bytes(sn_dtype t); /* in memory: sub-byte types take 1, STRING sizeof(sonde_string) */
unsigned sn_dtype_bits(sn_dtype t); /* in files */
bool sn_dtype_is_float(sn_dtype t); /* incl. f16, bf16, f8*, f4 */
bool sn_dtype_is_int(sn_dtype t);   /* signed or unsigned, not bool */
bool sn_dtype_is_signed(sn_dtype t);

/* Bytes of n packed elements in a file (sub-byte types round up to whole bytes); false: overflow.
 */
bool sn_dtype_file_bytes(sn_dtype t, int64_t n, size_t *bytes);

/* Small-float codecs (round to nearest even; `saturate` as in ONNX Cast for float8). */
float sn_f16_to_f32(uint16_t h);
uint16_t sn_f32_to_f16(float f);
float sn_bf16_to_f32(uint16_t h);
uint16_t sn_f32_to_bf16(float f);
float sn_f8_to_f32(sn_dtype t, uint8_t v);                /* every F8* and F4E2M1 */
uint8_t sn_f32_to_f8(sn_dtype t, float f, bool saturate); /* F8E8M0: rounds up, Cast's default */

/* Cast's round_mode for F8E8M0 (value 2^(code-127), 0xFF is NaN). NEAREST: ties go up. */
typedef enum sn_e8m0_round { SN_E8M0_UP, SN_E8M0_DOWN, SN_E8M0_NEAREST } sn_e8m0_round;
uint8_t sn_f32_to_e8m0(float f, sn_e8m0_round round, bool saturate);

#endif
