/* SPDX-License-Identifier: Apache-2.0 */
/* Rows picked by one index are how embeddings are looked up: whole rows are copied, split over the
 * pool. The other forms go one index after the other and check each before it is used. */
#include "compute/gather.h"

#define PARALLEL_BYTES ((int64_t)256 << 10)

bool sn_index_line(sn_elems index, int64_t first, int64_t n, int64_t dim, int64_t *out,
                   sn_bad_index *bad)
{
    if (index.dtype == SONDE_DTYPE_I64)
        memcpy(out, (const int64_t *)index.data + first, (size_t)n * sizeof *out);
    else if (index.dtype == SONDE_DTYPE_I32)
        for (int64_t i = 0; i < n; i++)
            out[i] = ((const int32_t *)index.data)[first + i];
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = sn_elem_i64(index.dtype, index.data, first + i);
    int64_t outside = -1;
    for (int64_t i = n - 1; i >= 0; i--) {
        const int64_t v = out[i] + (out[i] < 0 ? dim : 0);
        if ((uint64_t)v >= (uint64_t)dim) {
            *bad = (sn_bad_index){out[i], dim};
            outside = i;
        }
        out[i] = (uint64_t)v < (uint64_t)dim ? v : 0;
    }
    return outside < 0;
}

bool sn_indices_inside(sn_elems index, int64_t n, int64_t dim, sn_bad_index *bad)
{
    int64_t line[SN_INDEX_LINE];
    for (int64_t i = 0; i < n; i += SN_INDEX_LINE)
        if (!sn_index_line(index, i, n - i < SN_INDEX_LINE ? n - i : SN_INDEX_LINE, dim, line, bad))
            return false;
    return true;
}

/* ------------------------------------------------------------------ rows */
typedef struct rows_job {
    char *dst;
    const char *src;
    const void *index;
    bool wide; /* i64 */
    int64_t n_index, dim, row_bytes, rows, per_task;
} rows_job;

/* Rows [lo, hi) of the output, counted over outer dims and indices together: those of one outer
 * position after the other, because a division for each costs more than a short row. */
#define GATHER_ROWS(T, BYTES)                                                                      \
    for (int64_t r = lo, end; r < hi; r = end) {                                                   \
        const int64_t outer = r / j->n_index;                                                      \
        const char *from = j->src + outer * j->dim * j->row_bytes;                                 \
        int64_t k = r % j->n_index;                                                                \
        end = hi - r < j->n_index - k ? hi : r + j->n_index - k;                                   \
        for (; r < end; r++, k++) {                                                                \
            int64_t i = (int64_t)((const T *)j->index)[k];                                         \
            i += i < 0 ? j->dim : 0;                                                               \
            i = (uint64_t)i < (uint64_t)j->dim ? i : 0;                                            \
            memcpy(j->dst + r * j->row_bytes, from + i * j->row_bytes, (size_t)(BYTES));           \
        }                                                                                          \
    }

static void gather_rows(const rows_job *j, int64_t lo, int64_t hi)
{
    if (j->wide && j->row_bytes == 4) {
        GATHER_ROWS(int64_t, 4)
    } else if (j->wide && j->row_bytes == 8) {
        GATHER_ROWS(int64_t, 8)
    } else if (j->wide) {
        GATHER_ROWS(int64_t, j->row_bytes)
    } else if (j->row_bytes == 4) {
        GATHER_ROWS(int32_t, 4)
    } else if (j->row_bytes == 8) {
        GATHER_ROWS(int32_t, 8)
    } else {
        GATHER_ROWS(int32_t, j->row_bytes)
    }
}

static void gather_task(void *arg, size_t task, int worker)
{
    (void)worker;
    const rows_job *j = arg;
    int64_t lo = (int64_t)task * j->per_task, hi = lo + j->per_task;
    gather_rows(j, lo, hi < j->rows ? hi : j->rows);
}

void sn_gather_rows_run(const sn_gather_rows *g, void *y, const void *x, sn_elems index,
                        sn_pool *pool)
{
    rows_job j = {.dst = y,
                  .src = x,
                  .index = index.data,
                  .wide = index.dtype == SONDE_DTYPE_I64,
                  .n_index = g->n_index,
                  .dim = g->dim,
                  .row_bytes = g->row_bytes,
                  .rows = g->outer * g->n_index};
    if (j.rows == 0 || j.row_bytes == 0)
        return;
    const int64_t threads = sn_pool_threads(pool);
    if (threads <= 1 || j.rows * j.row_bytes < PARALLEL_BYTES) {
        gather_rows(&j, 0, j.rows);
        return;
    }
    const int64_t tasks = j.rows < threads * 4 ? j.rows : threads * 4;
    j.per_task = (j.rows + tasks - 1) / tasks;
    sn_pool_run(pool, (size_t)((j.rows + j.per_task - 1) / j.per_task), gather_task, &j);
}

/* ------------------------------------------------------------------ elements */
/* n elements, at `stride` from one to the next and `step` times their indices. */
#define PICK_LINE(T)                                                                               \
    for (int64_t i = 0; i < n; i++)                                                                \
        ((T *)y)[i] = ((const T *)x)[i * stride + v[i] * step];

static void pick_line(void *y, const void *x, const int64_t *v, int64_t n, ptrdiff_t stride,
                      ptrdiff_t step, size_t bytes)
{
    if (bytes == sizeof(uint32_t)) {
        PICK_LINE(uint32_t)
    } else if (bytes == sizeof(uint64_t)) {
        PICK_LINE(uint64_t)
    } else {
        for (int64_t i = 0; i < n; i++)
            sn_elem_copy((char *)y + (size_t)i * bytes,
                         (const char *)x + (ptrdiff_t)bytes * (i * stride + v[i] * step), bytes);
    }
}

bool sn_gather_elements_run(const sn_indexed_axis *g, void *y, const void *x, sn_elems index,
                            sn_bad_index *bad)
{
    int64_t at[SN_INDEXED_RANK] = {0}, line[SN_INDEX_LINE];
    const int last = g->rank - 1;
    const int64_t width = g->rank ? g->dims[last] : 1;
    const ptrdiff_t stride = g->rank ? g->strides[last] : 0;
    ptrdiff_t offset = 0;
    for (int64_t i = 0; i < g->count; i += width) {
        for (int64_t k = 0, n; k < width; k += n) {
            n = width - k < SN_INDEX_LINE ? width - k : SN_INDEX_LINE;
            if (!sn_index_line(index, i + k, n, g->dim, line, bad))
                return false;
            pick_line((char *)y + (size_t)(i + k) * g->elem_bytes,
                      (const char *)x + (offset + k * stride) * (ptrdiff_t)g->elem_bytes, line, n,
                      stride, g->step, g->elem_bytes);
        }
        offset = sn_next_offset(at, g->dims, g->strides, last, offset);
    }
    return true;
}

/* ------------------------------------------------------------------ rows by tuples */
bool sn_gather_nd_run(const sn_indexed_rows *g, void *y, const void *x, sn_elems index,
                      sn_bad_index *bad)
{
    const size_t row_bytes = (size_t)g->row * g->elem_bytes;
    for (int64_t t = 0; t < g->tuples; t++) {
        int64_t offset = t / g->per_batch * g->batch_elems;
        for (int k = 0; k < g->depth; k++) {
            const int64_t v = sn_elem_i64(index.dtype, index.data, t * g->depth + k),
                          dim = g->dims[k];
            if (v < -dim || v >= dim) {
                *bad = (sn_bad_index){v, dim};
                return false;
            }
            offset += (v < 0 ? v + dim : v) * g->strides[k];
        }
        memcpy((char *)y + (size_t)t * row_bytes, (const char *)x + (size_t)offset * g->elem_bytes,
               row_bytes);
    }
    return true;
}
