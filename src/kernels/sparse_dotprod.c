/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights of bytes with the dot product instructions of ARMv8.2: 16 rows of x, of four k
 * each, are interleaved to four registers of four rows × four bytes. */
#include <arm_neon.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { REGISTERS = 4 }; /* of four rows */

SN_INLINE int8x16_t row_of(const uint8_t *x)
{
    return vreinterpretq_s8_u8(vld1q_u8(x));
}

SN_INLINE void interleave(int8x16_t out[REGISTERS], const uint8_t *x, const uint16_t *at,
                          ptrdiff_t x_k)
{
    const int8x16_t a = row_of(x + at[0] * x_k), b = row_of(x + at[1] * x_k);
    const int8x16_t c = row_of(x + at[2] * x_k), d = row_of(x + at[3] * x_k);
    const int16x8_t ab = vreinterpretq_s16_s8(vzip1q_s8(a, b));
    const int16x8_t ab2 = vreinterpretq_s16_s8(vzip2q_s8(a, b));
    const int16x8_t cd = vreinterpretq_s16_s8(vzip1q_s8(c, d));
    const int16x8_t cd2 = vreinterpretq_s16_s8(vzip2q_s8(c, d));
    out[0] = vreinterpretq_s8_s16(vzip1q_s16(ab, cd));
    out[1] = vreinterpretq_s8_s16(vzip2q_s16(ab, cd));
    out[2] = vreinterpretq_s8_s16(vzip1q_s16(ab2, cd2));
    out[3] = vreinterpretq_s8_s16(vzip2q_s16(ab2, cd2));
}

static void panel(const sn_q8_sparse *t, size_t p)
{
    const size_t o0 = p * SN_SPARSE_PANEL;
    const uint16_t *at = t->index + 4 * (size_t)t->first[p];
    const uint16_t *end = t->index + 4 * (size_t)t->first[p + 1];
    const int8_t *w = t->w + 16 * (size_t)t->first[p];
    int32x4_t acc[SN_SPARSE_PANEL][REGISTERS];
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        const int32x4_t first = vdupq_n_s32(o0 + o < t->outputs ? t->start[o0 + o] : 0);
        SN_UNROLL for (int i = 0; i < REGISTERS; i++) acc[o][i] = first;
    }
    for (; at < end; at += 4, w += 16) {
        const int8x16_t weights = vld1q_s8(w);
        int8x16_t v[REGISTERS];
        interleave(v, t->x, at, t->x_k);
        SN_UNROLL for (int i = 0; i < REGISTERS; i++)
        {
            acc[0][i] = vdotq_laneq_s32(acc[0][i], v[i], weights, 0);
            acc[1][i] = vdotq_laneq_s32(acc[1][i], v[i], weights, 1);
            acc[2][i] = vdotq_laneq_s32(acc[2][i], v[i], weights, 2);
            acc[3][i] = vdotq_laneq_s32(acc[3][i], v[i], weights, 3);
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

void sn_i8_sparse4_dotprod(const sn_q8_sparse *t)
{
    for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)
        panel(t, p);
}

typedef int32x4_t b16;
#define b16_load(p)         vreinterpretq_s32_s8(vld1q_s8((const int8_t *)(const void *)(p)))
#define b16_store(p, v)     vst1q_s32(p, v)
#define b16_zero()          vdupq_n_s32(0)
#define b16_bytes(word)     vreinterpretq_s32_u32(vdupq_n_u32(word))
#define b16_add(a, b)       vaddq_s32(a, b)
#define b16_dot(sums, x, w) vdotq_s32(sums, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(w))
#include "kernels/sparse_bytes.tmpl.h"

void sn_i8_sparse4_row_dotprod(const sn_q8_sparse_row *t)
{
    sparse_row(t);
}
