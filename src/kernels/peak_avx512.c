/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic peak on AVX-512; the code is peak.tmpl.h. */
#include "kernels/simd_avx512.h"

#include "kernels/peak.tmpl.h"
