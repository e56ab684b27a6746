/* SPDX-License-Identifier: Apache-2.0 */
/* Constant padding is a fill and one strided copy; the other modes map each output position of an
 * axis to an input position through a table. */
#include "compute/pad.h"

#include "compute/copy.h"
#include "compute/element.h"

static int64_t count_of(const int64_t *dims, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

static void pad_constant(const sn_pad *p, void *y, const void *x, const void *value, sn_pool *pool)
{
    ptrdiff_t src[SN_PAD_RANK], dst[SN_PAD_RANK], from = 0, to = 0;
    int64_t dims[SN_PAD_RANK];
    bool whole = true, nothing = false;
    sn_dense_strides(p->in, p->rank, src);
    sn_dense_strides(p->out, p->rank, dst);
    for (int i = 0; i < p->rank; i++) {
        const int64_t b = p->before[i], e = p->out[i] - p->in[i] - b;
        const int64_t cut_b = b < 0 ? -b : 0, cut_e = e < 0 ? -e : 0;
        dims[i] = p->in[i] - cut_b - cut_e;
        nothing |= dims[i] <= 0;
        whole &= dims[i] == p->out[i];
    }
    if (!whole || nothing)
        sn_copy_fill(y, value, p->elem_bytes, count_of(p->out, p->rank), pool);
    if (nothing)
        return;
    for (int i = 0; i < p->rank; i++) { /* something is left: what is cut lies inside x */
        from += (ptrdiff_t)(p->before[i] < 0 ? -p->before[i] : 0) * src[i];
        to += (ptrdiff_t)(p->before[i] > 0 ? p->before[i] : 0) * dst[i];
    }
    sn_copy c;
    const ptrdiff_t elem = (ptrdiff_t)p->elem_bytes;
    sn_copy_plan(&c, p->elem_bytes, p->rank, dims, dst, src);
    sn_copy_run(&c, (char *)y + to * elem, (const char *)x + from * elem, pool);
}

/* Which input position an output position takes, `at` counted from the input's start. */
static int64_t source_of(sn_pad_mode mode, int64_t at, int64_t dim)
{
    if (at >= 0 && at < dim)
        return at;
    if (mode == SN_PAD_EDGE || dim == 1)
        return at < 0 ? 0 : dim - 1;
    const int64_t period = mode == SN_PAD_WRAP ? dim : 2 * (dim - 1);
    at %= period;
    if (at < 0)
        at += period;
    return at < dim ? at : period - at;
}

static void pad_mapped(const sn_pad *p, void *y, const void *x, int64_t *table)
{
    const size_t elem = p->elem_bytes;
    int64_t *maps[SN_PAD_RANK], at[SN_PAD_RANK] = {0};
    ptrdiff_t strides[SN_PAD_RANK];
    const int last = p->rank - 1;
    sn_dense_strides(p->in, p->rank, strides);
    for (int i = 0; i <= last; i++) {
        maps[i] = table;
        for (int64_t k = 0; k < p->out[i]; k++)
            *table++ = source_of(p->mode, k - p->before[i], p->in[i]) * strides[i];
    }
    /* The stretch of a row that is a plain copy. */
    int64_t width = p->out[last], lo = p->before[last] > 0 ? p->before[last] : 0,
            hi = p->before[last] + p->in[last];
    hi = hi > width ? width : hi;
    if (hi < lo)
        hi = lo = 0;
    const int64_t rows = count_of(p->out, last);
    char *d = y;
    for (int64_t r = 0; r < rows; r++, d += (size_t)width * elem) {
        int64_t base = 0;
        for (int i = 0; i < last; i++)
            base += maps[i][at[i]];
        const char *s = (const char *)x + (size_t)base * elem;
        for (int64_t k = 0; k < lo; k++)
            sn_elem_copy(d + (size_t)k * elem, s + (size_t)maps[last][k] * elem, elem);
        if (hi > lo)
            memcpy(d + (size_t)lo * elem, s + (size_t)maps[last][lo] * elem,
                   (size_t)(hi - lo) * elem);
        for (int64_t k = hi; k < width; k++)
            sn_elem_copy(d + (size_t)k * elem, s + (size_t)maps[last][k] * elem, elem);
        for (int i = last - 1; i >= 0 && ++at[i] == p->out[i]; i--)
            at[i] = 0;
    }
}

void sn_pad_run(const sn_pad *p, void *y, const void *x, const void *value, int64_t *table,
                sn_pool *pool)
{
    if (p->mode == SN_PAD_CONSTANT || p->rank == 0)
        pad_constant(p, y, x, value, pool);
    else
        pad_mapped(p, y, x, table);
}
