/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise, row and cell kernels for AVX-512: the templates with that vocabulary. */
#include "kernels/simd_avx512.h"

#include "kernels/eltwise.tmpl.h"
#include "kernels/recurrent.tmpl.h"
#include "kernels/rows.tmpl.h"
