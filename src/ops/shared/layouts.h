/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of layouts that several operators have (sn_op.in_blocks). */
#ifndef SN_OPS_SHARED_LAYOUTS_H
#define SN_OPS_SHARED_LAYOUTS_H

#include "ops/framework/op.h"

/* Input 0 and output 0 in blocks or both plain, whatever their neighbours have. */
extern const sn_op_signature sn_layout_follows;

/* Elementwise, all inputs of the output's shape: inputs and output lie alike. Padding lanes of the
 * output must become zero. */
const sn_op_signature *sn_layout_elementwise(const sn_node *n, const void *params, int block);
/* Elementwise with two operands, broadcast over physical dims: they need only agree on the
 * channels. A constant is put into blocks by the pass; one element stays as it is. */
const sn_op_signature *sn_layout_operands(const sn_node *n, const void *params, int block);

/* The same two for images of bytes with channels last (sn_op.in_last); `b` is the second operand's
 * input. */
const sn_op_signature *sn_last_follows(const sn_node *n, const void *params);
const sn_op_signature *sn_last_operands(const sn_node *n, uint32_t b);

/* An image of f32, [n, channels, height, width]: what can lie in blocks. */
bool sn_value_is_image(const sn_value *v);
/* An image of bytes, [n, channels, …] with one to three spatial dims: what can have them last. */
bool sn_value_is_byte_image(const sn_value *v);

#endif
