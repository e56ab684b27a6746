/* SPDX-License-Identifier: Apache-2.0 */
/* Exact sums of bytes to f32, a vector at a time: a product and a sum, each rounded, so that the
 * result has the bits that separate nodes have. A rest goes through a copy of a vector's size. */
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"

SN_INLINE void scale_rows(const sn_i32_scale_args *t, const bool adds)
{
    const size_t n = t->n / SN_VL * SN_VL, rest = t->n - n;
    for (size_t r = 0; r < t->rows; r++) {
        const int32_t *x = t->x + (ptrdiff_t)r * t->x_row;
        float *y = t->y + (ptrdiff_t)r * t->y_row;
        for (size_t i = 0; i < n; i += SN_VL) {
            const sn_v v = v_mul(v_from_vi(vi_load(x + i)), v_load(t->scale + i));
            v_store(y + i, adds ? v_add(v, v_load(t->addend + i)) : v);
        }
        if (!rest)
            continue;
        int32_t part[SN_VL] = {0};
        memcpy(part, x + n, rest * sizeof *x);
        const sn_v v = v_mul(v_from_vi(vi_load(part)), v_load_n(t->scale + n, rest));
        v_store_n(y + n, adds ? v_add(v, v_load_n(t->addend + n, rest)) : v, rest);
    }
}

void SN_ISA(sn_i32_scale)(const sn_i32_scale_args *t)
{
    if (t->addend)
        scale_rows(t, true);
    else
        scale_rows(t, false);
}
