/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution on NEON; the code is depthwise.tmpl.h. */
#include "kernels/simd_neon.h"

#include "kernels/depthwise.tmpl.h"
