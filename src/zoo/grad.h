/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation of a graph a builder has written: the nodes of the backward pass are
 * added behind it, in plain ONNX operators, from one rule per type of node (grad.c). */
#ifndef SN_ZOO_GRAD_H
#define SN_ZOO_GRAD_H

#include "zoo/builder.h"

/* What is trained: every f32 initializer with at least one dim. */
static inline bool sn_grad_is_parameter(const sn_value *v)
{
    return v->is_initializer && v->fact.data && v->fact.data->dtype == SONDE_DTYPE_F32 &&
           v->fact.data->rank > 0;
}

/* d loss / d v for every value v that was there before the call, indexed by its id; NULL where the
 * loss does not depend on a parameter through it. `loss` is the first output of a
 * SoftmaxCrossEntropyLoss. NULL after a failure; a node without a rule is one. */
sn_value *const *sn_grad_backward(sn_builder *b, sn_value *loss);

#endif
