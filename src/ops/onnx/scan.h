/* SPDX-License-Identifier: Apache-2.0 */
/* Scan is one operator in two files: scan.c has it as it is since opset 9, scan_batch.c as it was
 * in opset 8. */
#ifndef SN_OPS_ONNX_SCAN_H
#define SN_OPS_ONNX_SCAN_H

#include "ops/shared/body.h"

typedef struct sn_scan_params {
    sn_body_ref body;
    uint32_t n_state, n_in, n_out; /* state values, scanned inputs, scanned outputs */
    const int64_t *in_axes, *in_directions, *out_axes, *out_directions; /* NULL: all 0 */
} sn_scan_params;
/* Opset 8, with a batch axis everywhere. */
sonde_status sn_scan_batch_prepare(sn_prep *p);
sonde_status sn_scan_batch_infer(sn_infer *c);
sonde_status sn_scan_batch_run(const sn_step *s, sn_frame *f);

#endif
