/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to f32 and sums to bytes; see bytes.h. */
#include "compute/bytes.h"

#include "compute/split.h"
#include "kernels/kernels.h"

void sn_bytes_to_f32(uint32_t cpu_flags, sonde_dtype t, float *dst, const void *src, int64_t n,
                     int32_t zero)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    (t == SONDE_DTYPE_U8 ? k->u8_load : k->i8_load)(dst, src, (size_t)n, zero);
}

void sn_exact_join(int32_t *acc, const float *y, int64_t n, bool first)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] = first ? (int32_t)y[i] : (int32_t)((uint32_t)acc[i] + (uint32_t)(int32_t)y[i]);
}

void sn_requantize_f32(uint32_t cpu_flags, sonde_dtype t, void *y, const float *sums, int64_t n,
                       int32_t bias, float scale, int32_t zero)
{
    sn_kernels_get(cpu_flags)->q8_store(y, sums, (size_t)n, (float)bias, scale, (float)zero,
                                        t == SONDE_DTYPE_U8 ? 0.0f : -128.0f);
}

void sn_requantize(uint32_t cpu_flags, sonde_dtype t, void *y, const int32_t *acc, int64_t n,
                   float scale, int32_t zero)
{
    float part[256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = sn_min(n - i, 256);
        for (int64_t k = 0; k < m; k++)
            part[k] = (float)acc[i + k];
        sn_requantize_f32(cpu_flags, t, (uint8_t *)y + i, part, m, 0, scale, zero);
    }
}
