/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are mostly zero: found when weights are packed, packed without their zeros where
 * that is faster (compute/sparse.h). */
#ifndef SN_OPS_SHARED_SPARSE_WEIGHTS_H
#define SN_OPS_SHARED_SPARSE_WEIGHTS_H

#include "ops/framework/op.h"

/* Answers for input i, the right side of a product in floats, [k, n] or `turned`, if it is sparse
 * and that pays; false: it has to be packed as other weights are. */
bool sn_weights_pack_sparse(sn_pack_request *r, uint32_t i, bool turned);
/* Is a weight packed so, with how many blocks? */
bool sn_weights_sparse(const sn_fact *fact, int64_t *blocks);
/* Bytes it has then. */
size_t sn_sparse_stored(const sn_fact *fact);

#endif
