/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of quantised numbers, in integers, as ONNX Runtime's QLinearSoftmax, which defines the
 * operator, computes it:
 *
 *   e(x) = round(q · exp((x - largest of the row) · x_scale)), q the largest number that keeps sums
 *          of n of them within 32 bits, but below 2^23
 *   y    = floor((e · m + floor(sum / 2)) / sum) + y_zero, m = floor(1 / y_scale), in f32,
 *          cut to a byte
 *
 * An exponential has 256 possible arguments, so the table is all there is of floats.
 *
 * That is not what DequantizeLinear ► Softmax ► QuantizeLinear means where 1 / y_scale is no
 * integer, which m loses the rest of, nor for long rows, whose exponentials have few bits.
 * `as_nodes` is what these nodes give then: y = round(softmax / y_scale) + y_zero, to nearest even,
 * of a softmax that is right to the last bit of f32 or nearly so. Elsewhere it is as above. */
#ifndef SN_COMPUTE_SOFTMAX_BYTES_H
#define SN_COMPUTE_SOFTMAX_BYTES_H

#include "compute/quantized.h"

enum { SN_SOFTMAX_BYTES_STEPS = 1 << 16 }; /* m is at most this */

typedef struct sn_softmax_bytes {
    sonde_dtype dtype;       /* of both */
    int64_t outer, n, inner; /* elements of a row are `inner` apart */
    bool as_nodes;
} sn_softmax_bytes;

/* y may be x. */
void sn_softmax_bytes_run(uint32_t cpu_flags, const sn_softmax_bytes *p, sn_qparam qx, sn_qparam qy,
                          const void *x, void *y, sn_pool *pool);

#endif
