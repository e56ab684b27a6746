/* SPDX-License-Identifier: Apache-2.0 */
/* The head is checked as a whole: magic, key, size and a checksum over them and over the checksums
 * of the store. Those are of parts of a megabyte, so that all threads take a share; a part is read
 * at the speed of memory, and a run needs its pages anyway. They find what a disk, a copy or a
 * slip of somebody's hand has changed. Somebody who means it would change them, too: that others
 * cannot write there is the folder's matter (base/cache.h). */
#include "plan/weights_cache.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"

/* Goes up when the file or a packed format changes its meaning. */
static const char format_version[] = "sonde weights 3, " SONDE_VERSION_TEXT;
static const char magic[8] = {'S', 'N', 'W', 'E', 'I', 'G', 'H', 'T'};

enum { PART = 1 << 20 }; /* bytes of the store under one checksum */

typedef struct head {
    char magic[8];
    uint64_t key[2];
    uint64_t store_bytes;
    uint64_t sums;     /* checksum of those behind the store */
    uint64_t checksum; /* of what stands before it */
} head;

void sn_weights_key_begin(sn_weights_key *k)
{
    *k = (sn_weights_key){{1, 2}};
    sn_weights_key_add(k, format_version, sizeof format_version);
}

void sn_weights_key_add(sn_weights_key *k, const void *data, size_t bytes)
{
    for (int i = 0; i < 2; i++)
        k->part[i] = sn_hash(data, bytes, k->part[i]);
}

/* ------------------------------------------------------------------ the file's parts */

static size_t parts_of(size_t store_bytes)
{
    return store_bytes / PART + (store_bytes % PART != 0);
}

bool sn_weights_file_bytes(size_t store_bytes, size_t *bytes)
{
    return sn_size_add(SN_WEIGHTS_HEAD_BYTES, store_bytes, bytes) &&
           sn_size_add(*bytes, parts_of(store_bytes) * sizeof(uint64_t), bytes);
}

typedef struct summing {
    const uint8_t *store;
    size_t bytes;
    uint8_t *sums;           /* where they are written; NULL: they are compared with `expected` */
    const uint8_t *expected; /* both may lie anywhere: no alignment */
    _Atomic bool differs;
} summing;

static void sum_part(void *arg, size_t i, int worker)
{
    (void)worker;
    summing *s = arg;
    const size_t left = s->bytes - i * PART;
    /* The number of the part goes in: parts that changed places differ. */
    const uint64_t sum = sn_hash(s->store + i * PART, left < PART ? left : PART, i + 1);
    if (s->sums)
        memcpy(s->sums + i * sizeof sum, &sum, sizeof sum);
    else if (memcmp(s->expected + i * sizeof sum, &sum, sizeof sum) != 0)
        s->differs = true;
}

static head head_of(const sn_weights_key *key, size_t store_bytes, const void *sums)
{
    head h = {.key = {key->part[0], key->part[1]}, .store_bytes = store_bytes};
    memcpy(h.magic, magic, sizeof magic);
    h.sums = sn_hash(sums, parts_of(store_bytes) * sizeof(uint64_t), 0);
    h.checksum = sn_hash(&h, offsetof(head, checksum), 0);
    return h;
}

void sn_weights_seal(void *file, const sn_weights_key *key, size_t store_bytes, sn_pool *pool)
{
    uint8_t *store = (uint8_t *)file + SN_WEIGHTS_HEAD_BYTES;
    summing s = {.store = store, .bytes = store_bytes, .sums = store + store_bytes};
    sn_pool_run(pool, parts_of(store_bytes), sum_part, &s);
    const head h = head_of(key, store_bytes, s.sums);
    memset(file, 0, SN_WEIGHTS_HEAD_BYTES);
    memcpy(file, &h, sizeof h);
}

bool sn_weights_check(const void *file, size_t bytes, const sn_weights_key *key, size_t store_bytes,
                      sn_pool *pool)
{
    size_t expected;
    if (!store_bytes || !sn_weights_file_bytes(store_bytes, &expected) || bytes != expected)
        return false;
    const uint8_t *store = (const uint8_t *)file + SN_WEIGHTS_HEAD_BYTES;
    const head h = head_of(key, store_bytes, store + store_bytes);
    if (memcmp(file, &h, sizeof h) != 0)
        return false;
    summing s = {.store = store, .bytes = store_bytes, .expected = store + store_bytes};
    sn_pool_run(pool, parts_of(store_bytes), sum_part, &s);
    return !s.differs;
}

/* ------------------------------------------------------------------ on disk */

static void name_of(const sn_weights_key *key, char name[64])
{
    snprintf(name, 64, "%016llx%016llx.weights", (unsigned long long)key->part[0],
             (unsigned long long)key->part[1]);
}

static void close_file(void *user, void *data, size_t bytes)
{
    sn_file *f = user;
    sn_allocator *alloc = f->alloc;
    (void)data, (void)bytes;
    sn_file_close(f);
    sn_free(alloc, f, sizeof *f);
}

sonde_status sn_weights_cache_find(const sn_cache *cache, const sn_weights_key *key,
                                   size_t store_bytes, sn_pool *pool, sn_allocator *alloc,
                                   sn_buffer **found, sonde_error *err)
{
    char name[64];
    size_t bytes;
    name_of(key, name);
    if (!sn_weights_file_bytes(store_bytes, &bytes))
        return sn_fail(err, SONDE_LIMIT, "packed weights exceed the address space");
    sn_file *f = sn_alloc(alloc, sizeof *f);
    if (!f)
        return sn_fail_memory(err, sizeof *f);
    const sonde_status st = sn_cache_read(cache, name, bytes, true, alloc, f, err);
    if (st) {
        sn_free(alloc, f, sizeof *f);
        return st;
    }
    if (f->mapped && sn_weights_check(f->data, f->bytes, key, store_bytes, pool)) {
        *found = sn_buffer_wrap(alloc, (void *)(uintptr_t)f->data, f->bytes, close_file, f);
        if (*found)
            return SONDE_OK;
    }
    close_file(f, NULL, 0);
    return sn_fail(err, SONDE_IO,
                   "the file '%s/%s' is not used: its content does not match its checksums",
                   cache->path, name);
}

sonde_status sn_weights_cache_save(const sn_cache *cache, const sn_weights_key *key,
                                   sn_buffer *whole, size_t store_bytes, sn_pool *pool,
                                   sonde_error *err)
{
    char name[64];
    name_of(key, name);
    sn_weights_seal(whole->data, key, store_bytes, pool);
    return sn_cache_write(cache, name, whole->data, whole->bytes, err);
}
