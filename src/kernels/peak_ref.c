/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic peak of plain C: what the other references could reach at best. Sixteen sums, or
 * the time would be that of one addition after another. */
#include "kernels/kernels.h"

enum { CHAINS = 16 };

float sn_f32_peak_ref(const float *x, size_t n, size_t rounds)
{
    float a[CHAINS] = {0}, b[CHAINS] = {0}, sum = 0;
    for (size_t r = 0; r < rounds; r++) {
        size_t i = 0;
        for (; i + CHAINS <= n; i += CHAINS)
            for (size_t k = 0; k < CHAINS; k++) {
                a[k] += x[i + k] * 0.5f;
                b[k] += x[i + k] * 0.25f;
            }
        for (; i < n; i++) {
            a[0] += x[i] * 0.5f;
            b[0] += x[i] * 0.25f;
        }
    }
    for (size_t k = 0; k < CHAINS; k++)
        sum += a[k] + b[k];
    return sum;
}
