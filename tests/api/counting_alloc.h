/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a context that counts down and then fails, through the public options:
 *     counting count = {.left = 3};
 *     counting_options(&o, &count);
 */
#ifndef SONDE_TESTS_API_COUNTING_ALLOC_H
#define SONDE_TESTS_API_COUNTING_ALLOC_H

#include <stdlib.h>

#include "sonde/sonde.h"

typedef struct counting {
    long left; /* allocations until one fails, and all after it; negative: never */
    long live; /* blocks not given back */
    long failed;
} counting;

static inline void *counting_alloc(void *user, size_t bytes)
{
    counting *c = user;
    if (c->left == 0) {
        c->failed++;
        return NULL;
    }
    c->left -= c->left > 0;
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    c->live += p != NULL;
    return p;
}

static inline void counting_free(void *user, void *ptr, size_t bytes)
{
    (void)bytes;
    ((counting *)user)->live -= ptr != NULL;
    free(ptr);
}

static inline void counting_options(sonde_context_options *o, counting *count)
{
    o->alloc = counting_alloc;
    o->free = counting_free;
    o->alloc_user = count;
}

#endif
