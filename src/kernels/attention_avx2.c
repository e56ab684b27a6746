/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its products, with AVX2. */
#include "kernels/simd_avx2.h"

#include "kernels/attention.tmpl.h"
