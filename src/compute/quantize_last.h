/* SPDX-License-Identifier: Apache-2.0 */
/* Linear quantisation, one scale for all, between plain images of f32 and images of bytes with
 * channels last, in one walk over memory. */
#ifndef SN_COMPUTE_QUANTIZE_LAST_H
#define SN_COMPUTE_QUANTIZE_LAST_H

#include "compute/channels_last.h"
#include "compute/quantized.h"

/* g: elem is 1, pitch is c. */
void sn_quantize_to_last(const sn_channels_last *g, uint32_t cpu_flags, sonde_dtype t, sn_qparam q,
                         const float *x, void *y, sn_pool *pool);
void sn_dequantize_from_last(const sn_channels_last *g, uint32_t cpu_flags, sonde_dtype t,
                             sn_qparam q, const void *x, float *y, sn_pool *pool);

#endif
