/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor's variant is the binding's; which others there are is said when somebody asks. */
#include "ops/shared/tuned_plan.h"

#include "compute/variant.h"

sonde_status sn_gemm_plan_tuned(sn_bind *b, const sn_gemm_desc *d, sn_gemm_plan *p)
{
    sn_gemm_desc own = *d;
    own.variant = b->variant;
    SN_TRY(sn_gemm_plan_make(p, &own, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    if (b->choices && b->in[0]->type.dtype == SONDE_DTYPE_F32) {
        *b->choices = (sn_choices){.n = SN_VARIANTS, .cut = sn_gemm_cut(p)};
        sn_gemm_text(d, b->choices->key, sizeof b->choices->key);
    }
    return SONDE_OK;
}

sonde_status sn_conv_plan_tuned(sn_bind *b, const sn_conv_desc *d, sn_conv_plan *p)
{
    sn_conv_desc own = *d;
    own.variant = b->variant;
    SN_TRY(sn_conv_plan_make(p, &own, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    if (b->choices && b->in[0]->type.dtype == SONDE_DTYPE_F32) {
        *b->choices = (sn_choices){.n = sn_conv_variants(p), .cut = sn_conv_cut(p)};
        sn_conv_text(d, b->choices->key, sizeof b->choices->key);
    }
    return SONDE_OK;
}
