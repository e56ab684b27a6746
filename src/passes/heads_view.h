/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of attention as views: where [batch, heads, positions, size] lie in the value a projection
 * made, in the five numbers sonde.FusedAttention and sonde.FusedRotary take. Batches may be
 * windows, of which an axis of the source is made together with the positions in them: the view is
 * one of the source with that axis cut in two then. */
#ifndef SN_PASSES_HEADS_VIEW_H
#define SN_PASSES_HEADS_VIEW_H

#include "passes/view.h"

typedef struct sn_heads_view {
    sn_value *source;
    int64_t view[5];
    int64_t heads, size; /* heads: of the source, before they are repeated */
    double scale;        /* what the source is to be multiplied by */
    int64_t cut;         /* of the axis below, the dim of its inner part; 0: it is whole */
    int cut_axis;
    int steps; /* nodes between the source and the heads */
} sn_heads_view;

/* What the axes of heads are, besides [batch, heads, positions, size]. */
typedef enum sn_heads_axes {
    SN_HEADS_USUAL,
    SN_HEADS_FLAT, /* the first of three axes is taken whole; else it is batch and heads */
    SN_HEADS_FIRST /* of five axes, heads are the second and batches the third; the first is 1 */
} sn_heads_axes;

/* v as far up as it can be followed. `columns`: the numbers of a head are its last axis but one
 * (kᵀ). `cuts`: the source may have to be cut. */
bool sn_heads_view_find(sn_value *v, bool columns, sn_heads_axes axes, bool cuts, sn_heads_view *o);

/* v is x divided by the length of its rows, or by `least` where that is more; with `columns`, rows
 * have become columns since. Returns x; NULL: v is not that. */
sn_value *sn_heads_of_unit(sn_value *v, bool columns, float *least);

/* Attributes of the fused node. */
sonde_status sn_node_set_ints(sn_graph *g, sn_node *n, const char *name, const int64_t *ints,
                              size_t count, sonde_error *err);
sonde_status sn_node_set_int(sn_graph *g, sn_node *n, const char *name, int64_t i,
                             sonde_error *err);
sonde_status sn_node_set_float(sn_graph *g, sn_node *n, const char *name, double f,
                               sonde_error *err);

#endif
