/* SPDX-License-Identifier: Apache-2.0 */
/* What remains when a kernel has made its sums, where p->post is set. */
#ifndef SN_COMPUTE_GEMM_FINISH_H
#define SN_COMPUTE_GEMM_FINISH_H

#include "compute/gemm.h"

/* alpha, C and Z where the kernel could not, then the activation: rows × n elements at y. */
void sn_gemm_finish(const sn_gemm_plan *p, const float *c, const float *z, float *y, int64_t rows,
                    int64_t n);

#endif
