/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and layout kernels on NEON; the code is blocked.tmpl.h. */
#include "kernels/simd_neon.h"

#include "kernels/blocked.tmpl.h"
