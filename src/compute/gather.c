/* SPDX-License-Identifier: Apache-2.0 */
/* Rows picked by one index are how embeddings are looked up: whole rows are copied, split over the
 * pool. The other forms go one index after the other and check each before it is used. */
#include "compute/gather.h"

#define PARALLEL_BYTES ((int64_t)256 << 10)

bool sn_indices_inside(sn_elems index, int64_t n, int64_t dim, sn_bad_index *bad)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = sn_elem_i64(index.dtype, index.data, i);
        if (v < -dim || v >= dim) {
            *bad = (sn_bad_index){v, dim};
            return false;
        }
    }
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

/* Rows [lo, hi) of the output, counted over outer dims and indices together. */
#define GATHER_ROWS(T, BYTES)                                                                      \
    for (int64_t r = lo; r < hi; r++) {                                                            \
        int64_t i = (int64_t)((const T *)j->index)[r % j->n_index];                                \
        i += i < 0 ? j->dim : 0;                                                                   \
        i = (uint64_t)i < (uint64_t)j->dim ? i : 0;                                                \
        memcpy(j->dst + r * j->row_bytes, j->src + (r / j->n_index * j->dim + i) * j->row_bytes,   \
               (size_t)(BYTES));                                                                   \
    }

static void gather_rows(const rows_job *j, int64_t lo, int64_t hi)
{
    if (j->wide && j->row_bytes == 4) {
        GATHER_ROWS(int64_t, 4)
    } else if (j->wide && j->row_bytes == 8) {
        GATHER_ROWS(int64_t, 8)
    } else if (j->wide) {
        GATHER_ROWS(int64_t, j->row_bytes)
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
bool sn_gather_elements_run(const sn_indexed_axis *g, void *y, const void *x, sn_elems index,
                            sn_bad_index *bad)
{
    int64_t at[SN_INDEXED_RANK] = {0};
    ptrdiff_t offset = 0;
    for (int64_t i = 0; i < g->count; i++) {
        int64_t v = sn_elem_i64(index.dtype, index.data, i);
        if (v < -g->dim || v >= g->dim) {
            *bad = (sn_bad_index){v, g->dim};
            return false;
        }
        v += v < 0 ? g->dim : 0;
        sn_elem_copy((char *)y + (size_t)i * g->elem_bytes,
                     (const char *)x + (size_t)(offset + (ptrdiff_t)v * g->step) * g->elem_bytes,
                     g->elem_bytes);
        offset = sn_next_offset(at, g->dims, g->strides, g->rank, offset);
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
