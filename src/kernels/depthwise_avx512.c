/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution on AVX-512; the code is depthwise.tmpl.h. */
#include "kernels/simd_avx512.h"

#include "kernels/depthwise.tmpl.h"
