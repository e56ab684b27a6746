/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors, a vector at a time. The file that includes this says how SN_VL bytes
 * are read and written: vi_load_u8, vi_load_i8, vi_store_u8 (low bytes); and vb_load, vb_store,
 * vb_max of VB_BYTES bytes. A rest goes through a copy
 * of a vector's size. */
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"

#define LOAD(type)                                                                                 \
    void SN_ISA(sn_##type##_load)(float *y, const uint8_t *x, size_t n, int32_t zero)              \
    {                                                                                              \
        const sn_vi z = vi_set1(zero);                                                             \
        size_t i = 0;                                                                              \
        for (; i + SN_VL <= n; i += SN_VL)                                                         \
            v_store(y + i, v_from_vi(vi_sub(vi_load_##type(x + i), z)));                           \
        if (i == n)                                                                                \
            return;                                                                                \
        uint8_t rest[SN_VL] = {0};                                                                 \
        memcpy(rest, x + i, n - i);                                                                \
        v_store_n(y + i, v_from_vi(vi_sub(vi_load_##type(rest), z)), n - i);                       \
    }
LOAD(u8)
LOAD(i8)

/* v_at_least and v_at_most keep NaN, which becomes 0 on the way: lo again after that. */
SN_INLINE void store_one(uint8_t *y, sn_v x, sn_v bias, sn_v scale, sn_v zero, sn_v lo, sn_v hi)
{
    sn_v v = v_add(v_round(v_mul(v_add(x, bias), scale)), zero);
    v = v_select(v_nan(v), lo, v_at_most(v_at_least(v, lo), hi));
    vi_store_u8(y, vi_from_v(v));
}

void SN_ISA(sn_q8_store)(uint8_t *y, const float *x, size_t n, float bias, float scale, float zero,
                         float lo)
{
    const sn_v b = v_set1(bias), s = v_set1(scale), z = v_set1(zero), l = v_set1(lo),
               h = v_set1(lo + 255.0f);
    size_t i = 0;
    for (; i + SN_VL <= n; i += SN_VL)
        store_one(y + i, v_load(x + i), b, s, z, l, h);
    if (i == n)
        return;
    uint8_t rest[SN_VL];
    store_one(rest, v_load_n(x + i, n - i), b, s, z, l, h);
    memcpy(y + i, rest, n - i);
}

/* Cutting before rounding is cutting after it, as both limits are integers. They are those of the
 * result less its zero point, which is added to integers. */
typedef struct byte_limits {
    sn_v lo, hi;
    sn_vi zero;
} byte_limits;

SN_INLINE byte_limits limits_of(float zero, float lo, float hi)
{
    return (byte_limits){v_set1(lo - zero), v_set1(hi - zero), vi_set1((int32_t)zero)};
}

/* NaN becomes lo. */
SN_INLINE sn_vi to_bytes(sn_v v, const byte_limits *l)
{
    return vi_add(vi_from_v(v_at_most(v_number_least(v, l->lo), l->hi)), l->zero);
}

#if !BYTES_HAVE_REQUANTIZE /* the file has its own */
SN_INLINE void add_to_row(const sn_requantize_sum *s, uint8_t *y, const uint8_t *z, size_t n)
{
    SN_ISA(sn_q8_add)
    (&(sn_q8_binary_args){.a = s->second ? z : y,
                          .b = s->second ? y : z,
                          .y = y,
                          .n = n,
                          .a_scale = s->a_scale,
                          .b_scale = s->b_scale,
                          .offset = s->offset,
                          .mode = SN_BINARY_VV,
                          .is_signed = s->is_signed});
}

void SN_ISA(sn_i32_requantize)(const sn_requantize_args *t)
{
    const byte_limits l = limits_of(t->zero, t->lo, t->hi);
    const size_t n = t->n / SN_VL * SN_VL, rest = t->n - n;
    for (size_t r = 0; r < t->rows; r++) {
        const int32_t *x = t->x + (ptrdiff_t)r * t->x_row;
        uint8_t *y = t->y + (ptrdiff_t)r * t->y_row;
        for (size_t i = 0; i < n; i += SN_VL)
            vi_store_u8(y + i,
                        to_bytes(v_mul(v_from_vi(vi_load(x + i)), v_load(t->scale + i)), &l));
        if (rest) {
            int32_t part[SN_VL] = {0};
            uint8_t made[SN_VL];
            memcpy(part, x + n, rest * sizeof *x);
            const sn_v scale = v_load_n(t->scale + n, rest);
            vi_store_u8(made, to_bytes(v_mul(v_from_vi(vi_load(part)), scale), &l));
            memcpy(y + n, made, rest);
        }
        if (t->sum)
            add_to_row(t->sum, y, t->sum->z + (ptrdiff_t)r * t->y_row, t->n);
    }
}
#endif

void SN_ISA(sn_u8_max)(uint8_t *y, const uint8_t *x, size_t n, uint8_t flip)
{
    size_t i = 0;
    for (; i + VB_BYTES <= n; i += VB_BYTES)
        vb_store(y + i, vb_max(vb_load(y + i), vb_load(x + i), flip));
    sn_u8_max_ref(y + i, x + i, n - i, flip);
}

void SN_ISA(sn_f32_axpy)(float *y, const float *x, size_t n, size_t stride, float a)
{
    size_t i = 0;
    const sn_v va = v_set1(a);
    if (stride == 1) {
        for (; i + SN_VL <= n; i += SN_VL)
            v_store(y + i, v_fma(va, v_load(x + i), v_load(y + i)));
        if (i < n)
            v_store_n(y + i, v_fma(va, v_load_n(x + i, n - i), v_load_n(y + i, n - i)), n - i);
        return;
    }
    for (; i < n; i++)
        y[i] += a * x[i * stride];
}
