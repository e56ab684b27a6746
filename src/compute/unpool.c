/* SPDX-License-Identifier: Apache-2.0 */
/* An index becomes coordinates, and these a place in the result. */
#include "compute/unpool.h"

#include "compute/element.h"

bool sn_unpool_run(const sn_unpool *u, void *y, size_t y_bytes, const void *x, const int64_t *index,
                   int64_t n, int64_t *bad)
{
    const size_t bytes = u->elem_bytes;
    memset(y, 0, y_bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = index[i], at = 0, step = 1;
        if (rest < 0 || rest >= u->total) {
            *bad = rest;
            return false;
        }
        for (int d = u->rank - 1; d >= 0; d--) {
            at += rest % u->pooled[d] * step;
            rest /= u->pooled[d];
            step *= u->out[d];
        }
        sn_elem_copy((uint8_t *)y + (size_t)at * bytes, (const uint8_t *)x + (size_t)i * bytes,
                     bytes);
    }
    return true;
}
