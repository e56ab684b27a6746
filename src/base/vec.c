/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of vectors: doubling, so that n pushes copy O(n) elements. */
#include "base/vec.h"

#include <string.h>

enum { FIRST_CAP = 8 };

bool sn_vec_grow(void **data, size_t *cap, size_t n, size_t extra, size_t elem_bytes,
                 sn_allocator *alloc)
{
    size_t need, want, bytes;
    if (!sn_size_add(n, extra, &need))
        return false;
    if (!sn_size_mul(*cap, 2, &want) || want < need)
        want = need;
    if (want < FIRST_CAP)
        want = FIRST_CAP;
    if (!sn_size_mul(want, elem_bytes, &bytes))
        return false;
    /* The caller's pointer has another type than void *, so it is read and written as bytes. */
    void *p;
    memcpy(&p, (const void *)data, sizeof p);
    p = sn_realloc(alloc, p, *cap * elem_bytes, bytes);
    if (!p)
        return false;
    memcpy((void *)data, &p, sizeof p);
    *cap = want;
    return true;
}
