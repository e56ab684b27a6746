/* SPDX-License-Identifier: Apache-2.0 */
/* The usual checks of inference: element types and shapes of inputs. What is not known yet passes.
 */
#ifndef SN_OPS_SHARED_CHECKS_H
#define SN_OPS_SHARED_CHECKS_H

#include <stdatomic.h>

#include "ops/framework/op.h"

/* The floats that most operators of floats take. */
#define SN_COMMON_FLOATS "bf16 f16 f32 f64"

static inline bool sn_is_common_float(sn_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || t == SONDE_DTYPE_F16 ||
           t == SONDE_DTYPE_BF16;
}
/* Input i, when present and typed, is one of those floats; has the type of input j. */
sonde_status sn_check_float(sn_infer *c, uint32_t i);
sonde_status sn_check_same_dtype(sn_infer *c, uint32_t i, uint32_t j);
sonde_status sn_check_dtype(sn_infer *c, uint32_t i, const sn_dtype *allowed, int n);
/* Input i, when present and of known rank, has these dims as far as both sides are known. Entries
 * still unknown are learnt from the input. */
sonde_status sn_check_dims(sn_infer *c, uint32_t i, sn_dim *dims, int rank);
/* Input i, when present, is one i32 or i64; *v is its value as far as it is known. */
sonde_status sn_check_integer(sn_infer *c, uint32_t i, sn_dim *v);
/* sn_infer_tensor, refusing shapes whose bytes overflow. */
sonde_status sn_infer_bounded(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims,
                              int rank);

/* An operator that makes an empty result of an input that is not empty says so once in the log:
 * what follows sees nothing of the input. The flag is made when the node is prepared. */
sonde_status sn_prep_empty_flag(sn_prep *p, _Atomic bool **said);
void sn_bind_warn_empty(const sn_bind *b, _Atomic bool *said);

#endif
