/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of f64 and of integers by plain loops, described like those of f32 (gemm.h): Y =
 * alpha * A · B + beta * C + Z. Integers wrap around. No activations, and B is not packed. */
#ifndef SN_COMPUTE_GEMM_PLAIN_H
#define SN_COMPUTE_GEMM_PLAIN_H

#include "compute/gemm.h"
#include "sonde/types.h"

bool sn_gemm_plain_takes(sonde_dtype t);
/* `batches`: the product of the desc's batch dims. c, z: NULL where there are none. */
void sn_gemm_plain_run(const sn_gemm_desc *d, int64_t batches, sonde_dtype t, const void *a,
                       const void *b, const void *c, const void *z, void *y, sn_pool *pool);

#endif
