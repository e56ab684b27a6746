/* SPDX-License-Identifier: Apache-2.0 */
/* Inverses of square matrices, computed in double. */
#ifndef SN_COMPUTE_INVERSE_H
#define SN_COMPUTE_INVERSE_H

#include "base/pool.h"
#include "sonde/types.h"

/* `count` matrices of n × n; x and y are of the same float type. `matrix`, `inverse`: scratch of
 * n · n doubles each. A singular matrix gives infinities or NaN. */
void sn_inverse_run(uint32_t cpu_flags, sonde_dtype dtype, void *y, const void *x, int64_t count,
                    int64_t n, double *matrix, double *inverse);

#endif
