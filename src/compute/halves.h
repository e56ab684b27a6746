/* SPDX-License-Identifier: Apache-2.0 */
/* Images that lie in memory as bf16 or f16, to and from f32. */
#ifndef SN_COMPUTE_HALVES_H
#define SN_COMPUTE_HALVES_H

#include "kernels/kernels.h"

static inline void sn_halves_load(const sn_kernels *k, sonde_dtype type, float *y,
                                  const uint16_t *x, size_t n)
{
    (type == SONDE_DTYPE_F16 ? k->f16_load : k->bf16_load)(y, x, n);
}

static inline void sn_halves_store(const sn_kernels *k, sonde_dtype type, uint16_t *y,
                                   const float *x, size_t n)
{
    if (type == SONDE_DTYPE_F16)
        k->f16_store(y, x, n);
    else /* which some CPUs have an instruction for */
        k->bf16_add_clip(y, x, NULL, n, -__builtin_inff(), __builtin_inff());
}

#endif
