/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic peak on AVX2 + FMA; the code is peak.tmpl.h. */
#include "kernels/simd_avx2.h"

#include "kernels/peak.tmpl.h"
