/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators: everything that outlives a call is allocated through one of these, so that tests can
 * make any allocation fail and a limit can be set. An allocator counts what it has handed out. */
#ifndef SN_BASE_ALLOC_H
#define SN_BASE_ALLOC_H

#include <stdatomic.h>

#include "base/status.h"

#define SN_ALIGN 64 /* every block: a cache line, and a full AVX-512 vector */

typedef struct sn_allocator sn_allocator;
struct sn_allocator {
    /* Returns SN_ALIGN-aligned memory, uninitialised, or NULL. */
    void *(*alloc)(sn_allocator *self, size_t bytes);
    /* The same of memory that is kept for long and read often; NULL: as any other. */
    void *(*alloc_kept)(sn_allocator *self, size_t bytes);
    void (*free)(sn_allocator *self, void *ptr, size_t bytes);
    void *user;
    _Atomic size_t live_bytes; /* kept by sn_alloc / sn_free */
    _Atomic size_t peak_bytes;
    size_t limit_bytes;        /* 0 = none; sn_alloc refuses beyond it */
    _Atomic bool huge_is_dear; /* found out by the system's: finding huge pages takes long */
};

/* libc's aligned allocation; blocks of 2 MiB and more ask for huge pages. */
void sn_allocator_init_system(sn_allocator *a);

/* The limit that made this thread's last refused allocation fail; 0: it was not a limit. */
size_t sn_alloc_limit_reached(void);
void *sn_alloc(sn_allocator *a, size_t bytes); /* bytes == 0 gives a valid unique pointer */
void *sn_alloc_kept(sn_allocator *a, size_t bytes);
void *sn_alloc_zero(sn_allocator *a, size_t bytes);
void *sn_realloc(sn_allocator *a, void *ptr, size_t old_bytes, size_t new_bytes);
void sn_free(sn_allocator *a, void *ptr, size_t bytes); /* ptr may be NULL */

/* Checked sizes: false on overflow, *out untouched. */
static inline bool sn_size_mul(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline bool sn_size_add(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline bool sn_i64_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline bool sn_i64_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline size_t sn_round_up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

#endif
