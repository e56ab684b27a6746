/* SPDX-License-Identifier: Apache-2.0 */
/* Zero points and scales of bytes that are inputs of an operator. */
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

/* Is it one number, or one for each of the n columns (rows) of a matrix? Of more dims than one the
 * shape has to say so: a column as long as a row is another thing. */
static inline bool sn_is_per_column(const sn_type *t, int64_t n)
{
    int64_t count;
    return sn_type_count(t, &count) &&
           (count == 1 || (count == n && (t->rank <= 1 || t->dims[t->rank - 1] == n)));
}
static inline bool sn_is_per_row(const sn_type *t, int64_t n)
{
    int64_t count;
    return sn_type_count(t, &count) &&
           (count == 1 || (count == n && (t->rank <= 1 || t->dims[t->rank - 2] == n)));
}

#endif
