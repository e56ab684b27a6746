/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its products, with NEON. */
#include "kernels/simd_neon.h"

#include "kernels/attention.tmpl.h"
