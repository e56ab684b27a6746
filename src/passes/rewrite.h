/* SPDX-License-Identifier: Apache-2.0 */
/* What rewrites have in common: small questions about nodes and constants, and the changes that
 * need a node's parameters and facts made anew. */
#ifndef SN_PASSES_REWRITE_H
#define SN_PASSES_REWRITE_H

#include <string.h>

#include "passes/pass.h"

#define SN_PASS(symbol) extern const sn_pass symbol;
#include "passes/passes.inc"
#undef SN_PASS

/* An operator of the default domain? */
bool sn_node_is(const sn_node *n, const char *op_type);
bool sn_node_is_internal(const sn_node *n, const char *op_type); /* of domain "sonde" */

/* The one node that reads v, when it is read exactly once and is no output; else NULL. */
sn_node *sn_value_only_reader(const sn_value *v);
/* A tensor value of that element type. */
bool sn_value_is_dtype(const sn_value *v, sn_dtype dtype);
/* A tensor value of u8 or i8. */
bool sn_value_is_byte(const sn_value *v);
/* A weight that products and convolutions of f32 take: f32, or a constant in f16 or bf16 that
 * compute-types left as it is. */
bool sn_value_is_weight(const sn_value *v);
/* The number when v is a constant f32 tensor with one element. */
bool sn_value_scalar_f32(const sn_value *v, float *out);
/* Element i of a constant f32 tensor, readable as it lies or not. */
static inline float sn_read_f32(const sn_tensor *t, int64_t i)
{
    float x;
    sn_tensor_read(t, i, 1, &x);
    return x;
}
/* A new constant tensor owned by the program; data to be filled by the caller. `name` lives as long
 * as the graph; where the numbers come from tensors of the file, tell which (sn_value_show_as). */
sonde_status sn_pass_constant(sn_graph *g, sn_pass_env *env, const char *name, sn_dtype dtype,
                              const int64_t *dims, int rank, sn_value **v, void **data);

/* Constant v with all its elements in one dim: a view of the same data. */
sonde_status sn_pass_flat(sn_graph *g, sn_pass_env *env, sn_value *v, sn_value **flat);

/* Constant v, in f16 or bf16, as f32. */
sonde_status sn_pass_widen(sn_graph *g, sn_pass_env *env, const sn_value *v, sn_value **wide);

/* The other input of a two-input node of which v is one; NULL when v is both or neither. */
sn_value *sn_node_other_input(const sn_node *n, const sn_value *v);

int64_t sn_node_attr_int(const sn_node *n, const char *name, int64_t def);
float sn_node_attr_float(const sn_node *n, const char *name, float def);

/* After a node changed what it is or reads: resolves it again and infers its outputs. */
sonde_status sn_node_refresh(sn_graph *g, sn_node *n, sonde_error *err);
/* "Add" behind "" is "Add", "Relu" behind "Add" is "Add+Relu"; "" behind anything changes nothing.
 */
sonde_status sn_node_add_post_op(sn_graph *g, sn_node *n, const char *op_type, sonde_error *err);

/* Computes n here and now: from its constant inputs, and from given[i] where that is not NULL
 * (`given` may be). *usable: `out`, n->n_out zeroed slots, holds tensors, to be cleared by the
 * caller; else the operator objected, which is for a run to report. */
sonde_status sn_node_evaluate(sn_graph *g, sn_pass_env *env, const sn_node *n,
                              const sn_slot *const *given, sn_slot *out, bool *usable);

/* Captures whose outer value became constant turn into constants of the body. */
sonde_status sn_node_share_constants(sn_graph *g, sn_node *n, uint32_t *changes, sonde_error *err);
/* Captures nothing in the bodies reads any more go away; the node's inputs that carried them become
 * absent. */
sonde_status sn_node_prune_captures(sn_graph *g, sn_node *n, uint32_t *changes, sonde_error *err);

/* Input i of n, constant weights, becomes one whose elements at each place c of `axis` are times
 * scale[c]. */
sonde_status sn_pass_scale_weights(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t i, int axis,
                                   const double *scale);
/* Convolution n (constant weights) followed by a scale and a shift per output channel, done to
 * its weights and bias instead. `scale` may be NULL; `from` is the tensor the shift comes from, for
 * the name of the bias. *done = false: not possible, nothing changed. */
sonde_status sn_conv_scale_shift(sn_graph *g, sn_pass_env *env, sn_node *n, const double *scale,
                                 const double *shift, const sn_value *from, bool *done);
/* Output channels when n is a Conv, FusedConv or ConvTranspose whose weights (sn_value_is_weight)
 * are constant and have an axis of them; else 0. */
int64_t sn_conv_channels(const sn_node *n);
/* The same of the input x · scale[c] + shift[c] in place of x; `shift` may be NULL, and has to be
 * where the convolution pads. */
sonde_status sn_conv_scale_input(sn_graph *g, sn_pass_env *env, sn_node *n, const double *scale,
                                 const double *shift, const sn_value *from, bool *done);
/* Input channels of a Conv of f32 with constant weights, all in one group or each in its own; else
 * 0. */
int64_t sn_conv_input_channels(const sn_node *n);

#endif
