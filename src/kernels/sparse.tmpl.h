/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights in panels of four outputs, times rows of x in vectors: one entry is four weights,
 * each of which meets V vectors. The sums of a panel stay in registers. Included by
 * sparse_<isa>.c after the vocabulary. */
#include "kernels/kernels.h"

enum { SPARSE_AHEAD = 64 }; /* entries whose weights are fetched before they are needed */

/* One panel: o outputs of it are stored. */
SN_INLINE void sparse_panel(const sn_f32_sparse *t, size_t panel, const int V, const bool listed)
{
    const size_t o0 = panel * SN_SPARSE_PANEL;
    const int outputs =
        t->outputs - o0 < SN_SPARSE_PANEL ? (int)(t->outputs - o0) : SN_SPARSE_PANEL;
    const uint16_t *at = t->index + t->first[panel], *end = t->index + t->first[panel + 1];
    const float *w = t->w + (size_t)t->first[panel] * SN_SPARSE_PANEL;
    const ptrdiff_t x_k = t->x_k;
    const float *x[SN_SPARSE_MOST];
    sn_v acc[SN_SPARSE_PANEL][SN_SPARSE_MOST * SN_BV];
    SN_UNROLL for (int v = 0; v < V; v++) x[v] = t->x + v * t->x_v;
    SN_UNROLL for (int o = 0; o < SN_SPARSE_PANEL; o++)
    {
        const sn_v first = v_set1(t->start && o < outputs ? t->start[o0 + (size_t)o] : 0.0f);
        SN_UNROLL for (int i = 0; i < V * SN_BV; i++) acc[o][i] = first;
    }
    SN_NO_UNROLL for (; at < end; at++, w += SN_SPARSE_PANEL)
    {
        const ptrdiff_t k = listed ? t->x_at[*at] : *at * x_k;
        SN_FETCH_L1(w + SPARSE_AHEAD * SN_SPARSE_PANEL);
        sn_v xv[SN_SPARSE_MOST * SN_BV];
        SN_UNROLL for (int i = 0; i < V * SN_BV; i++) xv[i] =
            v_load(x[i / SN_BV] + k + i % SN_BV * SN_VL);
        SN_UNROLL for (int o = 0; o < SN_SPARSE_PANEL; o++)
        {
            const sn_v weight = v_bcast(w + o);
            SN_UNROLL for (int i = 0; i < V * SN_BV; i++) acc[o][i] =
                v_fma(xv[i], weight, acc[o][i]);
        }
    }
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    SN_UNROLL for (int o = 0; o < SN_SPARSE_PANEL; o++)
    {
        if (o == outputs)
            return;
        float *y = t->y + (ptrdiff_t)(o0 + (size_t)o) * t->y_o;
        SN_UNROLL for (int i = 0; i < V * SN_BV; i++) v_store(
            y + i / SN_BV * t->y_v + i % SN_BV * SN_VL, v_at_most(v_at_least(acc[o][i], lo), hi));
    }
}

#define SPARSE_PANELS(V)                                                                           \
    static void sparse_panels_##V(const sn_f32_sparse *t)                                          \
    {                                                                                              \
        for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)                                  \
            if (t->x_at)                                                                           \
                sparse_panel(t, p, V, true);                                                       \
            else                                                                                   \
                sparse_panel(t, p, V, false);                                                      \
    }
SPARSE_PANELS(1)
SPARSE_PANELS(2)
SPARSE_PANELS(3)
#if SN_SPARSE_MOST > 3
SPARSE_PANELS(4)
SPARSE_PANELS(5)
SPARSE_PANELS(6)
#endif

void SN_ISA(sn_f32_sparse4)(const sn_f32_sparse *t)
{
    static sn_f32_sparse_fn *const of[] = {
        NULL,
        sparse_panels_1,
        sparse_panels_2,
        sparse_panels_3,
#if SN_SPARSE_MOST > 3
        sparse_panels_4,
        sparse_panels_5,
        sparse_panels_6,
#endif
    };
    of[t->vectors](t);
}
