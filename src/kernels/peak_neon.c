/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic peak on NEON; the code is peak.tmpl.h. */
#include "kernels/simd_neon.h"

#include "kernels/peak.tmpl.h"
