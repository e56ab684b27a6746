/* SPDX-License-Identifier: Apache-2.0 */
/* What the elementwise operators share: inference with broadcasting and with the values of small
 * integer tensors, and plans over plain or blocked tensors. */
#ifndef SN_OPS_SHARED_ELEMENTWISE_H
#define SN_OPS_SHARED_ELEMENTWISE_H

#include "compute/eltwise.h"
#include "ops/framework/op.h"

#define SN_FLOATS "bf16 f16 f32 f64"
#define SN_INTS   "i8 i16 i32 i64 u8 u16 u32 u64"

/* The common head of a descriptor. */
#define SN_ELT_HEAD(NAME, SINCE, UNTIL, MIN_IN, MAX_IN)                                            \
    .name = NAME, .domain = "", .since = SINCE, .until = UNTIL, .min_in = MIN_IN,                  \
    .max_in = MAX_IN, .min_out = 1, .max_out = 1

/* Output 0 has the broadcast shape of inputs [first, n_in). dtype UNDEFINED: theirs, which must
 * agree. */
sonde_status sn_infer_elementwise(sn_infer *c, uint32_t first, sn_dtype dtype);
/* Values of output 0 of a one- or two-operand function when the operands' are known; f may return
 * SN_DIM_UNKNOWN. Call after the type is inferred; does nothing for other than integers and bool.
 */
typedef sn_dim (*sn_ints_fn)(int op, sn_dim a, sn_dim b);
sonde_status sn_infer_ints_1(sn_infer *c, sn_ints_fn f, int op);
sonde_status sn_infer_ints_2(sn_infer *c, sn_ints_fn f, int op);
/* d when it fits the integer type, else unknown. */
sn_dim sn_int_in_type(sn_dim d, sn_dtype t);
/* Index into an operand of these dims for flat element k of `out` (broadcast; all concrete). */
int64_t sn_bcast_index(const sn_type *out, const sn_type *in, int64_t k);

/* Before opset 7 the second operand was lined up with an axis of the first (attributes `broadcast`
 * and `axis`) instead of with its end. */
typedef struct sn_legacy {
    bool on;
    int64_t axis; /* where input 1 begins in input 0; -1: at the end, as now */
} sn_legacy;
sonde_status sn_prep_legacy(sn_prep *p, sn_legacy *legacy);
/* *out is `b` as it would be written today: with unit dims behind it. `dims` has room for
 * SN_MAX_RANK. */
void sn_legacy_align(const sn_legacy *legacy, const sn_fact *a, const sn_fact *b, sn_fact *out,
                     sn_dim *dims);

/* The function a prepared node computes, if it is one of compute/eltwise.h's with one operand, or
 * with two that broadcast as they do since opset 7. */
bool sn_node_unary(const sn_node *n, sn_unary *op, float params[2]);
bool sn_node_binary(const sn_node *n, sn_binary *op);
const char *sn_unary_text(sn_unary op);
const char *sn_binary_text(sn_binary op);

/* A plan over the physical elements of output 0 and inputs [first, first + n), n <= 3: plain, or
 * all blocked alike. A one-element operand may be plain beside blocked ones. */
typedef struct sn_elt_plan {
    sn_bcast bcast;
    /* blocked output: its padding lanes are set to zero afterwards */
    int block;
    int64_t outer, channels, inner;
} sn_elt_plan;
sonde_status sn_elt_plan_make(sn_bind *b, uint32_t first, uint32_t n, sn_elt_plan *plan);
static inline void sn_elt_plan_finish(const sn_elt_plan *p, void *y)
{
    if (p->block)
        sn_blocked_zero_pad(y, p->outer, p->channels, p->inner, p->block);
}
/* Physical elements of a fact (padding lanes included); its type is concrete. */
size_t sn_fact_elems(const sn_fact *f);

#endif
