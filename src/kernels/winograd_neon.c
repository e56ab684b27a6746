/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms on NEON; the code is winograd.tmpl.h. */
#include "kernels/simd_neon.h"

#include "kernels/winograd.tmpl.h"
