/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes to f32 with AVX-512. */
#include "kernels/simd_avx512.h"

#include "kernels/scale.tmpl.h"
