/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that refuses memory at a chosen call, and counts what it gave and got back:
 *     failing_alloc m;
 *     sn_allocator *alloc = failing_init(&m);
 *     m.fail_at = 3;      the fourth call fails, and all after it
 *     …
 *     CHECK_EQ(m.live, 0); */
#ifndef SONDE_TESTS_FAILING_ALLOC_H
#define SONDE_TESTS_FAILING_ALLOC_H

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct failing_alloc {
    sn_allocator a;
    long fail_at; /* the call that is refused, from 0; negative: none */
    bool once;    /* only this one, not those after it */
    long calls;   /* so far, refused ones included */
    long live;    /* blocks that were not given back */
} failing_alloc;

static inline void *failing_take(sn_allocator *self, size_t bytes)
{
    failing_alloc *m = self->user;
    const long call = m->calls++;
    if (m->fail_at >= 0 && (m->once ? call == m->fail_at : call >= m->fail_at))
        return NULL;
    void *p = aligned_alloc(SN_ALIGN, sn_round_up(bytes ? bytes : 1, SN_ALIGN));
    m->live += p != NULL;
    return p;
}

static inline void failing_give(sn_allocator *self, void *ptr, size_t bytes)
{
    (void)bytes;
    ((failing_alloc *)self->user)->live -= ptr != NULL;
    free(ptr);
}

/* Refuses nothing yet. */
static inline sn_allocator *failing_init(failing_alloc *m)
{
    memset(m, 0, sizeof *m);
    m->fail_at = -1;
    m->a.alloc = failing_take;
    m->a.free = failing_give;
    m->a.user = m;
    return &m->a;
}

#endif
