/* SPDX-License-Identifier: Apache-2.0 */
/* Growable array of any type: `SN_VEC(int) v = {0}; sn_vec_push(&v, alloc, 3)`. The allocator is
 * passed where memory may move, so the struct stays three words. */
#ifndef SN_BASE_VEC_H
#define SN_BASE_VEC_H

#include <string.h>

#include "base/alloc.h"

#define SN_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *data;                                                                                   \
        size_t n, cap;                                                                             \
    }

/* Makes room for `extra` more elements; false when out of memory. */
bool sn_vec_grow(void **data, size_t *cap, size_t n, size_t extra, size_t elem_bytes,
                 sn_allocator *alloc);

#define sn_vec_reserve(v, alloc, extra)                                                            \
    ((v)->n + (size_t)(extra) <= (v)->cap ||                                                       \
     sn_vec_grow((void **)&(v)->data, &(v)->cap, (v)->n, (size_t)(extra), sizeof(*(v)->data),      \
                 (alloc)))
/* Evaluates to true on success. */
#define sn_vec_push(v, alloc, value)                                                               \
    (sn_vec_reserve(v, alloc, 1) ? ((v)->data[(v)->n++] = (value), true) : false)
/* Appends `count` elements from elsewhere; evaluates to true on success, and `count` several times.
 */
#define sn_vec_append(v, alloc, from, count)                                                       \
    (sn_vec_reserve(v, alloc, count)                                                               \
         ? (sn_vec_copy((v)->data, (v)->n, (from), (size_t)(count), sizeof(*(v)->data)),           \
            (v)->n += (size_t)(count), true)                                                       \
         : false)
static inline void sn_vec_copy(void *data, size_t n, const void *from, size_t count,
                               size_t elem_bytes)
{
    if (count) /* there may be no memory yet */
        memcpy((char *)data + n * elem_bytes, from, count * elem_bytes);
}
#define sn_vec_free(v, alloc)                                                                      \
    do {                                                                                           \
        sn_free((alloc), (v)->data, (v)->cap * sizeof(*(v)->data));                                \
        (v)->data = NULL;                                                                          \
        (v)->n = (v)->cap = 0;                                                                     \
    } while (0)

#endif
