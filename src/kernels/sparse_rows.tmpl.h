/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights times a few rows of x: the four weights of an entry are one vector of four floats,
 * which meets one number of each row. Entries go to four sums in turn, so that one addition need
 * not wait for the other. The file that includes this has vectors v4 of four floats with v4_load,
 * v4_store, v4_set1, v4_bcast, v4_add, v4_fma (a · b + c), v4_at_least and v4_at_most. */
#include "kernels/kernels.h"
#include "kernels/simd_common.h"

SN_INLINE void sparse_rows_panel(const sn_f32_sparse_rows *t, size_t panel, const int R)
{
    enum { CHAINS = 4, AHEAD = 128 }; /* entries that are fetched before they are needed */
    const size_t o0 = panel * SN_SPARSE_PANEL;
    const size_t outputs = t->outputs - o0 < SN_SPARSE_PANEL ? t->outputs - o0 : SN_SPARSE_PANEL;
    const ptrdiff_t x_k = t->x_k, x_row = t->x_row;
    const uint32_t end = t->first[panel + 1];
    uint32_t j = t->first[panel];
    float start[SN_SPARSE_PANEL] = {0};
    v4 acc[SN_SPARSE_ROWS][CHAINS];
    for (size_t o = 0; t->start && o < outputs; o++)
        start[o] = t->start[o0 + o];
    SN_UNROLL for (int r = 0; r < R; r++)
    {
        acc[r][0] = v4_load(start);
        SN_UNROLL for (int c = 1; c < CHAINS; c++) acc[r][c] = v4_set1(0);
    }
    for (; j + CHAINS <= end; j += CHAINS) {
        SN_FETCH_L1(t->w + ((size_t)j + AHEAD) * SN_SPARSE_PANEL);
        SN_FETCH_L1(t->index + j + AHEAD);
        SN_UNROLL for (int c = 0; c < CHAINS; c++)
        {
            const v4 w = v4_load(t->w + ((size_t)j + (size_t)c) * SN_SPARSE_PANEL);
            const float *x = t->x + t->index[j + (uint32_t)c] * x_k;
            SN_UNROLL for (int r = 0; r < R; r++) acc[r][c] =
                v4_fma(v4_bcast(x + r * x_row), w, acc[r][c]);
        }
    }
    for (; j < end; j++) {
        const v4 w = v4_load(t->w + (size_t)j * SN_SPARSE_PANEL);
        const float *x = t->x + t->index[j] * x_k;
        SN_UNROLL for (int r = 0; r < R; r++) acc[r][0] =
            v4_fma(v4_bcast(x + r * x_row), w, acc[r][0]);
    }
    SN_UNROLL for (int r = 0; r < R; r++)
    {
        v4 sum = v4_add(v4_add(acc[r][0], acc[r][1]), v4_add(acc[r][2], acc[r][3]));
        sum = v4_at_most(v4_at_least(sum, v4_set1(t->lo)), v4_set1(t->hi));
        float all[SN_SPARSE_PANEL], *y = t->y + r * t->y_row + (ptrdiff_t)o0;
        if (outputs == SN_SPARSE_PANEL) {
            v4_store(y, sum);
            continue;
        }
        v4_store(all, sum);
        for (size_t o = 0; o < outputs; o++)
            y[o] = all[o];
    }
}

#define SPARSE_ROWS(R)                                                                             \
    static void sparse_rows_##R(const sn_f32_sparse_rows *t)                                       \
    {                                                                                              \
        for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)                                  \
            sparse_rows_panel(t, p, R);                                                            \
    }
SPARSE_ROWS(1)
SPARSE_ROWS(2)
SPARSE_ROWS(3)
SPARSE_ROWS(4)

/* One output of single ones, in four sums in turn. */
SN_INLINE void sparse_rows_single(const sn_f32_sparse_rows *t, size_t o, const int R)
{
    enum { CHAINS = 4, AHEAD = 256 };
    const ptrdiff_t x_k = t->x_k, x_row = t->x_row;
    const uint32_t end = t->first[o + 1];
    uint32_t j = t->first[o];
    float acc[SN_SPARSE_ROWS][CHAINS];
    SN_UNROLL for (int r = 0; r < R; r++) SN_UNROLL for (int c = 0; c < CHAINS; c++) acc[r][c] = 0;
    for (; j + CHAINS <= end; j += CHAINS) {
        SN_FETCH_L1(t->w + (size_t)j + AHEAD);
        SN_FETCH_L1(t->index + j + AHEAD);
        SN_UNROLL for (int c = 0; c < CHAINS; c++)
        {
            const float w = t->w[j + (uint32_t)c];
            const float *x = t->x + t->index[j + (uint32_t)c] * x_k;
            SN_UNROLL for (int r = 0; r < R; r++) acc[r][c] += x[r * x_row] * w;
        }
    }
    for (; j < end; j++)
        SN_UNROLL for (int r = 0; r < R; r++) acc[r][0] +=
            t->x[t->index[j] * x_k + r * x_row] * t->w[j];
    SN_UNROLL for (int r = 0; r < R; r++)
    {
        const float sum = t->start ? t->start[o] : 0.0f;
        const v4 all = v4_set1(sum + ((acc[r][0] + acc[r][1]) + (acc[r][2] + acc[r][3])));
        float clipped[SN_SPARSE_PANEL];
        v4_store(clipped, v4_at_most(v4_at_least(all, v4_set1(t->lo)), v4_set1(t->hi)));
        t->y[r * t->y_row + (ptrdiff_t)o] = clipped[0];
    }
}

SN_INLINE void sparse_rows_run(const sn_f32_sparse_rows *t)
{
    for (size_t o = 0; o < t->outputs && t->panel == 1; o++)
        switch (t->rows) {
        case 1:
            sparse_rows_single(t, o, 1);
            break;
        case 2:
            sparse_rows_single(t, o, 2);
            break;
        case 3:
            sparse_rows_single(t, o, 3);
            break;
        default:
            sparse_rows_single(t, o, SN_SPARSE_ROWS);
        }
    if (t->panel == 1)
        return;
    static sn_f32_sparse_rows_fn *const of[] = {NULL, sparse_rows_1, sparse_rows_2, sparse_rows_3,
                                                sparse_rows_4};
    of[t->rows](t);
}
