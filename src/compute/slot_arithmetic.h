/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of a driver follows from the slot of kernels that makes its products:
 * SN_SLOT_ARITHMETIC(bf16_rows) is SN_ARITH_BF16_TILES. */
#ifndef SN_COMPUTE_SLOT_ARITHMETIC_H
#define SN_COMPUTE_SLOT_ARITHMETIC_H

#include "base/arithmetic.h"
#include "kernels/kernels.h"

#define SN_SLOT_ARITHMETIC(slot) sn_arithmetic_of((sn_dtype)SN_PRODUCTS_##slot, SN_TILED_##slot)

/* Of steps in tiles of 16-bit floats, which may hold weights of f16, multiplied as that (f16) or
 * split (compute/tiles.h). */
static inline sn_arithmetic sn_tiles_arithmetic(sn_dtype weights, bool f16)
{
    if (weights == SONDE_DTYPE_F32 && f16)
        return SN_ARITH_F32_SPLIT;
    if (weights != SONDE_DTYPE_F16)
        return SN_SLOT_ARITHMETIC(bf16_rows);
    return f16 ? SN_SLOT_ARITHMETIC(f16_rows) : SN_ARITH_F16_SPLIT;
}

#endif
