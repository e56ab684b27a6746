/* SPDX-License-Identifier: Apache-2.0 */
/* Single rows of kernels.inc: rows.c measures them, row_drivers_*.c know how they are called. */
#ifndef BENCH_KERNELS_ROWS_H
#define BENCH_KERNELS_ROWS_H

#include "bench.h"
#include "kernels/kernels.h"

enum { BENCH_ROW_ARRAYS = 12 };

/* A row that is ready to be called. */
typedef struct bench_row {
    const sn_kernel_row *row;
    bool quick; /* in: the smallest arrays that mean something */
    void (*call)(struct bench_row *r);
    double flops, bytes; /* of a call, one of them; bytes are read and written */
    /* What the calls hand over, as far as their signature needs it. */
    size_t n;
    void *x, *y, *w, *z;
    int32_t *index;
    union {
        sn_f32_tile tile;
        sn_f32_depthwise depthwise;
        sn_f32_sparse sparse;
        sn_f32_sparse_rows sparse_rows;
        sn_q8_sparse byte_sparse;
        sn_tile_sparse tile_sparse;
        sn_q8_sparse_row byte_sparse_row;
        sn_f32_wino_in wino_in;
        sn_f32_wino_out wino_out;
        sn_f32_pool pool;
        sn_half_pool half_pool;
        sn_f32_exp_rows exp_rows;
        sn_f32_cell cell;
        sn_q8_tile bytes;
        sn_tile_rows rows;
        sn_quads_args quads;
        sn_q8_depthwise_args by_quads;
    } args;
    void *array[BENCH_ROW_ARRAYS]; /* memory to be freed */
    int arrays;
} bench_row;

/* Fills a bench_row whose `row` and `quick` are set. */
void bench_row_prepare(bench_row *r);
void bench_row_free(bench_row *r);

/* Measures the rows whose name contains one of the words (no words: all) and prints the table;
 * `quick` calls each once. Returns how many rows were called. */
size_t bench_rows(const bench_setup *s, const char *const *words, int word_count, bool quick);

#endif
