/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its products, with AVX-512. */
#include "kernels/simd_avx512.h"

#include "kernels/attention.tmpl.h"
