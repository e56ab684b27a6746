/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes to f32 with NEON. */
#include "kernels/simd_neon.h"

#include "kernels/scale.tmpl.h"
