/* SPDX-License-Identifier: Apache-2.0 */
/* Strided N-d copy, the engine behind transpose, slice, concat, expand, pad and tile. Elements are
 * opaque bytes (1, 2, 4, 8 or 16). A plan drops unit dims, joins dims that lie contiguously on both
 * sides and picks one of few inner loops; running it neither allocates nor fails. */
#ifndef SN_COMPUTE_COPY_H
#define SN_COMPUTE_COPY_H

#include "base/pool.h"

#define SN_COPY_MAX_RANK 32 /* tiling doubles the rank of a tensor */

typedef enum sn_copy_kind {
    SN_COPY_EMPTY,    /* some dim is zero */
    SN_COPY_RUN,      /* contiguous runs of `n` bytes */
    SN_COPY_STRIDED,  /* n elements, any strides */
    SN_COPY_FILL,     /* one source element repeated n times */
    SN_COPY_TRANSPOSE /* n contiguous on the destination side, m on the source side */
} sn_copy_kind;

typedef struct sn_copy {
    sn_copy_kind kind;
    uint32_t elem_bytes; /* of the inner loop: may be wider than the elements asked for */
    int rank;            /* outer dims, at least 1 unless EMPTY */
    int64_t outer;       /* product of dims */
    int64_t dims[SN_COPY_MAX_RANK];
    ptrdiff_t dst[SN_COPY_MAX_RANK], src[SN_COPY_MAX_RANK]; /* strides in bytes */
    int64_t n, m;
    ptrdiff_t n_dst, n_src, m_dst, m_src; /* bytes */
    size_t bytes;                         /* written in all */
} sn_copy;

/* Dims in destination order (outermost first); strides in elements, a source stride may be zero or
 * negative. The caller has checked that the element count does not overflow. Source and destination
 * do not overlap. */
void sn_copy_plan(sn_copy *c, size_t elem_bytes, int rank, const int64_t *dims,
                  const ptrdiff_t *dst_strides, const ptrdiff_t *src_strides);
/* `pool` may be NULL; large copies are split over its threads. */
void sn_copy_run(const sn_copy *c, void *dst, const void *src, sn_pool *pool);
/* "copy_transpose_4b": what people see as the kernel. */
const char *sn_copy_name(const sn_copy *c);

/* The strides of a dense tensor, in elements. */
void sn_dense_strides(const int64_t *dims, int rank, ptrdiff_t *strides);
/* n elements of elem_bytes, all equal to *value. */
void sn_copy_fill(void *dst, const void *value, size_t elem_bytes, int64_t n, sn_pool *pool);
/* A plain memcpy split over the pool when it is large. */
void sn_copy_bytes(void *dst, const void *src, size_t bytes, sn_pool *pool);

#endif
