/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operators that move elements instead of computing with them: reading shapes and
 * small integer lists in `infer` and `run`, strides and string ownership. */
#ifndef SN_OPS_SHARED_DATA_MOVEMENT_H
#define SN_OPS_SHARED_DATA_MOVEMENT_H

#include "compute/copy.h"
#include "compute/element.h"
#include "ops/framework/op.h"

/* The fixed part of a descriptor of the standard domain. */
#define SN_MOVE_HEAD(NAME, SINCE, UNTIL, MIN_IN, MAX_IN, MIN_OUT, MAX_OUT)                         \
    .name = (NAME), .domain = "", .since = (SINCE), .until = (UNTIL), .min_in = (MIN_IN),          \
    .max_in = (MAX_IN), .min_out = (MIN_OUT), .max_out = (MAX_OUT)
#define SN_MOVE_ALL_TYPES "all"

/* ---- infer ---- */
/* A tensor input as far as it is known: rank -1 when unknown. Another kind of value is an error. */
typedef struct sn_move_type {
    sn_dtype dtype;
    int rank;
    const sn_dim *dims;
} sn_move_type;
sonde_status sn_move_in(sn_infer *c, uint32_t i, sn_move_type *t);
/* sn_infer_tensor, refusing shapes whose bytes overflow. */
sonde_status sn_move_out(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims, int rank);
/* A tensor whose rank is known and dims are not. */
sonde_status sn_move_out_rank(sn_infer *c, uint32_t o, sn_dtype dtype, int rank);
/* A list of numbers: from attribute (n > 0 or `given`), else from input i. *v NULL: not known; then
 * *n is the length if that is known, else -1. An absent input gives *v NULL and *n 0. */
sonde_status sn_move_list(sn_infer *c, uint32_t i, const sn_dim **v, int64_t *n);
bool sn_move_known(const sn_dim *v, int64_t n); /* every entry is a number */
/* Products and merges that keep a symbol where the other side does not change it. */
sn_dim sn_move_mul(sn_dim a, sn_dim b);
sn_dim sn_move_merge(sn_dim a, sn_dim b); /* two statements about one dim: the better one */
/* Hands the integers of input i on to output o when both hold the same elements. */
sonde_status sn_move_pass_ints(sn_infer *c, uint32_t o, uint32_t i);
/* Axes list ► flags per axis; negative axes count from the end, duplicates are an error. */
sonde_status sn_move_axes(sn_infer *c, const int64_t *axes, int64_t n, int rank, bool *is_axis);

/* ---- run ---- */
/* A tensor's elements as drivers take them; NULL accepted. */
static inline sn_elems sn_tensor_elems(const sn_tensor *t)
{
    return t ? (sn_elems){t->dtype, t->data} : (sn_elems){SONDE_DTYPE_UNDEFINED, NULL};
}
int64_t sn_move_int(const sn_tensor *t, int64_t i); /* element of an integer tensor */
/* At most max elements of an integer tensor; returns how many. */
int64_t sn_move_ints(const sn_tensor *t, int64_t *out, int64_t max);
static inline void sn_move_strides(const int64_t *dims, int rank, ptrdiff_t *strides)
{
    sn_dense_strides(dims, rank, strides);
}
bool sn_move_axis(int64_t axis, int rank, int *out); /* false: out of range */
bool sn_move_same_dims(const int64_t *a, int rank_a, const int64_t *b, int rank_b);
/* After elements were copied shallowly: a string output gets its own bytes. */
sonde_status sn_move_own(const sn_step *s, sn_frame *f, uint32_t o);
/* Copies src into output o (same count), which may already be the same memory. */
sonde_status sn_move_whole(const sn_step *s, sn_frame *f, uint32_t o, const sn_tensor *src);

#endif
