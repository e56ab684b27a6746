/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and layout kernels on AVX2 + FMA; the code is blocked.tmpl.h. */
#include "kernels/simd_avx2.h"

#include "kernels/blocked.tmpl.h"
