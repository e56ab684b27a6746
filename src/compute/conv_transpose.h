/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution: a matrix product gives, per output channel, one column of values per
 * kernel tap, and folding adds them where they belong. f32 and f64, any number of spatial dims. */
#ifndef SN_COMPUTE_CONV_TRANSPOSE_H
#define SN_COMPUTE_CONV_TRANSPOSE_H

#include <stdatomic.h>

#include "compute/conv.h"
#include "compute/fold.h"
#include "compute/gemm.h"
#include "compute/packs.h"

typedef struct sn_conv_transpose_desc {
    sn_fold fold; /* dtype F32 or F64; its grid is the input, its image the output */
    int64_t n, groups, in_channels, out_channels; /* channels of one group */
    bool tiles;  /* weights come in the format sn_conv_transpose_pack_id names; x becomes bf16 */
    bool packed; /* f32: weights come in that of sn_gemm_pack_id, its argument minus the groups */
    sn_act act;  /* f32 */
} sn_conv_transpose_desc;

typedef struct sn_conv_transpose_plan {
    sn_conv_transpose_desc d;
    int64_t in_pixels, out_pixels, taps;
    bool small;              /* f32: one product for all channels of a group */
    int64_t rows;            /* packed: pixels of the input whose columns are made at a time */
    int64_t chunk, chunks;   /* output channels a task works on */
    sn_gemm_plan plan, last; /* of a full chunk, of the last one */
    uint32_t cpu_flags;
    /* Workspace a run needs; -1: more than can be counted. Columns are per worker. */
    int64_t weight_floats, panel_bytes, columns_bytes, workers;
    int64_t product_bytes; /* per worker: what the products need */
    uint64_t flops;
    const char *name;
} sn_conv_transpose_plan;

/* All in the desc's type, but for weights that are packed. */
typedef struct sn_conv_transpose_args {
    const void *x;    /* [n][groups][in_channels][grid] */
    const void *w;    /* [groups][in_channels][out_channels][taps] */
    const void *bias; /* [groups][out_channels], or NULL */
    const void *z;    /* f32: added, as y is; NULL: nothing. May be y */
    void *y;          /* [n][groups][out_channels][image] */
    /* workspace, as the plan says; f64 needs columns only */
    float *weights;
    void *panels, *columns, *products;
    const _Atomic int *cancel; /* not 0: stop; may be NULL */
} sn_conv_transpose_args;

/* The format for weights of BF16 of these dims, [in, out per group, …]; SN_PACK_NONE: they are
 * faster in f32, or do not fit. Its argument is the number of groups. */
unsigned sn_conv_transpose_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                                   uint32_t cpu_flags);
/* How they lie in rows; false: they do not. */
bool sn_conv_transpose_rows_of(const int64_t *w, int rank, int64_t groups, sn_conv_rows *r);

/* Check the sizes in the plan before it runs. */
sonde_status sn_conv_transpose_plan_make(sn_conv_transpose_plan *p, const sn_conv_transpose_desc *d,
                                         uint32_t cpu_flags, size_t l2_bytes, int threads,
                                         sonde_error *err);
/* False: it was cancelled. */
bool sn_conv_transpose_run(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a,
                           sn_pool *pool);

#endif
