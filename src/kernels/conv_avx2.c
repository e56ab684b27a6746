/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution tiles on AVX2 + FMA; the code is conv.tmpl.h. */
#include "kernels/simd_avx2.h"

#include "kernels/conv.tmpl.h"
