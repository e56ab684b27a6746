/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution tiles on AVX-512; the code is conv.tmpl.h. */
#include "kernels/simd_avx512.h"

#include "kernels/conv.tmpl.h"
