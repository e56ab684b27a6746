/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation in blocks of 4 KiB growing to 1 MiB. An object too large for the next block gets
 * a block of its own, put behind the current one, whose room is thus not lost. Objects are zeroed
 * when they are handed out, not when a block is made: a reset arena needs no clearing. */
#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#if SN_ARENA_GAP_BYTES
#include <sanitizer/asan_interface.h>
#define POISON(ptr, bytes)   ASAN_POISON_MEMORY_REGION(ptr, bytes)
#define UNPOISON(ptr, bytes) ASAN_UNPOISON_MEMORY_REGION(ptr, bytes)
#else
#define POISON(ptr, bytes)   ((void)0)
#define UNPOISON(ptr, bytes) ((void)0)
#endif

#define FIRST_BLOCK_BYTES ((size_t)4 << 10)
#define LAST_BLOCK_BYTES  ((size_t)1 << 20)

struct sn_arena_block {
    sn_arena_block *next;
    size_t bytes; /* whole block, this header included */
    size_t used;  /* from the start of the block */
};

/* The first object of a block is aligned as the block is. */
#define HEADER_BYTES ((size_t)SN_ALIGN)
_Static_assert(sizeof(sn_arena_block) <= SN_ALIGN, "the header must fit in one aligned slot");

void sn_arena_init(sn_arena *a, sn_allocator *alloc)
{
    *a = (sn_arena){.alloc = alloc, .block_bytes = FIRST_BLOCK_BYTES};
}

static void free_block(sn_arena *a, sn_arena_block *b)
{
    UNPOISON(b, b->bytes);
    sn_free(a->alloc, b, b->bytes);
}

void sn_arena_free(sn_arena *a)
{
    for (sn_arena_block *b = a->head; b;) {
        sn_arena_block *next = b->next;
        free_block(a, b);
        b = next;
    }
    sn_arena_init(a, a->alloc);
}

void sn_arena_reset(sn_arena *a)
{
    sn_arena_block *largest = a->head;
    for (sn_arena_block *b = a->head; b; b = b->next)
        if (b->bytes > largest->bytes)
            largest = b;
    for (sn_arena_block *b = a->head; b;) {
        sn_arena_block *next = b->next;
        if (b != largest)
            free_block(a, b);
        b = next;
    }
    if (largest) {
        largest->next = NULL;
        largest->used = HEADER_BYTES;
        POISON((char *)largest + HEADER_BYTES, largest->bytes - HEADER_BYTES);
    }
    a->head = largest;
    a->used_bytes = 0;
}

/* A block with room for `bytes` at any alignment; the new head unless it is a large object's own.
 */
static sn_arena_block *add_block(sn_arena *a, size_t bytes)
{
    size_t need;
    if (!sn_size_add(bytes, HEADER_BYTES + SN_ALIGN + SN_ARENA_GAP_BYTES, &need))
        return NULL;
    bool own = need > a->block_bytes;
    size_t block_bytes = own ? need : a->block_bytes;
    sn_arena_block *b = sn_alloc(a->alloc, block_bytes);
    if (!b)
        return NULL;
    b->bytes = block_bytes;
    b->used = HEADER_BYTES;
    POISON((char *)b + HEADER_BYTES, block_bytes - HEADER_BYTES);
    if (own && a->head) {
        b->next = a->head->next;
        a->head->next = b;
        return b;
    }
    b->next = a->head;
    a->head = b;
    if (a->block_bytes < LAST_BLOCK_BYTES)
        a->block_bytes *= 2;
    return b;
}

void *sn_arena_alloc(sn_arena *a, size_t bytes, size_t align)
{
    if (align == 0)
        align = 1;
    if (align > SN_ALIGN || bytes > PTRDIFF_MAX)
        return NULL;
    if (bytes == 0)
        bytes = 1;
    const size_t least = SN_ARENA_GAP_BYTES / 2; /* poison comes in pieces of 8 bytes */
    if (align < least)
        align = least;
    sn_arena_block *b = a->head;
    size_t at = b ? sn_round_up(b->used + SN_ARENA_GAP_BYTES, align) : 0;
    if (!b || at > b->bytes || bytes > b->bytes - at) {
        b = add_block(a, bytes);
        if (!b)
            return NULL;
        at = b->used;
    }
    b->used = at + bytes;
    a->used_bytes += bytes;
    UNPOISON((char *)b + at, bytes);
    return memset((char *)b + at, 0, bytes);
}

void *sn_arena_array(sn_arena *a, size_t n, size_t elem_bytes, size_t align)
{
    size_t bytes;
    return sn_size_mul(n, elem_bytes, &bytes) ? sn_arena_alloc(a, bytes, align) : NULL;
}

char *sn_arena_strndup(sn_arena *a, const char *s, size_t n)
{
    if (n > PTRDIFF_MAX - 1)
        return NULL;
    char *copy = sn_arena_alloc(a, n + 1, 1);
    if (copy && n)
        memcpy(copy, s, n);
    return copy;
}

char *sn_arena_strdup(sn_arena *a, const char *s)
{
    return sn_arena_strndup(a, s, strlen(s));
}

char *sn_arena_printf(sn_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : sn_arena_alloc(a, (size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}
