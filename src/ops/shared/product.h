/* SPDX-License-Identifier: Apache-2.0 */
/* What Gemm, MatMul and sonde.FusedGemm share once their shapes are resolved into one batched
 * matrix product: choosing the driver, packing, and running every element type. */
#ifndef SN_OPS_SHARED_PRODUCT_H
#define SN_OPS_SHARED_PRODUCT_H

#include "compute/gemm.h"
#include "ops/framework/op.h"

/* Inputs are A, B, C (addend) and Z (residual); C and Z may be absent. */
enum { SN_PRODUCT_A, SN_PRODUCT_B, SN_PRODUCT_C, SN_PRODUCT_Z };

/* A vector as a matrix: [k] on the left is [1, k], on the right [k, 1]. Returns the rank of `out`.
 */
int sn_product_matrix(const sn_type *t, bool left, sn_dim out[SN_MAX_RANK]);
/* Dims of the product of A and B, whose ranks are known and not 0. */
sonde_status sn_product_infer(sn_infer *c, bool trans_a, bool trans_b, sn_dim out[SN_MAX_RANK],
                              int *rank);
/* Does addend C broadcast to the product of these dims, as far as that is known? */
sonde_status sn_product_check_addend(sn_infer *c, const sn_dim *out, int rank);

/* Fills batch dims of `d` from dims of A and B without their last two; false: they do not
 * broadcast (inference has refused that already). Sets m, n, k, b_count from the matrices. */
bool sn_product_shape(sn_gemm_desc *d, const int64_t *a, int a_rank, const int64_t *b, int b_rank);
/* Where addend C of these dims lies relative to the output [m, n]; false: no such broadcast. */
bool sn_product_addend(sn_gemm_desc *d, const sn_type *c);

/* The packed format of input i, the right side of a product of f32. */
unsigned sn_product_pack_id(const sn_pack_request *r, uint32_t i);
sonde_status sn_product_pack(sn_pack_request *r, bool trans_b);
/* The rest of bind: d.packed and the element type come from the facts. */
sonde_status sn_product_bind(sn_bind *b, sn_gemm_desc *d);
/* After bind: A, B or both, of rank 3 or more and not packed, lie with their first dim behind their
 * batch dims for the driver, and are turned into the workspace in every run. */
sonde_status sn_product_turn(sn_bind *b, const bool turned[2]);
/* The same for f32 when the product, of these dims, and Z broadcast to the output: the product goes
 * through the workspace. */
sonde_status sn_product_bind_spread(sn_bind *b, sn_gemm_desc *d, const int64_t *dims, int rank);
/* Default for descriptors; bind replaces it. */
sonde_status sn_product_run(const sn_step *s, sn_frame *f);

#endif
