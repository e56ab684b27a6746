/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix and any-stride tiles on AVX-512; the code is gemm.tmpl.h. */
#include "kernels/simd_avx512.h"

#include "kernels/gemm.tmpl.h"
