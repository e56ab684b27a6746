/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes, one at a time. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"

static inline int32_t number(uint8_t byte, uint8_t flip, bool is_signed)
{
    const uint8_t b = byte ^ flip;
    return is_signed ? (int32_t)(int8_t)b : (int32_t)b;
}

static inline void tile(const sn_q8_tile *t, bool is_signed)
{
    const size_t groups = (t->channels + t->kr - 1) / t->kr;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t q = 0; q < t->blocks; q++)
            for (size_t l = 0; l < t->block; l++) {
                const int8_t *w = t->w + (ptrdiff_t)q * t->w_q;
                uint32_t sum = (uint32_t)t->start[q * t->block + l];
                for (size_t k = 0; k < t->taps; k++) {
                    const uint8_t *x = t->x[k * t->rows + r] + t->x_at;
                    for (size_t c = 0; c < t->channels; c++)
                        sum += (uint32_t)(number(x[c], t->flip, is_signed) *
                                          w[((k * groups + c / t->kr) * t->block + l) * t->kr +
                                            c % t->kr]);
                }
                t->y[(ptrdiff_t)r * t->y_row + (ptrdiff_t)(q * t->block + l)] = (int32_t)sum;
            }
}

static inline void depthwise(const sn_q8_tile *t, bool is_signed)
{
    const size_t groups = (t->taps + t->kr - 1) / t->kr;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->channels; c++) {
            uint32_t sum = (uint32_t)t->start[c];
            for (size_t k = 0; k < t->taps; k++)
                sum += (uint32_t)(number(t->x[k * t->rows + r][t->x_at + c], t->flip, is_signed) *
                                  t->w[((c / t->block * groups + k / t->kr) * t->block +
                                        c % t->block) *
                                           t->kr +
                                       k % t->kr]);
            t->y[(ptrdiff_t)r * t->y_row + (ptrdiff_t)c] = (int32_t)sum;
        }
}

void sn_u8_quads_ref(const sn_quads_args *t)
{
    for (size_t p = 0; p < t->pairs; p++)
        for (size_t i = 0; i < SN_QUAD_TAPS; i++) {
            const size_t pixel = 2 * p + i - t->before;
            const uint8_t *x = pixel < t->there ? t->x + (ptrdiff_t)pixel * t->x_pixel : t->outside;
            for (size_t c = 0; c < SN_QUAD_CHANNELS; c++)
                t->y[p * SN_QUAD_BYTES + SN_QUAD_AT(c) + i] = c < t->channels ? x[c] ^ t->flip : 0;
        }
}

void sn_u8_by_quads_ref(const sn_q8_depthwise_args *t)
{
    for (size_t r = 0; r < t->rows; r++) {
        const size_t pixel = r * t->stride;
        int32_t sums[SN_QUAD_CHANNELS];
        for (size_t c = 0; c < SN_QUAD_CHANNELS; c++) {
            uint32_t sum = (uint32_t)t->start[c];
            for (size_t k = 0; k < t->runs; k++)
                for (size_t q = 0; q < t->quads; q++) {
                    const uint8_t *x = t->x + t->at[k] + (pixel / 2 + 2 * q) * SN_QUAD_BYTES;
                    const int8_t *w =
                        t->w + ((pixel % 2 * t->runs + k) * t->quads + q) * SN_QUAD_BYTES;
                    for (size_t i = 0; i < SN_QUAD_TAPS; i++)
                        sum += (uint32_t)(x[SN_QUAD_AT(c) + i] * w[SN_QUAD_AT(c) + i]);
                }
            sums[c] = (int32_t)sum;
        }
        if (t->sums) {
            memcpy(t->sums + (ptrdiff_t)r * t->sums_row, sums, sizeof sums);
            continue;
        }
        const sn_requantize_args bytes = {.x = sums,
                                          .scale = t->scale,
                                          .y = t->y + (ptrdiff_t)r * t->y_row,
                                          .rows = 1,
                                          .n = t->channels,
                                          .zero = t->zero,
                                          .lo = t->lo,
                                          .hi = t->hi};
        sn_i32_requantize_ref(&bytes);
    }
}

void sn_u8_tile_ref(const sn_q8_tile *t)
{
    tile(t, false);
}

void sn_i8_tile_ref(const sn_q8_tile *t)
{
    tile(t, true);
}

void sn_u8_depthwise_ref(const sn_q8_tile *t)
{
    depthwise(t, false);
}

void sn_i8_depthwise_ref(const sn_q8_tile *t)
{
    depthwise(t, true);
}

void sn_i32_scale_ref(const sn_i32_scale_args *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i++) {
            const float v = (float)t->x[(ptrdiff_t)r * t->x_row + (ptrdiff_t)i] * t->scale[i];
            t->y[(ptrdiff_t)r * t->y_row + (ptrdiff_t)i] = t->addend ? v + t->addend[i] : v;
        }
}

/* The byte v, of an integer v, with what is added to it. */
static uint8_t summed(const sn_requantize_sum *s, int32_t v, ptrdiff_t at)
{
    const uint8_t own = (uint8_t)v, z = s->z[at];
    uint8_t y;
    sn_q8_add_ref(&(sn_q8_binary_args){.a = s->second ? &z : &own,
                                       .b = s->second ? &own : &z,
                                       .y = &y,
                                       .n = 1,
                                       .a_scale = s->a_scale,
                                       .b_scale = s->b_scale,
                                       .offset = s->offset,
                                       .mode = SN_BINARY_VV,
                                       .is_signed = s->is_signed});
    return y;
}

void sn_i32_requantize_ref(const sn_requantize_args *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i++) {
            const int32_t x = t->x[(ptrdiff_t)r * t->x_row + (ptrdiff_t)i];
            float v = rintf((float)x * t->scale[i]) + t->zero;
            v = v > t->lo ? v : t->lo; /* NaN too */
            v = v < t->hi ? v : t->hi;
            const ptrdiff_t at = (ptrdiff_t)r * t->y_row + (ptrdiff_t)i;
            t->y[at] = t->sum ? summed(t->sum, (int32_t)v, at) : (uint8_t)(int32_t)v;
        }
}
