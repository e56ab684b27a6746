/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights on NEON; the code is sparse.tmpl.h and sparse_rows.tmpl.h. */
#include "kernels/simd_neon.h"

#define SN_SPARSE_MOST SN_SPARSE_MOST8
#include "kernels/sparse.tmpl.h"

typedef sn_v v4;
#define v4_load(p)        v_load(p)
#define v4_store(p, v)    v_store(p, v)
#define v4_set1(f)        v_set1(f)
#define v4_bcast(p)       v_bcast(p)
#define v4_add(a, b)      v_add(a, b)
#define v4_fma(a, b, c)   v_fma(a, b, c)
#define v4_at_least(v, l) v_at_least(v, l)
#define v4_at_most(v, h)  v_at_most(v, h)
#include "kernels/sparse_rows.tmpl.h"

void sn_f32_sparse4_rows_neon(const sn_f32_sparse_rows *t)
{
    sparse_rows_run(t);
}

/* ------------------------------------------------------------------ bytes */
/* 16 rows of x at one k times a weight, widened to 32 bits: products of bytes leave no room for a
 * second one in 16. */
enum { REGISTERS = 4 }; /* of four rows */

static void bytes_panel(const sn_q8_sparse *t, size_t p)
{
    const size_t o0 = p * SN_SPARSE_PANEL, from = t->first[p], to = t->first[p + 1];
    int32x4_t acc[SN_SPARSE_PANEL][REGISTERS];
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        const int32x4_t first = vdupq_n_s32(o0 + o < t->outputs ? t->start[o0 + o] : 0);
        SN_UNROLL for (int i = 0; i < REGISTERS; i++) acc[o][i] = first;
    }
    for (size_t e = 4 * from; e < 4 * to; e++) {
        const int8x16_t v = vreinterpretq_s8_u8(vld1q_u8(t->x + t->index[e] * t->x_k));
        const int8_t *w = t->w + e / 4 * 16 + e % 4;
        SN_UNROLL for (int o = 0; o < SN_SPARSE_PANEL; o++)
        {
            const int8x16_t weight = vdupq_n_s8(w[4 * o]);
            const int16x8_t low = vmull_s8(vget_low_s8(v), vget_low_s8(weight));
            const int16x8_t high = vmull_high_s8(v, weight);
            acc[o][0] = vaddw_s16(acc[o][0], vget_low_s16(low));
            acc[o][1] = vaddw_high_s16(acc[o][1], low);
            acc[o][2] = vaddw_s16(acc[o][2], vget_low_s16(high));
            acc[o][3] = vaddw_high_s16(acc[o][3], high);
        }
    }
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        if (o0 + o == t->outputs)
            return;
        int32_t *y = t->y + (ptrdiff_t)(o0 + o) * t->y_o;
        SN_UNROLL for (int i = 0; i < REGISTERS; i++)
            vst1q_s32(y + i / 2 * t->y_v + i % 2 * 4, acc[o][i]);
    }
}

void sn_i8_sparse4_neon(const sn_q8_sparse *t)
{
    for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)
        bytes_panel(t, p);
}
