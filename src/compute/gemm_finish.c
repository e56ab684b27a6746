/* SPDX-License-Identifier: Apache-2.0 */
/* The second pass over products: what their kernels could not do. */
#include "compute/gemm_finish.h"

void sn_gemm_finish(const sn_gemm_plan *p, const float *c, const float *z, float *y, int64_t rows,
                    int64_t n)
{
    const sn_gemm_desc *d = &p->d;
    for (int64_t i = 0; i < rows; i++) {
        float *row = y + i * d->n;
        if (p->raw) {
            for (int64_t j = 0; j < n; j++) {
                float v = d->alpha * row[j];
                if (c)
                    v = v + d->beta * c[i * d->c_m + j * d->c_n];
                if (z)
                    v = v + z[i * d->n + j];
                row[j] = v;
            }
        }
        sn_act_apply(&d->act, p->k, row, (size_t)n);
    }
}
