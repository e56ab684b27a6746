/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators of ai.onnx.ml share: attributes that are strings or tensors, class labels
 * and the transforms behind scores. */
#ifndef SN_OPS_ML_SHARED_H
#define SN_OPS_ML_SHARED_H

#include "compute/lookup.h"
#include "compute/scores.h"
#include "ops/shared/data_movement.h"

#define SN_ML_NUMBERS "f32 f64 i64 i32"
#define SN_ML_HEAD(NAME, SINCE, UNTIL, MIN_IN, MAX_IN, OUTPUTS)                                    \
    .name = (NAME), .domain = "ai.onnx.ml", .since = (SINCE), .until = (UNTIL),                    \
    .min_in = (MIN_IN), .max_in = (MAX_IN), .min_out = 1, .max_out = (OUTPUTS)

/* ---- attributes ---- */
/* *out = NULL when absent. */
sonde_status sn_ml_tensor(sn_prep *p, const char *name, const sn_tensor **out);
/* Numbers from attribute `name` (floats) or `name`_as_tensor (f32 or f64), as doubles in the arena.
 */
sonde_status sn_ml_doubles(sn_prep *p, const char *name, const double **out, size_t *n);

/* ---- labels ---- */
typedef struct sn_ml_labels {
    const int64_t *ints; /* one of the two when n > 0 */
    const sonde_string *strings;
    size_t n;
} sn_ml_labels;
/* `ints` names the attribute with integer labels; "classlabels_strings" has the others. */
sonde_status sn_ml_labels_read(sn_prep *p, const char *ints, sn_ml_labels *l);
/* Output o gets label index[i] of each of n rows; an index beyond the labels stands for itself (0,
 * 1). `room` has space for n sonde_strings. */
sonde_status sn_ml_labels_write(const sn_step *s, sn_frame *f, uint32_t o, const sn_ml_labels *l,
                                const int64_t *index, int64_t n, sonde_string *room);

/* ---- scores ---- */
sonde_status sn_ml_post_read(sn_prep *p, sn_score_post *post);

/* ---- rows ---- */
/* [n, features]; one dim is a single row. False: another rank. */
bool sn_ml_rows(const sn_type *t, int64_t *n, int64_t *features);
/* Rows of an input whose type may be partly unknown: SN_DIM_UNKNOWN where it is. */
sonde_status sn_ml_infer_rows(sn_infer *c, sn_dim *n);
/* Is it one of the numeric types these operators take? */
bool sn_ml_number(sn_dtype t);
sonde_status sn_ml_check(sn_bind *b, int64_t *n, int64_t *features);

#endif
