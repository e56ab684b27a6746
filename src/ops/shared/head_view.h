/* SPDX-License-Identifier: Apache-2.0 */
/* Heads read where a projection wrote them, as sonde.FusedAttention and sonde.FusedRotary do: an
 * attribute of five numbers names the axes of batch, head and position (-1: there is none), how far
 * heads are apart inside the last axis when they have no axis of their own, and the first column.
 * Numbers of a head are contiguous in the last axis; axes that are not named have size 1. */
#ifndef SN_OPS_SHARED_HEAD_VIEW_H
#define SN_OPS_SHARED_HEAD_VIEW_H

#include "ops/framework/op.h"

enum { SN_VIEW_BATCH, SN_VIEW_HEAD, SN_VIEW_LEN, SN_VIEW_STEP, SN_VIEW_FIRST, SN_VIEW_INTS };

/* The attribute, its numbers checked as far as they can be without a shape. */
sonde_status sn_view_prepare(sn_prep *p, const char *name, const int64_t **view);
/* Axes of a view are axes of its source, each taken once, and not its last one. */
bool sn_view_fits(const sn_type *t, const int64_t *view);
/* The dim of an axis of a view: 1 when there is none. */
sn_dim sn_view_dim(const sn_type *t, int64_t axis);
/* Strides over batch, head and position, 0 where there is one for all; false: `heads` of `size` do
 * not fit the source, whose dims are known. */
bool sn_view_strides(const sn_type *t, const int64_t *view, int64_t heads, int64_t size,
                     ptrdiff_t out[3]);
/* The larger of two dims of which one may be 1; false: they differ. An unknown one may be anything.
 */
bool sn_dim_broadcast(sn_dim *dim, sn_dim other);

#endif
