/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix and any-stride tiles on AVX2 + FMA; the code is gemm.tmpl.h. */
#include "kernels/simd_avx2.h"

#include "kernels/gemm.tmpl.h"
