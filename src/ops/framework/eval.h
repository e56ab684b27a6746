/* SPDX-License-Identifier: Apache-2.0 */
/* One operator, here and now: infer, allocate, bind and run from real slots. Serves constant
 * folding, steps whose shapes depend on data, the operator profiler and the reference in tests. */
#ifndef SN_OPS_FRAMEWORK_EVAL_H
#define SN_OPS_FRAMEWORK_EVAL_H

#include "ops/framework/op.h"

/* `step` names op, params, node, slot numbers; step->run and step->bound are ignored. Input slots
 * in `f` are set; output slots receive owned results (cleared first). `scratch` is reset by the
 * callee. */
sonde_status sn_eval_step(const sn_step *step, sn_frame *f, sn_arena *scratch);

/* Stand-alone: evaluates a prepared node. in[i] may be NULL (absent). out has node->n_out slots. */
sonde_status sn_eval_node(const sn_context *ctx, const sn_node *node, const sn_slot *const *in,
                          sn_slot *out, sonde_error *err);

#endif
