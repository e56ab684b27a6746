/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to compute products of bytes; which one a plan uses follows from its kernel. */
#ifndef SN_COMPUTE_Q8_WAYS_H
#define SN_COMPUTE_Q8_WAYS_H

#include "compute/q8_result.h"

void sn_q8_by_pointers(sn_q8_call *c, sn_pool *pool);
void sn_q8_by_lines(sn_q8_call *c, sn_pool *pool);
void sn_q8_by_quads(sn_q8_call *c, sn_pool *pool); /* depthwise convolutions */

/* Sparse weights: fills in what plan_work and carve do for the others; false: it is too large. */
bool sn_q8_sparse_plan(sn_q8_plan *p, int threads);
void sn_q8_by_sparse(sn_q8_call *c, sn_pool *pool);

#endif
