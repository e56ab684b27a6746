/* SPDX-License-Identifier: Apache-2.0 */
/* Features of classical models, element by element or lane by lane, of any number type. */
#ifndef SN_COMPUTE_FEATURES_H
#define SN_COMPUTE_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/types.h"

/* y = x > threshold, 0 or 1 of the same type. */
void sn_features_binarize(sonde_dtype t, void *y, const void *x, int64_t n, double threshold);

/* Elements equal to `replaced` (NaN: that are NaN) become values[i % n]; a list per kind of type.
 */
typedef struct sn_imputer {
    const float *floats;
    size_t n_floats;
    float replaced_float;
    const int64_t *ints;
    size_t n_ints;
    int64_t replaced_int;
} sn_imputer;
/* y is of the same type; f32, f64, i32 or i64. */
void sn_features_impute(const sn_imputer *m, sonde_dtype t, void *y, const void *x, int64_t n);

/* x / |x| along the middle of [outer][n][inner]; a lane whose norm is 0 stays. */
typedef enum sn_features_norm { SN_FEATURES_MAX, SN_FEATURES_L1, SN_FEATURES_L2 } sn_features_norm;
void sn_features_normalize(sn_features_norm norm, sonde_dtype t, float *y, const void *x,
                           int64_t outer, int64_t n, int64_t inner);

/* y = (x - offset) * scale, each one number or one per feature. */
typedef struct sn_scaler {
    const float *scale, *offset;
    size_t n_scale, n_offset;
} sn_scaler;
void sn_features_scale(const sn_scaler *c, sonde_dtype t, float *y, const void *x, int64_t n);

/* y [rows][n] = the elements index[i] of each row of x [rows][features]. False: *bad, one of the
 * indices, is outside, and y is as it was. */
bool sn_features_pick(void *y, const void *x, size_t elem_bytes, int64_t rows, int64_t features,
                      const int64_t *index, int64_t n, int64_t *bad);

/* Columns first … first+width-1 of y [rows][row] from x [rows][have]; 0 where x has none. */
void sn_features_columns(float *y, int64_t row, int64_t first, int64_t width, sonde_dtype t,
                         const void *x, int64_t rows, int64_t have);

#endif
