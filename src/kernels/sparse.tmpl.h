/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights in panels of four outputs or one, times rows of x in vectors: one entry is P
 * weights, each of which meets V vectors. The sums of a panel stay in registers. Included by
 * sparse_<isa>.c after the vocabulary. */
#include "kernels/kernels.h"

enum { SPARSE_AHEAD = 64 }; /* entries whose weights are fetched before they are needed */

/* One panel: o outputs of it are stored. */
SN_INLINE void sparse_panel(const sn_f32_sparse *t, size_t panel, const int P, const int V,
                            const bool listed)
{
    const size_t o0 = panel * (size_t)P;
    const int outputs = t->outputs - o0 < (size_t)P ? (int)(t->outputs - o0) : P;
    const uint16_t *at = t->index + t->first[panel], *end = t->index + t->first[panel + 1];
    const float *w = t->w + (size_t)t->first[panel] * (size_t)P;
    const ptrdiff_t x_k = t->x_k;
    const float *x[SN_SPARSE_MOST + 1];
    sn_v acc[SN_SPARSE_PANEL][(SN_SPARSE_MOST + 1) * SN_BV];
    SN_UNROLL for (int v = 0; v < V; v++) x[v] = t->x + v * t->x_v;
    SN_UNROLL for (int o = 0; o < P; o++)
    {
        const sn_v first = v_set1(t->start && o < outputs ? t->start[o0 + (size_t)o] : 0.0f);
        SN_UNROLL for (int i = 0; i < V * SN_BV; i++) acc[o][i] = first;
    }
    SN_NO_UNROLL for (; at < end; at++, w += P)
    {
        const ptrdiff_t k = listed ? t->x_at[*at] : *at * x_k;
        SN_FETCH_L1(w + SPARSE_AHEAD * P);
        sn_v xv[(SN_SPARSE_MOST + 1) * SN_BV];
        SN_UNROLL for (int i = 0; i < V * SN_BV; i++) xv[i] =
            v_load(x[i / SN_BV] + k + i % SN_BV * SN_VL);
        SN_UNROLL for (int o = 0; o < P; o++)
        {
            const sn_v weight = v_bcast(w + o);
            SN_UNROLL for (int i = 0; i < V * SN_BV; i++) acc[o][i] =
                v_fma(xv[i], weight, acc[o][i]);
        }
    }
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    SN_UNROLL for (int o = 0; o < P; o++)
    {
        if (o == outputs)
            return;
        float *y = t->y + (ptrdiff_t)(o0 + (size_t)o) * t->y_o;
        SN_UNROLL for (int i = 0; i < V * SN_BV; i++) v_store(
            y + i / SN_BV * t->y_v + i % SN_BV * SN_VL, v_at_most(v_at_least(acc[o][i], lo), hi));
    }
}

#define SPARSE_PANELS(P, V)                                                                        \
    static void sparse_panels_##P##_##V(const sn_f32_sparse *t)                                    \
    {                                                                                              \
        for (size_t p = 0; p * P < t->outputs; p++)                                                \
            if (t->x_at)                                                                           \
                sparse_panel(t, p, P, V, true);                                                    \
            else                                                                                   \
                sparse_panel(t, p, P, V, false);                                                   \
    }
SPARSE_PANELS(4, 1)
SPARSE_PANELS(4, 2)
SPARSE_PANELS(4, 3)
#if SN_SPARSE_MOST > 3
SPARSE_PANELS(4, 4)
SPARSE_PANELS(4, 5)
SPARSE_PANELS(4, 6)
#endif
SPARSE_PANELS(1, 1)
SPARSE_PANELS(1, 2)
SPARSE_PANELS(1, 4)

/* Single outputs: as many vectors at a time as there are instances for. */
static void sparse_single(const sn_f32_sparse *t)
{
    static sn_f32_sparse_fn *const of[] = {sparse_panels_1_4, sparse_panels_1_2, sparse_panels_1_1};
    sn_f32_sparse part = *t;
    for (unsigned i = 0, v = 0; v < t->vectors;) {
        const unsigned some = SN_SPARSE_SINGLE >> i;
        if (some > t->vectors - v) {
            i++;
            continue;
        }
        part.x = t->x + (ptrdiff_t)v * t->x_v;
        part.y = t->y + (ptrdiff_t)v * t->y_v;
        of[i](&part);
        v += some;
    }
}

void SN_ISA(sn_f32_sparse4)(const sn_f32_sparse *t)
{
    static sn_f32_sparse_fn *const of[] = {
        NULL,
        sparse_panels_4_1,
        sparse_panels_4_2,
        sparse_panels_4_3,
#if SN_SPARSE_MOST > 3
        sparse_panels_4_4,
        sparse_panels_4_5,
        sparse_panels_4_6,
#endif
    };
    if (t->panel == 1)
        sparse_single(t);
    else
        of[t->vectors](t);
}
