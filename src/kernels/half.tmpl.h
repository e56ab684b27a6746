/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and f32, a vector at a time. The file that includes this says how one vector of
 * SN_VL is read and written: v_load_f16, v_store_f16, vi_load_u16 (zeros above), vi_store_u16 (low
 * halves). A rest goes through a copy of a vector's size. */
#include <string.h>

#include "kernels/kernels.h"

SN_INLINE sn_v v_load_bf16(const uint16_t *p)
{
    return v_cast(vi_shl(vi_load_u16(p), 16));
}

/* As bf16, in the low halves. */
SN_INLINE sn_vi vi_round_bf16(sn_v v)
{
    sn_vi u = vi_cast(v), odd = vi_and(vi_shr(u, 16), vi_set1(1));
    sn_vi rounded = vi_shr(vi_add(vi_add(u, vi_set1(0x7fff)), odd), 16);
    sn_vi quiet = vi_or(vi_shr(u, 16), vi_set1(0x40));
    return vi_cast(v_select(v_nan(v), v_cast(quiet), v_cast(rounded)));
}

SN_INLINE void v_store_bf16(uint16_t *p, sn_v v)
{
    vi_store_u16(p, vi_round_bf16(v));
}

#define LOAD(type)                                                                                 \
    void SN_ISA(sn_##type##_load)(float *y, const uint16_t *x, size_t n)                           \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + SN_VL <= n; i += SN_VL)                                                         \
            v_store(y + i, v_load_##type(x + i));                                                  \
        if (i == n)                                                                                \
            return;                                                                                \
        uint16_t rest[SN_VL] = {0};                                                                \
        memcpy(rest, x + i, (n - i) * sizeof *x);                                                  \
        v_store_n(y + i, v_load_##type(rest), n - i);                                              \
    }

#define STORE(type)                                                                                \
    void SN_ISA(sn_##type##_store)(uint16_t * y, const float *x, size_t n)                         \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + SN_VL <= n; i += SN_VL)                                                         \
            v_store_##type(y + i, v_load(x + i));                                                  \
        if (i == n)                                                                                \
            return;                                                                                \
        uint16_t rest[SN_VL];                                                                      \
        v_store_##type(rest, v_load_n(x + i, n - i));                                              \
        memcpy(y + i, rest, (n - i) * sizeof *y);                                                  \
    }

LOAD(f16)
STORE(f16)
LOAD(bf16)
STORE(bf16)

/* 16 numbers, by 16 factors if there are any. */
SN_INLINE void store_block(uint16_t *y, const float *x, const float *gate)
{
    for (size_t l = 0; l < SN_PAIR_BLOCK; l += SN_VL)
        v_store_bf16(y + l, gate ? v_mul(v_load(x + l), v_load(gate + l)) : v_load(x + l));
}

void SN_ISA(sn_bf16_pairs)(uint16_t *y, const float *a, const float *b, size_t n, size_t step,
                           const float *gate)
{
    for (size_t i = 0; i < n; i++, y += 2 * SN_PAIR_BLOCK) {
        store_block(y, a + i * step, gate);
        if (b)
            store_block(y + SN_PAIR_BLOCK, b + i * step, gate ? gate + SN_PAIR_BLOCK : NULL);
        else
            memset(y + SN_PAIR_BLOCK, 0, SN_PAIR_BLOCK * sizeof *y);
    }
}

SN_INLINE sn_v v_zip_bf16(sn_v a, sn_v b)
{
    return v_cast(vi_or(vi_round_bf16(a), vi_shl(vi_round_bf16(b), 16)));
}

void SN_ISA(sn_bf16_zip)(uint16_t *y, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL) {
        const sn_v pairs = v_zip_bf16(v_load(a + i), b ? v_load(b + i) : v_zero());
        memcpy(y + 2 * i, &pairs, sizeof pairs);
    }
    if (i == n)
        return;
    const sn_v rest = v_zip_bf16(v_load_n(a + i, n - i), b ? v_load_n(b + i, n - i) : v_zero());
    memcpy(y + 2 * i, &rest, (n - i) * 2 * sizeof *y);
}
