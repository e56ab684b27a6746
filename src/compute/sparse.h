/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights: matrices of k × n of which only the blocks that are not zero are kept and
 * multiplied. A block is a few neighbouring outputs (columns of [k, n]) at a few neighbouring k.
 *
 * Weights are looked at when they are packed: how many blocks are not zero decides whether they are
 * packed this way, and it is part of the argument of the format, as the packed size follows from
 * it. A weight that skips a block also skips 0 · x there; drivers make up for x that is not finite
 * (0 · inf and 0 · NaN are NaN), so results have the NaNs of the dense product. */
#ifndef SN_COMPUTE_SPARSE_H
#define SN_COMPUTE_SPARSE_H

#include "compute/packs.h"

/* How a file has the matrix: [k, n], [n, k], or the filters of a convolution, [n, …], all of whose
 * other dims are k. */
typedef enum sn_sparse_order {
    SN_SPARSE_PLAIN,
    SN_SPARSE_TURNED,
    SN_SPARSE_FILTERS
} sn_sparse_order;

/* A matrix as it lies in a file: [k, n], or [n, k] where `turned`. */
typedef struct sn_sparse_source {
    const void *data; /* need not be aligned */
    sn_dtype dtype;
    int64_t k, n;
    bool turned;
} sn_sparse_source;

/* Blocks of `outputs` × `ks` that are not all zero. Zeros of either sign count, and in unsigned
 * bytes 128, as they are flipped when they are packed. */
int64_t sn_sparse_blocks(const sn_sparse_source *s, int outputs, int ks);
/* The share of such blocks in a few places; a matrix that has few zeros there is not worth a look
 * at all of it. */
double sn_sparse_sample(const sn_sparse_source *s, int outputs, int ks);

/* The argument of sparse formats, made of the order and the number of blocks, and taken apart. */
int64_t sn_sparse_arg(sn_sparse_order order, int64_t blocks);
int64_t sn_sparse_arg_blocks(int64_t arg); /* -1: none were promised */
/* The largest k a packed matrix may have. */
enum { SN_SPARSE_MOST_K = 65536 };
/* Dense weights of more bytes than this are not expected in the second-level cache. */
enum { SN_SPARSE_FAR_BYTES = 700 << 10 };

/* The matrix that a sparse format makes of a weight: its last two dims, the others being 1, or
 * filters. False: it is none, or too large. */
bool sn_sparse_matrix(const int64_t *dims, int rank, sn_sparse_order order, int64_t *k, int64_t *n);

/* The parts of a packed matrix of this format, for kernels …_sparse… (signatures.h). */
typedef struct sn_sparse_view {
    const uint32_t *first;
    const uint16_t *index;
    const void *w;
} sn_sparse_view;
sn_sparse_view sn_sparse_view_of(const sn_pack_format *f, const void *packed, int64_t n,
                                 int64_t blocks);

#endif
