/* SPDX-License-Identifier: Apache-2.0 */
/* The way of convolutions (conv.h) of plain tensors, one to three spatial dims, whose weights are
 * packed in rows of bf16: x becomes bf16, sums are f32. */
#ifndef SN_COMPUTE_CONV_ROWS_H
#define SN_COMPUTE_CONV_ROWS_H

#include "compute/conv.h"

/* How weights of these dims lie in rows; false: they are not packed so. */
bool sn_conv_rows_of(const int64_t *w, int rank, int64_t groups, sn_conv_rows *r);
/* The format for these weights, which are to be BF16; SN_PACK_NONE: there is none. Its argument is
 * the number of groups. */
unsigned sn_conv_rows_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                              uint32_t cpu_flags);

/* The rest of a plan; false: sizes overflow. */
bool sn_conv_rows_plan(sn_conv_plan *p, size_t l2_bytes);
void sn_conv_rows_run(const sn_conv_call *c, sn_pool *pool);

#endif
