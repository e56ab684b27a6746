/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise, row and cell kernels for NEON: the templates with that vocabulary. */
#include "kernels/simd_neon.h"

#include "kernels/eltwise.tmpl.h"
#include "kernels/recurrent.tmpl.h"
#include "kernels/rows.tmpl.h"
