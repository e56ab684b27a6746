/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/form.h"

#include <stdio.h>
#include <string.h>

#include "graph/tensor.h"

bool sn_layout_count(sn_layout l, const int64_t *dims, int rank, int64_t *count)
{
    if (rank < 0 || rank > SN_MAX_RANK)
        return false;
    if (sn_layout_is_plain(l) || rank < 2)
        return sn_dims_count(dims, rank, count);
    int64_t padded[SN_MAX_RANK];
    memcpy(padded, dims, (size_t)rank * sizeof *dims);
    if (padded[1] < 0 || !sn_i64_add(padded[1], l.size - 1, &padded[1]))
        return false;
    padded[1] -= padded[1] % l.size;
    return sn_dims_count(padded, rank, count);
}

const char *sn_form_text(sn_form f, char *buf)
{
    char layout[32] = "";
    if (f.layout.kind == SN_LAYOUT_BLOCKS)
        snprintf(layout, sizeof layout, "blocks of %u", f.layout.size);
    else if (f.layout.kind == SN_LAYOUT_LAST)
        snprintf(layout, sizeof layout, "channels last");
    if (f.layout.kind == SN_LAYOUT_LAST && f.layout.size > 1)
        snprintf(layout, sizeof layout, "channels last, pitch of %u", f.layout.size);
    snprintf(buf, 48, "%s%s%s", f.dtype ? sn_dtype_name((sn_dtype)f.dtype) : "",
             f.dtype && layout[0] ? ", " : "", layout);
    return buf;
}
