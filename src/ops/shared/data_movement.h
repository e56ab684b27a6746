/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operators that move elements instead of computing with them: reading shapes and
 * small integer lists in `infer` and `run`, strides and string ownership. */
#ifndef SN_OPS_SHARED_DATA_MOVEMENT_H
#define SN_OPS_SHARED_DATA_MOVEMENT_H

#include "compute/copy.h"
#include "compute/element.h"
#include "ops/framework/op.h"
#include "ops/shared/checks.h"

/* The fixed part of a descriptor of the standard domain. */
#define SN_OP_HEAD(NAME, SINCE, UNTIL, MIN_IN, MAX_IN, MIN_OUT, MAX_OUT)                           \
    .name = (NAME), .domain = "", .since = (SINCE), .until = (UNTIL), .min_in = (MIN_IN),          \
    .max_in = (MAX_IN), .min_out = (MIN_OUT), .max_out = (MAX_OUT)
#define SN_ALL_TYPES "all"

/* ---- infer ---- */
/* The type of a tensor input as far as it is known: rank -1 when unknown. Another kind of value is
 * an error. */
typedef struct sn_input_type {
    sn_dtype dtype;
    int rank;
    const sn_dim *dims;
} sn_input_type;
sonde_status sn_infer_input_type(sn_infer *c, uint32_t i, sn_input_type *t);
/* A tensor whose rank is known and dims are not. */
sonde_status sn_infer_rank(sn_infer *c, uint32_t o, sn_dtype dtype, int rank);
/* The list of numbers in input i. *v NULL: not known; then *n is the length if that is known, else
 * -1. An absent input gives *v NULL and *n 0. */
sonde_status sn_infer_list(sn_infer *c, uint32_t i, const sn_dim **v, int64_t *n);
bool sn_dims_known(const sn_dim *v, int64_t n); /* every entry is a number */
/* Two statements about one dim: the one that says more. */
sn_dim sn_dim_merge(sn_dim a, sn_dim b);
/* Hands the integers of input i on to output o when both hold the same elements. */
sonde_status sn_infer_pass_ints(sn_infer *c, uint32_t o, uint32_t i);
/* Axes list ► flags per axis; negative axes count from the end, duplicates are an error. */
sonde_status sn_infer_axes(sn_infer *c, const int64_t *axes, int64_t n, int rank, bool *is_axis);

/* ---- run ---- */
/* A tensor's elements as drivers take them; NULL accepted. */
static inline sn_elems sn_tensor_elems(const sn_tensor *t)
{
    return t ? (sn_elems){t->dtype, t->data} : (sn_elems){SONDE_DTYPE_UNDEFINED, NULL};
}
int64_t sn_tensor_int(const sn_tensor *t, int64_t i); /* element of an integer tensor */
/* At most max elements of an integer tensor; returns how many. */
int64_t sn_tensor_ints(const sn_tensor *t, int64_t *out, int64_t max);
/* Negative axes count from the end; false: out of range. */
bool sn_axis_index(int64_t axis, int rank, int *out);
bool sn_same_dims(const int64_t *a, int rank_a, const int64_t *b, int rank_b);
/* After elements were copied shallowly: a string output gets its own bytes. */
sonde_status sn_run_own_strings(const sn_step *s, sn_frame *f, uint32_t o);
/* Copies src into output o (same count), which may already be the same memory. */
sonde_status sn_run_copy(const sn_step *s, sn_frame *f, uint32_t o, const sn_tensor *src);

/* n channels of x, an image in blocks, from channel `from` on, become those of y from `to` on. */
void sn_copy_channels(sn_tensor *y, int64_t to, const sn_tensor *x, int64_t from, int64_t n,
                      sn_pool *pool);

#endif
