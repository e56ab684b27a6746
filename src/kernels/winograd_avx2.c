/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms on AVX2; the code is winograd.tmpl.h. */
#include "kernels/simd_avx2.h"

#include "kernels/winograd.tmpl.h"
