/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise, row and cell kernels for AVX2: the templates with that vocabulary. */
#include "kernels/simd_avx2.h"

#include "kernels/eltwise.tmpl.h"
#include "kernels/recurrent.tmpl.h"
#include "kernels/rows.tmpl.h"
