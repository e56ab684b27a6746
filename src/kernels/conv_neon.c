/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution tiles on NEON; the code is conv.tmpl.h. */
#include "kernels/simd_neon.h"

#include "kernels/conv.tmpl.h"
