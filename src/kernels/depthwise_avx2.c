/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution on AVX2; the code is depthwise.tmpl.h. */
#include "kernels/simd_avx2.h"

#include "kernels/depthwise.tmpl.h"
