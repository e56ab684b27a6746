/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of small floats: those of 16 bits have kernels, the others are converted one by one. */
#include "compute/small_floats.h"

#include <math.h>
#include <string.h>

#include "base/codec.h"
#include "kernels/kernels.h"

void sn_load_f32(uint32_t cpu_flags, sonde_dtype t, float *dst, const void *src, size_t n)
{
    const uint8_t *b = src;
    const sn_f8_format *f = sn_f8_format_of(t);
    switch (t) {
    case SONDE_DTYPE_F32:
        memcpy(dst, src, n * sizeof(float));
        return;
    case SONDE_DTYPE_F16:
        sn_kernels_get(cpu_flags)->f16_load(dst, src, n);
        return;
    case SONDE_DTYPE_BF16:
        sn_kernels_get(cpu_flags)->bf16_load(dst, src, n);
        return;
    case SONDE_DTYPE_F8E8M0:
        for (size_t i = 0; i < n; i++)
            dst[i] = sn_e8m0_to_f32(b[i]);
        return;
    default:
        for (size_t i = 0; f && i < n; i++) {
            const float v = sn_f8_decode(f, b[i]);
            dst[i] = isnan(v) ? NAN : v; /* the sign of a NaN is not kept */
        }
    }
}

void sn_store_f32(uint32_t cpu_flags, sonde_dtype t, void *dst, const float *src, size_t n,
                  sn_rounding how)
{
    uint8_t *b = dst;
    const sn_f8_format *f = sn_f8_format_of(t);
    switch (t) {
    case SONDE_DTYPE_F32:
        memcpy(dst, src, n * sizeof(float));
        return;
    case SONDE_DTYPE_F16:
        sn_kernels_get(cpu_flags)->f16_store(dst, src, n);
        return;
    case SONDE_DTYPE_BF16:
        sn_kernels_get(cpu_flags)->bf16_store(dst, src, n);
        return;
    case SONDE_DTYPE_F8E8M0:
        for (size_t i = 0; i < n; i++)
            b[i] = sn_f32_to_e8m0(src[i], (sn_e8m0_round)how.e8m0, how.saturate);
        return;
    default:
        for (size_t i = 0; f && i < n; i++)
            b[i] = sn_f8_encode(f, src[i], how.saturate);
    }
}
