/* SPDX-License-Identifier: Apache-2.0 */
/* The typed loops behind eltwise.c, one table per number of operands; private to compute/eltwise*.
 */
#ifndef SN_COMPUTE_ELTWISE_LOOPS_H
#define SN_COMPUTE_ELTWISE_LOOPS_H

#include "compute/eltwise.h"

/* NULL: not defined for that type. Types: native integers, bool, f32, f64. */
sn_elt_fn *sn_unary_loop(sn_unary op, sonde_dtype t);
sn_elt_fn *sn_binary_loop(sn_binary op, sonde_dtype t);

/* X(DTYPE, type, unsigned type its arithmetic wraps in) */
#define SN_INT_TYPES(X)                                                                            \
    SN_SIGNED_TYPES(X)                                                                             \
    SN_UNSIGNED_TYPES(X)
#define SN_SIGNED_TYPES(X)                                                                         \
    X(I8, int8_t, uint32_t)                                                                        \
    X(I16, int16_t, uint32_t)                                                                      \
    X(I32, int32_t, uint32_t)                                                                      \
    X(I64, int64_t, uint64_t)
#define SN_UNSIGNED_TYPES(X)                                                                       \
    X(U8, uint8_t, uint32_t)                                                                       \
    X(U16, uint16_t, uint32_t)                                                                     \
    X(U32, uint32_t, uint32_t)                                                                     \
    X(U64, uint64_t, uint64_t)

/* sn_binary_run where one operand is a short row repeated along the other; false: it is not. */
bool sn_repeat_run(const sn_elt *e, const sn_bcast *b, void *y, const void *pa, const void *pb,
                   const void *params, sn_pool *pool);

#endif
