/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix and any-stride tiles on NEON; the code is gemm.tmpl.h. */
#include "kernels/simd_neon.h"

#include "kernels/gemm.tmpl.h"
