/* SPDX-License-Identifier: Apache-2.0 */
/* Views of heads; see head_view.h. */
#include "ops/shared/head_view.h"

sonde_status sn_view_prepare(sn_prep *p, const char *name, const int64_t **view)
{
    size_t n;
    SN_TRY(sn_prep_ints(p, name, view, &n));
    if (n != SN_VIEW_INTS || (*view)[SN_VIEW_STEP] < 0 || (*view)[SN_VIEW_FIRST] < 0 ||
        (*view)[SN_VIEW_STEP] > INT32_MAX || (*view)[SN_VIEW_FIRST] > INT32_MAX)
        return sn_prep_fail(p, "attribute '%s' is not a view of heads", name);
    return SONDE_OK;
}

bool sn_view_fits(const sn_type *t, const int64_t *view)
{
    if (t->rank < 1)
        return false;
    for (int i = SN_VIEW_BATCH; i <= SN_VIEW_LEN; i++)
        if (view[i] < -1 || view[i] >= t->rank - 1)
            return false;
    return (view[SN_VIEW_BATCH] < 0 || view[SN_VIEW_BATCH] != view[SN_VIEW_HEAD]) &&
           (view[SN_VIEW_BATCH] < 0 || view[SN_VIEW_BATCH] != view[SN_VIEW_LEN]) &&
           (view[SN_VIEW_HEAD] < 0 || view[SN_VIEW_HEAD] != view[SN_VIEW_LEN]);
}

sn_dim sn_view_dim(const sn_type *t, int64_t axis)
{
    return axis < 0 ? 1 : t->dims[axis];
}

bool sn_view_strides(const sn_type *t, const int64_t *view, int64_t heads, int64_t size,
                     ptrdiff_t out[3])
{
    int64_t stride = 1, step[SN_MAX_RANK];
    for (int i = t->rank - 1; i >= 0; i--) {
        step[i] = stride;
        stride *= t->dims[i];
    }
    for (int i = 0; i < t->rank - 1; i++)
        if (i != view[SN_VIEW_BATCH] && i != view[SN_VIEW_HEAD] && i != view[SN_VIEW_LEN] &&
            t->dims[i] != 1)
            return false;
    const bool inside = view[SN_VIEW_HEAD] < 0;
    for (int i = SN_VIEW_BATCH; i <= SN_VIEW_LEN; i++)
        out[i] = view[i] < 0 || t->dims[view[i]] == 1 ? 0 : step[view[i]];
    if (inside)
        out[SN_VIEW_HEAD] = view[SN_VIEW_STEP];
    else if (t->dims[view[SN_VIEW_HEAD]] != heads)
        return false;
    const int64_t end =
        view[SN_VIEW_FIRST] + size + (inside ? (heads - 1) * view[SN_VIEW_STEP] : 0);
    return end <= t->dims[t->rank - 1];
}

bool sn_dim_broadcast(sn_dim *dim, sn_dim other)
{
    if (*dim == 1 || sn_dim_same(*dim, other)) {
        *dim = other;
        return true;
    }
    if (other == 1)
        return true;
    if (sn_dim_known(*dim) && sn_dim_known(other))
        return false;
    *dim = sn_dim_known(other) ? other : sn_dim_known(*dim) ? *dim : SN_DIM_UNKNOWN;
    return true;
}
