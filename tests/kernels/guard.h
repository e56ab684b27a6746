/* SPDX-License-Identifier: Apache-2.0 */
/* Float arrays that lie against an inaccessible page, at their end or at their beginning: a kernel
 * that reads or writes one element too far dies at once. */
#ifndef SONDE_TESTS_GUARD_H
#define SONDE_TESTS_GUARD_H

#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

typedef struct guarded {
    float *data;
    void *map;
    size_t map_bytes;
} guarded;

/* `at_end`: the element after the last one is inaccessible; else the one before the first. */
static inline guarded guard_floats(size_t n, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inner = (n * sizeof(float) + page - 1) / page * page;
    guarded g = {.map_bytes = inner + 2 * page};
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED) {
        fprintf(stderr, "mmap failed\n");
        exit(1);
    }
    uint8_t *first = (uint8_t *)g.map + page;
    if (inner > 0 && mprotect(first, inner, PROT_READ | PROT_WRITE) != 0)
        exit(1);
    g.data = (float *)(void *)(at_end ? first + inner - n * sizeof(float) : first);
    return g;
}

static inline void guard_free(guarded *g)
{
    munmap(g->map, g->map_bytes);
}

#endif
