/* SPDX-License-Identifier: Apache-2.0 */
/* Determinants of square matrices of floats, by elimination with row pivots in double. */
#ifndef SN_COMPUTE_DETERMINANT_H
#define SN_COMPUTE_DETERMINANT_H

#include <stdatomic.h>

#include "compute/element.h"

/* Of the matrix of n × n elements whose first is number `first` of x; `scratch` has room for n × n.
 * That of no elements is 1. */
double sn_determinant(sn_elems x, int64_t first, int64_t n, double *scratch);
/* Of `count` matrices, one after the other. False: `cancel` (or NULL) was set meanwhile. */
bool sn_determinants_run(sn_elems y, sn_elems x, int64_t count, int64_t n, double *scratch,
                         const _Atomic int *cancel);

#endif
