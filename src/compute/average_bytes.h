/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of quantised images with channels last, [n][pixels][c]; one to three spatial dims.
 *
 * Of a whole image the bytes are summed, exactly, and the sum times x_scale / (y_scale · pixels) is
 * rounded. In a smaller window the numbers are summed in f32, one by one, and the zero point is
 * there when the mean is rounded. Both are what ONNX Runtime does, and the bits are the same on
 * every CPU and with any number of threads. */
#ifndef SN_COMPUTE_AVERAGE_BYTES_H
#define SN_COMPUTE_AVERAGE_BYTES_H

#include "compute/pooling.h"
#include "compute/quantized.h"

typedef struct sn_average_bytes {
    sn_pooling_desc d;
    const sn_kernels *k;
    bool whole;
    int64_t pixels;               /* of an input image */
    int64_t inner_from, inner_to; /* columns whose windows cross neither border; may be none */
    int64_t parts, part;          /* of a whole image: how many there are, and the pixels of each */
    int64_t sums;                 /* of all parts: int32 that a run needs */
} sn_average_bytes;

/* d: bytes, averages; `block` and `last` are not read. */
void sn_average_bytes_plan(sn_average_bytes *p, const sn_pooling_desc *d, uint32_t cpu_flags);
void sn_average_bytes_run(const sn_average_bytes *p, sn_qparam qx, sn_qparam qy, const void *x,
                          void *y, int32_t *sums, sn_pool *pool);

#endif
