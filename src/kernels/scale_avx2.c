/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes to f32 with AVX2. */
#include "kernels/simd_avx2.h"

#include "kernels/scale.tmpl.h"
