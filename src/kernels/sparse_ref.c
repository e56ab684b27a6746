/* SPDX-License-Identifier: Apache-2.0 */
/* The references of products with sparse weights: the formulas of signatures.h. */
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
                for (uint32_t j = t->first[o / 4]; j < t->first[o / 4 + 1]; j++)
                    sum = sum + x[t->index[j] * t->x_k] * t->w[4 * (size_t)j + o % 4];
                t->y[(ptrdiff_t)o * t->y_o + (ptrdiff_t)v * t->y_v + l] = clip(sum, t->lo, t->hi);
            }
}

void sn_f32_sparse4_rows_ref(const sn_f32_sparse_rows *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t o = 0; o < t->outputs; o++) {
            const float *x = t->x + (ptrdiff_t)r * t->x_row;
            float sum = t->start ? t->start[o] : 0.0f;
            for (uint32_t j = t->first[o / 4]; j < t->first[o / 4 + 1]; j++)
                sum = sum + x[t->index[j] * t->x_k] * t->w[4 * (size_t)j + o % 4];
            t->y[(ptrdiff_t)r * t->y_row + (ptrdiff_t)o] = clip(sum, t->lo, t->hi);
        }
}
