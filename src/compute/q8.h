/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of bytes, summed exactly:
 *
 *   sum[row][o] = bias[o] + sum over taps and channels of (x - x_zero) · (w - w_zero[o])
 *
 * and turned into bytes again, into f32, or left as they are. Activations have their channels last:
 * a row is a pixel (or a row of a matrix), `pitch` bytes from the next. Pixels outside of the image
 * count as the zero point, so they add nothing.
 *
 * Zero points never enter the inner loop: the sum above is that of x · w, minus x_zero · (sum of
 * w), which is known when weights are packed, minus w_zero · (sum of x), which is only computed
 * where w_zero is not 0. Kernels multiply unsigned by signed bytes, or signed ones only: those of
 * the other kind are flipped (x ^ 0x80), and their zero point moves by 128 with them.
 *
 * Sums are in int32, which holds those of 33,025 products of bytes at least. Where it may not hold
 * all of a call, which follows from the number of products, the zero points and the biases, sums
 * are brought to 64 bits (q8_wide.c). Results that are int32 themselves are modulo 2^32.
 *
 * How sums become bytes is stated in sn_q8_result: one rule, the same on every CPU. */
#ifndef SN_COMPUTE_Q8_H
#define SN_COMPUTE_Q8_H

#include <stdatomic.h>

#include "base/pool.h"
#include "base/workspace.h"
#include "compute/bytes.h"
#include "compute/conv.h"
#include "compute/gemm.h"
#include "compute/lines.h"
#include "compute/packs.h"

/* How packed weights of bytes are divided. */
typedef struct sn_q8_weights {
    unsigned block, kr;
    int64_t groups, merge;       /* groups after merging, and how many were merged to one */
    int64_t group_in, group_out; /* channels of a group as the model has it */
    int64_t in, out;             /* of a merged one */
    int64_t taps, blocks;        /* blocks of output channels of a merged group */
    int64_t quads;               /* of a row of taps, where they are four at a time */
    int64_t runs, run;           /* what is summed one behind the other: taps, or rows of taps; and
                                    the numbers of each in packed weights */
    bool merged;                 /* runs are rows of the kernel */
    int64_t block_bytes, sums_bytes, bytes;
} sn_q8_weights;
/* Of images with fewer channels, taps of a kernel's row are one run whatever the kernel. */
enum { SN_Q8_FIRST_CHANNELS = 8 };
bool sn_q8_weights_of(const sn_packing *p, sn_q8_weights *out);

/* The packed format (compute/packs.inc) of these weights, 0: none, and its argument. */
int64_t sn_q8_conv_pack_arg(int64_t groups, int64_t kernel_x, int64_t dilation_x);
unsigned sn_q8_conv_pack_id(sonde_dtype w_type, const int64_t *w, int rank, int64_t arg,
                            uint32_t cpu_flags);
/* The same for the right side of a product; argument 1 where it is stored as [n, k]. */
unsigned sn_q8_gemm_pack_id(sonde_dtype w_type, uint32_t cpu_flags);

typedef struct sn_q8_sparse_case {
    int64_t rows, n, k; /* rows: -1: not known */
    int64_t entries;    /* blocks of 4 columns × 1 k that are not zero, or … */
    bool tiles;         /* … of 16 × 4, which are multiplied in tiles */
} sn_q8_sparse_case;
/* Is a product faster without the zeros? If rows are not known it has to be for any number. */
bool sn_q8_sparse_pays(const sn_q8_sparse_case *c, uint32_t cpu_flags);

typedef struct sn_q8_desc {
    sn_conv_desc conv; /* n, c, oc, groups and the spatial arrays */
    /* Products: conv has one tap, one group, n = the batches, out[2] = in[2] = m, c = k, oc = n of
     * the matrices. Steps of a batch index in matrices of x and w are as in sn_gemm_desc. */
    bool product, turned; /* turned: w is stored as [n, k] */
    int batch_rank;
    int64_t batch[SN_GEMM_MAX_BATCH_RANK], x_batch[SN_GEMM_MAX_BATCH_RANK],
        w_batch[SN_GEMM_MAX_BATCH_RANK];
    int64_t matrices;                   /* of w; 0 is 1 */
    sonde_dtype x_type, w_type, y_type; /* y: U8, I8, I32, F32 */
    int64_t x_pitch, y_pitch;           /* elements from row to row */
    bool packed;                        /* weights come in the format of sn_q8_*_pack_id, or … */
    bool sparse;       /* … as I8_SPARSE4 or U8_SPARSE4 (sparse.h), of a product of one matrix, or
                          a convolution that is one */
    bool sparse_tiles; /* the same as I8_SPARSE16 or U8_SPARSE16 */
    int64_t entries;   /* that are not zero */
    bool wraps;        /* sums are modulo 2^32 whatever they become */
} sn_q8_desc;

/* As many products of bytes, as kernels take them, int32 always holds: 2^16 · 255 · 128 < 2^31. A
 * multiple of what all formats have side by side. Weights of more are never sparse, nor quads. */
enum { SN_Q8_PART = 1 << 16 };
/* Of more weights than that, not even the sum fits int32. */
enum { SN_Q8_SUM_PART = 1 << 24 };

/* The rows, columns and batches of a product (m, n, k, batch, a_batch, b_batch, b_count); types and
 * the rest are the caller's. */
sn_q8_desc sn_q8_product(const sn_gemm_desc *d);

/* Numbers of the result: f = x_scale · w_scale[o]; f32: sum · f + addend[o]; bytes:
 * round(sum · (f / y_scale)) + y_zero, to nearest even, cut to lo … hi. */
typedef struct sn_q8_args {
    const void *x, *w;
    void *y;
    sn_byte_zeros x_zero; /* one, or (products) one per row of all matrices of x */
    sn_byte_zeros w_zero; /* one, one per output channel, or (products) also of every matrix */
    const int32_t *bias;  /* or NULL */
    int64_t bias_column, bias_row; /* elements from one to the next; 0: the same for all */
    const float *addend;           /* per output channel, in f32, or NULL */
    const float *x_scale, *w_scale;
    int64_t x_scales, w_scales; /* as many as the zero points may be */
    float y_scale;
    int32_t y_zero;
    int32_t lo, hi;               /* bytes of the result; lo = hi = 0: all of its type */
    const sn_requantize_sum *sum; /* of bytes and others that lie as they do; NULL: none */
    void *workspace;
    const _Atomic int *cancel; /* not 0: stop; may be NULL */
} sn_q8_args;

typedef struct sn_q8_plan {
    sn_q8_desc d;
    const sn_kernels *k;
    sn_q8_tile_fn *tile;      /* or of a depthwise convolution */
    sn_tile_rows_fn *by_rows; /* not NULL: it goes by lines (lines.h), not by pointers */
    sn_q8_weights w;
    unsigned pack; /* format of the weights */
    uint32_t cpu_flags;
    bool depthwise, flat; /* flat: row r of the result reads row r of x */
    bool empty;           /* there are no channels to sum over */
    bool flips;           /* activations are flipped for the kernel */
    bool parted;          /* sums of more than SN_Q8_PART products, to be taken in parts */
    int64_t in_pixels, out_pixels;
    int64_t rows;                   /* of a tile */
    int64_t chunk, chunks;          /* blocks of a tile, and how many such chunks a group has */
    bool chunks_outer;              /* weights are read once, else rows are */
    int64_t row_parts, chunk_parts; /* tasks of an image */
    int64_t line; /* bytes of a line of the copy of x where runs are rows of the kernel */
    sn_piece copy;
    sn_q8_by_quads_fn *by_quads; /* not NULL: depthwise, by quads */
    int64_t pairs, ring;         /* by quads: of a line; lines that a result reads */
    sn_pieces quads, offsets;    /* of each thread: lines of quads, and where rows of taps read */
    /* sparse */
    sn_q8_sparse_fn *by_panels;  /* not NULL: it is, in panels of four columns, or … */
    sn_tile_sparse_fn *by_tiles; /* … in tiles */
    sn_q8_sparse_row_fn *by_row;
    bool few, shared;         /* rows go one by one; x is turned once for all tasks */
    sn_piece turned_all;      /* x, [k][rows of a tile] */
    sn_pieces turned, panels; /* of each thread: the same, and sums as the kernel makes them */
    /* by lines */
    sn_lines lines;
    int64_t steps;    /* of 64 bytes, of all runs */
    int64_t x_images; /* images or matrices that x has */
    /* pieces of the workspace */
    sn_piece packed, zeros, start, factor, at;
    int threads;
    sn_pieces copies, held;            /* of each thread: lines of x, and which */
    sn_pieces pointers, sums, factors; /* of each thread; factors: of a row */
    sn_pieces wide;                    /* parted, of each thread: sums of all parts, int64 */
    sn_piece wide_sums; /* int64, of every column's weights, where int32 does not hold them */
    sn_workspace workspace;
    uint64_t flops;
    sn_arithmetic arithmetic; /* of its products */
    char name[48];            /* "u8_conv3x3_vnni" */
} sn_q8_plan;

sonde_status sn_q8_plan_make(sn_q8_plan *p, const sn_q8_desc *d, uint32_t cpu_flags,
                             size_t l2_bytes, int threads, sonde_error *err);
/* False: it was cancelled. */
bool sn_q8_run(const sn_q8_plan *p, const sn_q8_args *a, sn_pool *pool);

#endif
