/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights on AVX2; the code is sparse.tmpl.h and sparse_rows.tmpl.h. */
#include "kernels/simd_avx2.h"

#define SN_SPARSE_MOST SN_SPARSE_MOST8
#include "kernels/sparse.tmpl.h"

typedef __m128 v4;
#define v4_load(p)        _mm_loadu_ps(p)
#define v4_store(p, v)    _mm_storeu_ps(p, v)
#define v4_set1(f)        _mm_set1_ps(f)
#define v4_bcast(p)       _mm_broadcast_ss(p)
#define v4_add(a, b)      _mm_add_ps(a, b)
#define v4_fma(a, b, c)   _mm_fmadd_ps(a, b, c)
#define v4_at_least(v, l) _mm_max_ps(l, v) /* a NaN in v stays */
#define v4_at_most(v, h)  _mm_min_ps(h, v)
#include "kernels/sparse_rows.tmpl.h"

void sn_f32_sparse4_rows_avx2(const sn_f32_sparse_rows *t)
{
    sparse_rows_run(t);
}
