/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights kept on disk: a file is a head of one page, the packed store of one program, which
 * is mapped instead of packed again, and a checksum of every part of the store. A file is found by
 * a key over everything that the store follows from (the model's files by identity and samples,
 * dims, formats, CPU, version), and nothing in it is used as a size or an offset: the program knows
 * those itself. */
#ifndef SN_PLAN_WEIGHTS_CACHE_H
#define SN_PLAN_WEIGHTS_CACHE_H

#include "base/cache.h"
#include "base/pool.h"
#include "graph/tensor.h"

enum { SN_WEIGHTS_HEAD_BYTES = 4096 }; /* before the store, which stays aligned */

typedef struct sn_weights_key {
    uint64_t part[2];
} sn_weights_key;

/* Begins with the version of the library and of the file. */
void sn_weights_key_begin(sn_weights_key *k);
void sn_weights_key_add(sn_weights_key *k, const void *data, size_t bytes);

/* Bytes of a whole file: head, store and checksums. False: more than there are addresses. */
bool sn_weights_file_bytes(size_t store_bytes, size_t *bytes);
/* Completes a file whose store is in its place: writes the checksums and the head. */
void sn_weights_seal(void *file, const sn_weights_key *key, size_t store_bytes, sn_pool *pool);
/* Whether these bytes are, as a whole, what sn_weights_seal made for this key and size. Reads all
 * of the store, shared out over the pool. */
bool sn_weights_check(const void *file, size_t bytes, const sn_weights_key *key, size_t store_bytes,
                      sn_pool *pool);

/* The mapped file, head included. SONDE_NOT_FOUND: there is none. Others: what is there is not
 * used, and why. */
sonde_status sn_weights_cache_find(const sn_cache *cache, const sn_weights_key *key,
                                   size_t store_bytes, sn_pool *pool, sn_allocator *alloc,
                                   sn_buffer **found, sonde_error *err);
/* Seals `whole`, of sn_weights_file_bytes, and writes it to disk. */
sonde_status sn_weights_cache_save(const sn_cache *cache, const sn_weights_key *key,
                                   sn_buffer *whole, size_t store_bytes, sn_pool *pool,
                                   sonde_error *err);

#endif
