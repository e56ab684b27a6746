/* SPDX-License-Identifier: Apache-2.0 */
/* Zero points of bytes that are inputs of an operator. */
#ifndef SN_OPS_SHARED_ZERO_POINTS_H
#define SN_OPS_SHARED_ZERO_POINTS_H

#include "compute/bytes.h"
#include "ops/framework/op.h"

/* Input i; none where it is absent or i is 0, which is never a zero point. */
static inline sn_byte_zeros sn_zeros_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    if (i == 0 || !sn_has(s, i))
        return (sn_byte_zeros){0};
    const sn_tensor *t = sn_in(s, f, i);
    return (sn_byte_zeros){t->dtype, t->data, sn_tensor_count(t)};
}

#endif
