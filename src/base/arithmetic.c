/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arithmetic.h"

#include <stdio.h>
#include <string.h>

static const char *const words[SN_ARITH_COUNT] = {
    "",
#define SN_ARITHMETIC(name, word) word,
#include "base/arithmetic.inc"
#undef SN_ARITHMETIC
};

_Static_assert(sizeof ""
#define SN_ARITHMETIC(name, word) word "+"
#include "base/arithmetic.inc"
#undef SN_ARITHMETIC
                   <= SN_ARITH_TEXT,
               "a set of all of them does not fit its text");

sn_arithmetic sn_arithmetic_of(sn_dtype products, bool tiles)
{
    switch (products) {
    case SONDE_DTYPE_F64:
        return SN_ARITH_F64;
    case SONDE_DTYPE_BF16:
        return tiles ? SN_ARITH_BF16_TILES : SN_ARITH_BF16;
    case SONDE_DTYPE_F16:
        return tiles ? SN_ARITH_F16_TILES : SN_ARITH_F32;
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_U8:
        return tiles ? SN_ARITH_I8_TILES : SN_ARITH_I8;
    default:
        return sn_dtype_is_int(products) ? SN_ARITH_INT : SN_ARITH_F32;
    }
}

const char *sn_arithmetic_name(sn_arithmetic a)
{
    return (unsigned)a < SN_ARITH_COUNT ? words[a] : "";
}

sn_arithmetic sn_arithmetic_named(const char *word, size_t n)
{
    for (int a = 1; a < SN_ARITH_COUNT; a++)
        if (strlen(words[a]) == n && memcmp(words[a], word, n) == 0)
            return (sn_arithmetic)a;
    return SN_ARITH_NONE;
}

const char *sn_arithmetic_text(uint32_t set, char text[SN_ARITH_TEXT])
{
    size_t n = 0;
    text[0] = 0;
    for (int a = 1; a < SN_ARITH_COUNT; a++)
        if (set >> a & 1)
            n += (size_t)snprintf(text + n, SN_ARITH_TEXT - n, "%s%s", n ? "+" : "", words[a]);
    return text;
}
