/* SPDX-License-Identifier: Apache-2.0 */
/* Each is a copy or a fill, and then what differs. */
#include "compute/by_position.h"

#include "compute/copy.h"
#include "compute/split.h"

void sn_triangle_run(const sn_triangle *t, void *y, const void *x, sn_pool *pool)
{
    const int64_t rows = t->matrices * t->rows, cols = t->columns;
    const int64_t k = sn_max(sn_min(t->diagonal, cols), -t->rows);
    if (y != x)
        sn_copy_bytes(y, x, (size_t)(rows * cols) * t->elem_bytes, pool);
    for (int64_t r = 0; r < rows; r++) {
        /* first kept column, or first dropped one */
        const int64_t edge = sn_max(sn_min(r % t->rows + k + (t->upper ? 0 : 1), cols), 0);
        char *row = (char *)y + (size_t)(r * cols) * t->elem_bytes;
        if (t->upper)
            memset(row, 0, (size_t)edge * t->elem_bytes);
        else
            memset(row + (size_t)edge * t->elem_bytes, 0, (size_t)(cols - edge) * t->elem_bytes);
    }
}

bool sn_reverse_run(const sn_reverse *r, void *y, const void *x, sn_elems lengths, int64_t *bad)
{
    for (int64_t b = 0; b < r->batches; b++) {
        const int64_t n = sn_elem_i64(lengths.dtype, lengths.data, b);
        if (n < 0 || n > r->times) {
            *bad = n;
            return false;
        }
        for (int64_t t = 0; t < r->times; t++) {
            const int64_t from = t < n ? n - 1 - t : t;
            const size_t to_row = (size_t)(r->time_first ? t * r->batches + b : b * r->times + t);
            const size_t from_row =
                (size_t)(r->time_first ? from * r->batches + b : b * r->times + from);
            memcpy((char *)y + to_row * r->row_bytes, (const char *)x + from_row * r->row_bytes,
                   r->row_bytes);
        }
    }
    return true;
}

void sn_one_hot_run(const sn_one_hot *h, void *y, sn_elems index, const void *off, const void *on,
                    sn_pool *pool)
{
    sn_copy_fill(y, off, h->elem_bytes, h->count * h->depth, pool);
    for (int64_t i = 0; i < h->count; i++) {
        int64_t v = sn_elem_i64(index.dtype, index.data, i);
        if (v < -h->depth || v >= h->depth)
            continue;
        v += v < 0 ? h->depth : 0;
        sn_elem_copy((char *)y + (size_t)((i / h->inner * h->depth + v) * h->inner + i % h->inner) *
                                     h->elem_bytes,
                     on, h->elem_bytes);
    }
}
