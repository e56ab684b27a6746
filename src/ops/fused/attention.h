/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass that makes sonde.FusedAttention has to know of its attributes; attention.c
 * describes the rest. */
#ifndef SN_OPS_FUSED_ATTENTION_H
#define SN_OPS_FUSED_ATTENTION_H

/* Inputs that the pass of windows adds. */
enum { SN_FUSED_ATTENTION_Q_ROWS = 7, SN_FUSED_ATTENTION_KV_ROWS, SN_FUSED_ATTENTION_Y_ROWS };

/* Attribute `hide`: when scores that the mask hides become the attribute `filter`. */
typedef enum sn_fused_attention_hide {
    SN_FUSED_ATTENTION_FILL_BEFORE_BIAS = 1, /* and the bias is added to that */
    SN_FUSED_ATTENTION_FILL_AFTER_BIAS = 2
} sn_fused_attention_hide;

#endif
