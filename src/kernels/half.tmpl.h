/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and f32, a vector at a time. The file that includes this says how one vector of
 * SN_VL is read and written: v_load_f16, v_store_f16, vi_load_u16 (zeros above), vi_store_u16 (low
 * halves). A rest goes through a copy of a vector's size. */
#include <stdbool.h>
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

/* v in bf16, and what rounding takes away from it, in low halves. What is not finite in bf16 is all
 * rest. */
SN_INLINE sn_vi vi_split(sn_v v, sn_vi *rest)
{
    const sn_vi rounded = vi_round_bf16(v);
    const sn_v back = v_cast(vi_shl(rounded, 16));
    const sn_vi left = vi_round_bf16(v_sub(v, back));
    const sn_v inf = v_set1(__builtin_inff());
    *rest = vi_cast(v_select(v_lt(v_abs(back), inf), v_cast(left), v_cast(rounded)));
    return vi_cast(v_select(v_lt(v_abs(back), inf), v_cast(rounded), v_zero()));
}

/* 16 numbers, by 16 factors if there are any. */
SN_INLINE void store_block(uint16_t *y, uint16_t *rest, const float *x, const uint16_t *halves,
                           const float *gate)
{
    for (size_t l = 0; l < SN_PAIR_BLOCK; l += SN_VL) {
        const sn_v from = x ? v_load(x + l) : v_load_bf16(halves + l);
        const sn_v v = gate ? v_mul(from, v_load(gate + l)) : from;
        sn_vi left;
        vi_store_u16(y + l, rest ? vi_split(v, &left) : vi_round_bf16(v));
        if (rest)
            vi_store_u16(rest + l, left);
    }
}

void SN_ISA(sn_bf16_pairs)(const sn_bf16_pairs *t)
{
    const size_t block = SN_PAIR_BLOCK;
    for (size_t i = 0; i < t->n; i++) {
        uint16_t *y = t->y + i * 2 * block, *rest = t->rest ? t->rest + i * 2 * block : NULL;
        const size_t at = i * t->step;
        const bool wide = t->a != NULL;
        store_block(y, rest, wide ? t->a + at : NULL, wide ? NULL : t->a16 + at, t->gate);
        if (wide ? t->b != NULL : t->b16 != NULL) {
            store_block(y + block, rest ? rest + block : NULL, wide ? t->b + at : NULL,
                        wide ? NULL : t->b16 + at, t->gate ? t->gate + block : NULL);
            continue;
        }
        memset(y + block, 0, block * sizeof *y);
        if (rest)
            memset(rest + block, 0, block * sizeof *rest);
    }
}

void SN_ISA(sn_f16_split)(uint16_t *y, uint16_t *rest, const uint16_t *x, size_t n)
{
    size_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL) {
        sn_vi left;
        vi_store_u16(y + i, vi_split(v_load_f16(x + i), &left));
        vi_store_u16(rest + i, left);
    }
    if (i == n)
        return;
    uint16_t last[SN_VL] = {0}, high[SN_VL], low[SN_VL];
    memcpy(last, x + i, (n - i) * sizeof *x);
    sn_vi left;
    vi_store_u16(high, vi_split(v_load_f16(last), &left));
    vi_store_u16(low, left);
    memcpy(y + i, high, (n - i) * sizeof *y);
    memcpy(rest + i, low, (n - i) * sizeof *rest);
}

/* Where v is finite in f16, and not. */
SN_INLINE void store_halves(uint16_t *y, uint16_t *rest, sn_v v)
{
    uint16_t near[SN_VL], left[SN_VL];
    v_store_f16(near, v);
    const sn_v back = v_load_f16(near);
    const sn_vm finite = v_lt(v_abs(back), v_set1(__builtin_inff()));
    v_store_f16(y, v_select(finite, back, v_zero()));
    v_store_f16(left, v_select(finite, v_sub(v, back), back));
    memcpy(rest, left, sizeof left);
}

void SN_ISA(sn_f16_halves)(uint16_t *y, uint16_t *rest, const float *x, size_t n, float scale)
{
    const sn_v by = v_set1(scale);
    size_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL)
        store_halves(y + i, rest + i, v_mul(v_load(x + i), by));
    if (i == n)
        return;
    uint16_t high[SN_VL], low[SN_VL];
    store_halves(high, low, v_mul(v_load_n(x + i, n - i), by));
    memcpy(y + i, high, (n - i) * sizeof *y);
    memcpy(rest + i, low, (n - i) * sizeof *rest);
}

/* By the smaller factor first: what is then too large, is. */
SN_INLINE sn_v rescaled(sn_v x, sn_v a, sn_v b, sn_v start)
{
    const sn_vm less = v_lt(a, b);
    return v_fma(v_mul(x, v_select(less, a, b)), v_select(less, b, a), start);
}

void SN_ISA(sn_f32_rescale)(const sn_f32_rescale *t)
{
    for (size_t r = 0; r < t->rows; r++) {
        const sn_v all = v_set1(t->by_row[(ptrdiff_t)r * t->row]);
        const float *x = t->x + (ptrdiff_t)r * t->x_row;
        float *y = t->y + (ptrdiff_t)r * t->y_row;
        size_t i = 0;
        for (; i + SN_VL <= t->n; i += SN_VL)
            v_store(y + i, rescaled(v_load(x + i), all, v_load(t->by + i), v_load(t->start + i)));
        if (i == t->n)
            continue;
        const size_t n = t->n - i;
        v_store_n(
            y + i,
            rescaled(v_load_n(x + i, n), all, v_load_n(t->by + i, n), v_load_n(t->start + i, n)),
            n);
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

SN_INLINE void add_clip(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                        float hi, const bool f16)
{
    const sn_v low = v_set1(lo), high = v_set1(hi);
    for (size_t i = 0; i < n; i += SN_VL) {
        const size_t left = n - i < SN_VL ? n - i : SN_VL;
        uint16_t part[SN_VL] = {0}; /* of the last few */
        const bool whole = left == SN_VL;
        uint16_t *to = whole ? y + i : part;
        sn_v v = whole ? v_load(x + i) : v_load_n(x + i, left);
        if (z && !whole)
            memcpy(part, z + i, left * sizeof *z);
        if (z) {
            const uint16_t *from = whole ? z + i : part;
            v = v_add(v, f16 ? v_load_f16(from) : v_load_bf16(from));
        }
        v = v_at_most(v_at_least(v, low), high);
        if (f16)
            v_store_f16(to, v);
        else
            v_store_bf16(to, v);
        if (!whole)
            memcpy(y + i, part, left * sizeof *y);
    }
}

void SN_ISA(sn_bf16_add_clip)(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                              float hi)
{
    add_clip(y, x, z, n, lo, hi, false);
}

void SN_ISA(sn_f16_add_clip)(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                             float hi)
{
    add_clip(y, x, z, n, lo, hi, true);
}
