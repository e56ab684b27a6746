/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian elimination. */
#include "compute/determinant.h"

#include <math.h>

double sn_determinant(sn_elems x, int64_t first, int64_t n, double *a)
{
    double det = 1.0;
    for (int64_t k = 0; k < n * n; k++)
        a[k] = sn_elem_f64(x.dtype, x.data, first + k);
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (a[pivot * n + k] == 0)
            return 0.0;
        if (pivot != k) {
            det = -det;
            for (int64_t j = k; j < n; j++) {
                const double t = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = t;
            }
        }
        det *= a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

bool sn_determinants_run(sn_elems y, sn_elems x, int64_t count, int64_t n, double *scratch,
                         const _Atomic int *cancel)
{
    for (int64_t i = 0; i < count; i++) {
        sn_elem_set_f64(y.dtype, y.data, i, sn_determinant(x, i * n * n, n, scratch));
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return false;
    }
    return true;
}
