/* SPDX-License-Identifier: Apache-2.0 */
/* Growable array of any type: `SN_VEC(int) v = {0}; sn_vec_push(&v, alloc, 3)`. The allocator is
 * passed where memory may move, so the struct stays three words. */
#ifndef SN_BASE_VEC_H
#define SN_BASE_VEC_H

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
#define sn_vec_free(v, alloc)                                                                      \
    do {                                                                                           \
        sn_free((alloc), (v)->data, (v)->cap * sizeof(*(v)->data));                                \
        (v)->data = NULL;                                                                          \
        (v)->n = (v)->cap = 0;                                                                     \
    } while (0)

#endif
