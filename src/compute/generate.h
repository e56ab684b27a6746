/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made from a few numbers: arithmetic progressions and diagonals of ones. */
#ifndef SN_COMPUTE_GENERATE_H
#define SN_COMPUTE_GENERATE_H

#include <stdint.h>

#include "sonde/types.h"

/* y[i] = start + i * delta, n numbers; *start and *delta are elements of type t. i16, i32, i64, f32
 * and f64 in their own type, where integers wrap; others through double. */
void sn_range_run(sonde_dtype t, void *y, int64_t n, const void *start, const void *delta);

/* A matrix of zeros with ones on a diagonal: 0 the main one, positive ones above it. */
void sn_eye_run(sonde_dtype t, void *y, int64_t rows, int64_t columns, int64_t diagonal);

#endif
