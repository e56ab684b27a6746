/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: f32 on blocked tensors (two spatial dims), and plain tensors of several element types
 * with one to three spatial dims. Of a window with nothing but padding in it the maximum is the
 * lowest number of the type, as in ONNX Runtime (not -∞; in 16 bits, which are computed in f32, it
 * is), and the mean is 0. */
#ifndef SN_COMPUTE_POOLING_H
#define SN_COMPUTE_POOLING_H

#include "base/cpu.h"
#include "base/pool.h"
#include "base/workspace.h"
#include "kernels/kernels.h"
#include "sonde/types.h"

typedef enum sn_pooling_kind { SN_POOL_MAX, SN_POOL_AVERAGE, SN_POOL_LP } sn_pooling_kind;

/* Spatial arrays are depth, height, width; dims a model does not have come first and are 1 (pads
 * 0). */
typedef struct sn_pooling_desc {
    sn_pooling_kind kind;
    sonde_dtype dtype; /* blocked: F32; plain: F32, F64, and for maxima I8, U8, … */
    int64_t n, c;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    unsigned block;             /* 0 = plain */
    bool last;                  /* maxima of bytes: channels last */
    sonde_dtype x_half, y_half; /* blocked: BF16 or F16 in memory; 0: f32 */
    bool include_pad;           /* average: padding counts */
    bool column_major;          /* indices: of the transposed image */
    double p;                   /* LP: the exponent */
} sn_pooling_desc;

typedef struct sn_pooling_plan {
    sn_pooling_desc d;
    const sn_kernels *k;
    size_t items, tasks;
    bool whole;                   /* a global pool: one window, the image */
    int64_t inner_from, inner_to; /* columns whose windows cross neither border; may be none */
    int threads;
    /* Of images that are bf16 in memory: rows of y at a time, and the lines of x they read; of each
     * thread, both in f32. */
    int64_t band, band_lines;
    bool halves; /* maxima of 16-bit floats as they are, with a line for each thread */
    sn_pieces bands;
    sn_workspace workspace;
    const char *name;
} sn_pooling_plan;

bool sn_pooling_takes(sn_pooling_kind kind, sonde_dtype dtype);
void sn_pooling_plan_make(sn_pooling_plan *p, const sn_pooling_desc *d, uint32_t cpu_flags,
                          int threads);
/* indices: of maxima in the whole input tensor, plain only; NULL: not wanted. workspace: as the
 * plan says. */
void sn_pooling_run(const sn_pooling_plan *p, const void *x, void *y, int64_t *indices,
                    void *workspace, sn_pool *pool);

/* Taps of output position o along an axis inside of the padded image: the divisor of an average
 * when padding counts. */
int64_t sn_pooling_padded_taps(const sn_pooling_desc *d, int axis, int64_t o);
/* Columns of the result whose windows cross neither border: *from … *to-1; may be none. */
void sn_pooling_inner(const sn_pooling_desc *d, int64_t *from, int64_t *to);
/* One channel of a plain tensor (pooling_plain.c). */
void sn_pooling_plane(const sn_pooling_desc *d, int64_t plane, const void *x, void *y,
                      int64_t *indices);
/* The same for f32 without indices, several columns at once; false: not for this kind of pool, or a
 * window wider than a strip. */
bool sn_pooling_rows(const sn_pooling_plan *p, int64_t plane, const float *x, float *y);
/* Output row `row` of an image with channels last, of all images; maxima of bytes. */
void sn_pooling_last(const sn_pooling_plan *p, int64_t row, const void *x, void *y);
/* A channel of a plain tensor, maxima of bytes; false: not for this pool. */
bool sn_pooling_bytes(const sn_pooling_plan *p, int64_t plane, const void *x, void *y);

#endif
