/* SPDX-License-Identifier: Apache-2.0 */
/* What arithmetic is done in: the type of the products, and whether vectors or tiles make them.
 * Every kind has its own peak, so a step says which one it uses. This is not the type that its
 * results are stored in: sums of bf16 are f32, and bytes may be added in f32. */
#ifndef SN_BASE_ARITHMETIC_H
#define SN_BASE_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

typedef enum sn_arithmetic {
    SN_ARITH_NONE, /* it moves or converts, or nobody says */
#define SN_ARITHMETIC(name, word) SN_ARITH_##name,
#include "base/arithmetic.inc"
#undef SN_ARITHMETIC
    SN_ARITH_COUNT
} sn_arithmetic;

/* Of products of elements of this type. */
sn_arithmetic sn_arithmetic_of(sn_dtype products, bool tiles);

const char *sn_arithmetic_name(sn_arithmetic a); /* "bf16_tiles"; "" for NONE */
/* SN_ARITH_NONE: none is called so. */
sn_arithmetic sn_arithmetic_named(const char *word, size_t n);

/* A set of them: bit a for kind a. As text "f32+bf16_tiles", "" for none. */
enum { SN_ARITH_TEXT = 80 };
const char *sn_arithmetic_text(uint32_t set, char text[SN_ARITH_TEXT]);

#endif
