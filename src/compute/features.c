/* SPDX-License-Identifier: Apache-2.0 */
/* Features; see features.h. */
#include "compute/features.h"

#include <math.h>

#include "compute/element.h"

void sn_features_binarize(sonde_dtype t, void *y, const void *x, int64_t n, double threshold)
{
    for (int64_t i = 0; i < n; i++)
        sn_elem_set_f64(t, y, i, sn_elem_f64(t, x, i) > threshold);
}

void sn_features_impute(const sn_imputer *m, sonde_dtype t, void *y, const void *x, int64_t n)
{
    if (t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64) {
        const bool nan = isnan(m->replaced_float);
        for (int64_t i = 0; i < n; i++) {
            const double v = sn_elem_f64(t, x, i);
            const bool missing = nan ? isnan(v) : v == (double)m->replaced_float;
            sn_elem_set_f64(t, y, i, missing ? (double)m->floats[(size_t)i % m->n_floats] : v);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t v = sn_elem_i64(t, x, i);
        if (v == m->replaced_int)
            v = m->ints[(size_t)i % m->n_ints];
        if (t == SONDE_DTYPE_I64)
            ((int64_t *)y)[i] = v;
        else
            ((int32_t *)y)[i] = (int32_t)v;
    }
}

void sn_features_normalize(sn_features_norm norm, sonde_dtype t, float *y, const void *x,
                           int64_t outer, int64_t n, int64_t inner)
{
    for (int64_t lane = 0; lane < outer * inner; lane++) {
        const int64_t first = lane / inner * n * inner + lane % inner;
        double sum = norm == SN_FEATURES_MAX ? -INFINITY : 0.0;
        for (int64_t i = 0; i < n; i++) {
            const double v = sn_elem_f64(t, x, first + i * inner);
            if (norm == SN_FEATURES_MAX)
                sum = v > sum ? v : sum;
            else
                sum += norm == SN_FEATURES_L1 ? fabs(v) : v * v;
        }
        if (norm == SN_FEATURES_L2)
            sum = sqrt(sum);
        for (int64_t i = 0; i < n; i++) {
            const double v = sn_elem_f64(t, x, first + i * inner);
            y[first + i * inner] = (float)(sum == 0.0 ? v : v / sum);
        }
    }
}

void sn_features_scale(const sn_scaler *c, sonde_dtype t, float *y, const void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((sn_elem_f64(t, x, i) - (double)c->offset[(size_t)i % c->n_offset]) *
                       (double)c->scale[(size_t)i % c->n_scale]);
}

bool sn_features_pick(void *y, const void *x, size_t elem_bytes, int64_t rows, int64_t features,
                      const int64_t *index, int64_t n, int64_t *bad)
{
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= features) {
            *bad = index[i];
            return false;
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            sn_elem_copy((uint8_t *)y + (size_t)(r * n + i) * elem_bytes,
                         (const uint8_t *)x + (size_t)(r * features + index[i]) * elem_bytes,
                         elem_bytes);
    return true;
}

void sn_features_columns(float *y, int64_t row, int64_t first, int64_t width, sonde_dtype t,
                         const void *x, int64_t rows, int64_t have)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            y[r * row + first + c] = c < have ? (float)sn_elem_f64(t, x, r * have + c) : 0.0f;
}
