/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms on AVX-512; the code is winograd.tmpl.h. */
#include "kernels/simd_avx512.h"

#include "kernels/winograd.tmpl.h"
