/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two tensors have the same type, shape and elements. */
#ifndef SONDE_TESTS_GRAPH_SAME_TENSOR_H
#define SONDE_TESTS_GRAPH_SAME_TENSOR_H

#include <string.h>

#include "graph/tensor.h"

/* NULL is like nothing. */
static inline bool same_tensor(const sn_tensor *a, const sn_tensor *b)
{
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]))
        return false;
    if (!a || !b || a->dtype != SONDE_DTYPE_STRING)
        return memcmp(a->data, b->data, a->bytes) == 0;
    const sonde_string *s = a->data, *t = b->data;
    for (int64_t i = 0; i < sn_tensor_count(a); i++)
        if (s[i].size != t[i].size || memcmp(s[i].data, t[i].data, s[i].size))
            return false;
    return true;
}

#endif
