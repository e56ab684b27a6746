/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights on NEON; the code is sparse.tmpl.h and sparse_rows.tmpl.h. */
#include "kernels/simd_neon.h"

#define SN_SPARSE_MOST SN_SPARSE_MOST8
#include "kernels/sparse.tmpl.h"

typedef sn_v v4;
#define v4_load(p)        v_load(p)
#define v4_store(p, v)    v_store(p, v)
#define v4_set1(f)        v_set1(f)
#define v4_bcast(p)       v_bcast(p)
#define v4_add(a, b)      v_add(a, b)
#define v4_fma(a, b, c)   v_fma(a, b, c)
#define v4_at_least(v, l) v_at_least(v, l)
#define v4_at_most(v, h)  v_at_most(v, h)
#include "kernels/sparse_rows.tmpl.h"

void sn_f32_sparse4_rows_neon(const sn_f32_sparse_rows *t)
{
    sparse_rows_run(t);
}
