/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights on AVX-512; the code is sparse.tmpl.h. */
#include "kernels/simd_avx512.h"

#define SN_SPARSE_MOST SN_SPARSE_MOST16
#include "kernels/sparse.tmpl.h"
