/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass that makes sonde.FusedAttention has to know of its attributes; attention.c
 * describes the rest. */
#ifndef SN_OPS_FUSED_ATTENTION_H
#define SN_OPS_FUSED_ATTENTION_H

/* Attribute `hide`: when scores that the mask hides become the attribute `filter`. */
typedef enum sn_fused_attention_hide {
    SN_FUSED_ATTENTION_FILL_BEFORE_BIAS = 1, /* and the bias is added to that */
    SN_FUSED_ATTENTION_FILL_AFTER_BIAS = 2
} sn_fused_attention_hide;

#endif
