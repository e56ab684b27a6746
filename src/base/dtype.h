/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: sizes in memory and in files, and classes. Small floats are read and written with
 * base/codec.h. */
#ifndef SN_BASE_DTYPE_H
#define SN_BASE_DTYPE_H

#include "base/alloc.h"
#include "base/codec.h"

typedef sonde_dtype sn_dtype;

const char *sn_dtype_name(sn_dtype t);            /* "f32" */
const char *sn_precision_name(sonde_precision p); /* "file", "f32", …; NULL: not a precision */
const char *sn_dtype_onnx_name(sn_dtype t);       /* "float" */
bool sn_dtype_valid(int64_t number);              /* a type we have, not UNDEFINED */
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
/* Sub-byte elements, packed from the low bits up, to one byte each (sign-extended if signed) and
 * back. */
void sn_unpack_bits(sn_dtype t, const uint8_t *src, int64_t n, uint8_t *dst);
void sn_pack_bits(sn_dtype t, const uint8_t *src, int64_t n, uint8_t *dst);

#endif
