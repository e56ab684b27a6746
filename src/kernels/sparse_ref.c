/* SPDX-License-Identifier: Apache-2.0 */
/* The references of products with sparse weights: the formulas of signatures.h. */
#include <stdbool.h>
#include <string.h>

#include "base/codec.h"
#include "kernels/kernels.h"

static float clip(float v, float lo, float hi)
{
    if (v < lo)
        v = lo;
    if (v > hi)
        v = hi;
    return v;
}

void sn_f32_sparse4_ref(const sn_f32_sparse *t)
{
    for (size_t o = 0; o < t->outputs; o++)
        for (unsigned v = 0; v < t->vectors; v++)
            for (unsigned l = 0; l < t->block; l++) {
                const float *x = t->x + (ptrdiff_t)v * t->x_v + l;
                float sum = t->start ? t->start[o] : 0.0f;
                for (uint32_t j = t->first[o / t->panel]; j < t->first[o / t->panel + 1]; j++) {
                    const ptrdiff_t at = t->x_at ? t->x_at[t->index[j]] : t->index[j] * t->x_k;
                    sum = sum + x[at] * t->w[t->panel * (size_t)j + o % t->panel];
                }
                t->y[(ptrdiff_t)o * t->y_o + (ptrdiff_t)v * t->y_v + l] = clip(sum, t->lo, t->hi);
            }
}

void sn_f32_sparse4_rows_ref(const sn_f32_sparse_rows *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t o = 0; o < t->outputs; o++) {
            const float *x = t->x + (ptrdiff_t)r * t->x_row;
            float sum = t->start ? t->start[o] : 0.0f;
            for (uint32_t j = t->first[o / t->panel]; j < t->first[o / t->panel + 1]; j++)
                sum = sum + x[t->index[j] * t->x_k] * t->w[t->panel * (size_t)j + o % t->panel];
            t->y[(ptrdiff_t)r * t->y_row + (ptrdiff_t)o] = clip(sum, t->lo, t->hi);
        }
}

static inline int32_t number(uint8_t byte, bool is_signed)
{
    return is_signed ? (int32_t)(int8_t)byte : (int32_t)byte;
}

static inline void bytes(const sn_q8_sparse *t, bool is_signed)
{
    for (size_t o = 0; o < t->outputs; o++)
        for (unsigned v = 0; v < t->vectors; v++)
            for (unsigned l = 0; l < t->block; l++) {
                const uint8_t *x = t->x + v * t->block + l;
                uint32_t sum = (uint32_t)t->start[o];
                for (size_t e = 4 * (size_t)t->first[o / 4]; e < 4 * (size_t)t->first[o / 4 + 1];
                     e++)
                    sum += (uint32_t)(number(x[t->index[e] * t->x_k], is_signed) *
                                      t->w[e / 4 * 16 + o % 4 * 4 + e % 4]);
                t->y[(ptrdiff_t)o * t->y_o + (ptrdiff_t)v * t->y_v + l] = (int32_t)sum;
            }
}

void sn_u8_sparse4_ref(const sn_q8_sparse *t)
{
    bytes(t, false);
}

void sn_i8_sparse4_ref(const sn_q8_sparse *t)
{
    bytes(t, true);
}

static inline void bytes_row(const sn_q8_sparse_row *t, bool is_signed)
{
    for (size_t o = 0; o < t->outputs; o++) {
        uint32_t sum = (uint32_t)t->start[o];
        for (size_t e = 4 * (size_t)t->first[o / 4]; e < 4 * (size_t)t->first[o / 4 + 1]; e++)
            sum += (uint32_t)(number(t->x[t->index[e]] ^ t->flip, is_signed) *
                              t->w[e / 4 * 16 + o % 4 * 4 + e % 4]);
        t->y[o] = (int32_t)sum;
    }
}

void sn_u8_sparse4_row_ref(const sn_q8_sparse_row *t)
{
    bytes_row(t, false);
}

void sn_i8_sparse4_row_ref(const sn_q8_sparse_row *t)
{
    bytes_row(t, true);
}

/* ------------------------------------------------------------------ tiles */
enum { TILE = 16, LINE = 64 };

static inline void byte_tiles(const sn_tile_sparse *t, bool is_signed)
{
    for (size_t o = 0; o < t->outputs; o++)
        for (size_t v = 0; v < t->vectors; v++)
            for (size_t r = 0; r < TILE; r++) {
                uint32_t sum = (uint32_t)((const int32_t *)t->start)[o];
                for (size_t i = TILE * (size_t)t->first[o / TILE];
                     i < TILE * (size_t)t->first[o / TILE + 1]; i++)
                    for (size_t c = 0; c < 4; c++) {
                        const uint8_t x =
                            ((const uint8_t *)t->x)[(ptrdiff_t)v * t->x_v + t->index[i] * LINE +
                                                    (ptrdiff_t)(r * 4 + c)];
                        const int8_t w =
                            ((const int8_t *)
                                 t->w)[i / TILE * TILE * LINE + o % TILE * LINE + i % TILE * 4 + c];
                        sum += (uint32_t)(number(x, is_signed) * w);
                    }
                ((int32_t *)t->y)[(ptrdiff_t)o * t->y_o + (ptrdiff_t)v * t->y_v + (ptrdiff_t)r] =
                    (int32_t)sum;
            }
}

void sn_u8_sparse16_ref(const sn_tile_sparse *t)
{
    byte_tiles(t, false);
}

void sn_i8_sparse16_ref(const sn_tile_sparse *t)
{
    byte_tiles(t, true);
}

static float half_at(const void *base, ptrdiff_t bytes)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)base + bytes, sizeof bits);
    return sn_bf16_to_f32(bits);
}

void sn_bf16_sparse16_ref(const sn_tile_sparse *t)
{
    for (size_t o = 0; o < t->outputs; o++)
        for (size_t v = 0; v < t->vectors; v++)
            for (size_t r = 0; r < TILE; r++) {
                float sum = ((const float *)t->start)[o];
                for (size_t i = TILE * (size_t)t->first[o / TILE];
                     i < TILE * (size_t)t->first[o / TILE + 1]; i++)
                    for (size_t c = 0; c < 2; c++)
                        sum = sum + half_at(t->x, (ptrdiff_t)v * t->x_v + t->index[i] * LINE +
                                                      (ptrdiff_t)(r * 4 + c * 2)) *
                                        half_at(t->w, (ptrdiff_t)(i / TILE * TILE * LINE +
                                                                  o % TILE * LINE + i % TILE * 4 +
                                                                  c * 2));
                ((float *)t->y)[(ptrdiff_t)o * t->y_o + (ptrdiff_t)v * t->y_v + (ptrdiff_t)r] = sum;
            }
}
