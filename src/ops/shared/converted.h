/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose drivers know fewer element types than the operator does. The driver computes in
 * one type; a tensor of another is converted into a piece of workspace before, or back after:
 *
 *     bind:   k->x = sn_converted_carve(&b->workspace, b->in[0], compute);   (the same for out)
 *     run:    const void *x = sn_converted_in(s, f, 0, compute, k->x);
 *             void *y = sn_converted_out(s, f, 0, compute, k->y);
 *             …
 *             sn_converted_done(s, f, 0, compute, k->y);
 *
 * A tensor that has the type already is used where it lies. An input and an output of equal size
 * may share one piece when the driver works in place. */
#ifndef SN_OPS_SHARED_CONVERTED_H
#define SN_OPS_SHARED_CONVERTED_H

#include "compute/cast.h"
#include "ops/framework/op.h"

/* What drivers of f32 and f64 compute in: f32 for 16-bit floats, otherwise the type itself. */
static inline sn_dtype sn_compute_dtype(sn_dtype t)
{
    return sn_is_half(t) ? SONDE_DTYPE_F32 : t;
}

/* The same for operators of floats only: UNDEFINED for anything else. */
static inline sn_dtype sn_compute_float(sn_dtype t)
{
    const sn_dtype compute = sn_compute_dtype(t);
    return compute == SONDE_DTYPE_F32 || compute == SONDE_DTYPE_F64 ? compute
                                                                    : SONDE_DTYPE_UNDEFINED;
}

/* The type of a weight's elements as a step gets them, packed or not. */
sn_dtype sn_packed_dtype(const sn_fact *fact);
/* Is weight i to be packed in tiles? If bf16 is asked for, or it is f16, which bf16 can split; that
 * takes many rows to pay, pixels or rows of a matrix. -1: nobody knows how many there will be. */
bool sn_pack_by_tiles(const sn_pack_request *r, uint32_t i, int64_t rows);
/* The product of all dims of input x but `but`; those that are not known count as 1. -1: none is.
 */
int64_t sn_pack_rows(const sn_pack_request *r, uint32_t x, int but);
/* The same if dims `first` and those behind it, but for `but`, are known; else -1. */
int64_t sn_pack_known_rows(const sn_pack_request *r, uint32_t x, int but, int first);
/* May weight i and input 0, both f32, be multiplied by tiles of f16, in two halves
 * (compute/tiles.h)? Whether that pays is the driver's to say. */
bool sn_pack_may_halve(const sn_pack_request *r, uint32_t i);
/* May a step that would gain from it multiply f32 that way while it runs? Asks the system for AMX.
 */
bool sn_bind_may_halve(const sn_bind *b);
/* Are products of f32 to be computed in bf16 by tiles, where that is faster? */
bool sn_bind_in_bf16(const sn_bind *b);
/* Is a packed weight in tiles, whose kernels compute in its type? */
bool sn_packed_tiles(const sn_fact *fact);

/* Room for the elements of a concrete fact in type `compute`. Nothing is carved when it is of that
 * type, packed or absent. */
sn_piece sn_converted_carve(sn_workspace *w, const sn_fact *fact, sn_dtype compute);

/* Input i in type `compute`; NULL when absent. */
const void *sn_converted_in(const sn_step *s, const sn_frame *f, uint32_t i, sn_dtype compute,
                            sn_piece piece);
/* Where results of output o go in type `compute`, NULL when it is not wanted; sn_converted_done
 * brings them there. */
void *sn_converted_out(const sn_step *s, const sn_frame *f, uint32_t o, sn_dtype compute,
                       sn_piece piece);
void sn_converted_done(const sn_step *s, const sn_frame *f, uint32_t o, sn_dtype compute,
                       sn_piece piece);

#endif
