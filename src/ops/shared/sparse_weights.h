/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are mostly zero: found when weights are packed, packed without their zeros where
 * that is faster (compute/sparse.h). */
#ifndef SN_OPS_SHARED_SPARSE_WEIGHTS_H
#define SN_OPS_SHARED_SPARSE_WEIGHTS_H

#include "compute/conv_sparse.h"
#include "compute/q8.h"
#include "compute/sparse.h"
#include "ops/framework/op.h"

/* Answers for input i, the right side of a product in floats, [k, n] or `turned`, if it is sparse
 * and that pays; false: it has to be packed as other weights are. */
bool sn_weights_pack_sparse(sn_pack_request *r, uint32_t i, bool turned);
/* The same of the filters of a convolution without groups, of which `c` says everything but the
 * channels, the kernel and the blocks. */
bool sn_weights_pack_sparse_filters(sn_pack_request *r, uint32_t i, sn_conv_sparse_case c);
/* The same of bytes: the right side of a product, or the filters of a 1×1 convolution, for so many
 * rows (-1: not known). */
bool sn_weights_pack_sparse_bytes(sn_pack_request *r, uint32_t i, sn_sparse_order order,
                                  int64_t rows);
/* Rows of a matrix on the left; -1: not known. */
int64_t sn_weights_rows(const sn_fact *a);
/* Outputs of a block, if a weight is packed so, and how many blocks it has; 0: it is not. */
unsigned sn_weights_sparse(const sn_fact *fact, int64_t *blocks);
/* How weights of bytes come, into a descriptor. */
void sn_weights_describe(const sn_fact *fact, sn_q8_desc *d);
/* Bytes it has then. */
size_t sn_sparse_stored(const sn_fact *fact);

#endif
