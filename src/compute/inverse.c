/* SPDX-License-Identifier: Apache-2.0 */
/* Inverses by Gauss-Jordan elimination; see inverse.h. */
#include "compute/inverse.h"

#include <math.h>

#include "compute/cast.h"

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b)
{
    for (int64_t c = 0; a != b && c < n; c++) {
        const double t = m[a * n + c];
        m[a * n + c] = m[b * n + c];
        m[b * n + c] = t;
    }
}

/* Gauss-Jordan with partial pivoting; `m` is destroyed. A singular matrix gives infinities or NaN.
 */
static void invert(double *m, double *inv, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            inv[i * n + j] = i == j;
    for (int64_t col = 0; col < n; col++) {
        int64_t pivot = col;
        for (int64_t r = col + 1; r < n; r++)
            if (fabs(m[r * n + col]) > fabs(m[pivot * n + col]))
                pivot = r;
        swap_rows(m, n, col, pivot);
        swap_rows(inv, n, col, pivot);
        const double d = 1.0 / m[col * n + col];
        for (int64_t c = 0; c < n; c++) {
            m[col * n + c] *= d;
            inv[col * n + c] *= d;
        }
        for (int64_t r = 0; r < n; r++) {
            const double k = m[r * n + col];
            if (r == col || k == 0)
                continue;
            for (int64_t c = 0; c < n; c++) {
                m[r * n + c] -= k * m[col * n + c];
                inv[r * n + c] -= k * inv[col * n + c];
            }
        }
    }
}

void sn_inverse_run(uint32_t cpu_flags, sonde_dtype dtype, void *y, const void *x, int64_t count,
                    int64_t n, double *matrix, double *inverse)
{
    const size_t each = (size_t)(n * n), bytes = sn_dtype_bytes(dtype) * each;
    for (size_t i = 0; i < (size_t)count; i++) {
        sn_cast_run(cpu_flags, SONDE_DTYPE_F64, matrix, dtype, (const uint8_t *)x + i * bytes, each,
                    (sn_rounding){0}, NULL);
        invert(matrix, inverse, n);
        sn_cast_run(cpu_flags, dtype, (uint8_t *)y + i * bytes, SONDE_DTYPE_F64, inverse, each,
                    (sn_rounding){0}, NULL);
    }
}
