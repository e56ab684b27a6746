/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and layout kernels on AVX-512; the code is blocked.tmpl.h. */
#include "kernels/simd_avx512.h"

#include "kernels/blocked.tmpl.h"
