/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: many small objects with one lifetime. Blocks grow geometrically; nothing is freed alone.
 * Not thread-safe. */
#ifndef SN_BASE_ARENA_H
#define SN_BASE_ARENA_H

#include "base/alloc.h"

/* Under AddressSanitizer objects stand apart and what is not handed out is poisoned: reading past
 * one is reported as it is for malloc. */
#if defined(__SANITIZE_ADDRESS__)
#define SN_ARENA_GAP_BYTES 16
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SN_ARENA_GAP_BYTES 16
#endif
#endif
#ifndef SN_ARENA_GAP_BYTES
#define SN_ARENA_GAP_BYTES 0
#endif

typedef struct sn_arena_block sn_arena_block;
typedef struct sn_arena {
    sn_allocator *alloc;
    sn_arena_block *head;
    size_t used_bytes, block_bytes;
} sn_arena;

void sn_arena_init(sn_arena *a, sn_allocator *alloc);
void sn_arena_free(sn_arena *a);  /* everything; the arena may be used again */
void sn_arena_reset(sn_arena *a); /* forget the objects, keep the largest block */

void *sn_arena_alloc(sn_arena *a, size_t bytes, size_t align); /* zeroed; NULL when out of memory */
void *sn_arena_array(sn_arena *a, size_t n, size_t elem_bytes, size_t align); /* checked n*size */
char *sn_arena_strdup(sn_arena *a, const char *s);
char *sn_arena_strndup(sn_arena *a, const char *s, size_t n);
char *sn_arena_printf(sn_arena *a, const char *fmt, ...) SONDE_PRINTF(2, 3);

#define SN_NEW(arena, T)      ((T *)sn_arena_alloc((arena), sizeof(T), _Alignof(T)))
#define SN_NEW_N(arena, T, n) ((T *)sn_arena_array((arena), (size_t)(n), sizeof(T), _Alignof(T)))

#endif
