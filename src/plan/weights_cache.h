/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights kept on disk: a file is a head of one page and the packed store of one program,
 * which is mapped instead of packed again. A file is found by a key over everything that the store
 * follows from (the model's files by identity and samples, dims, formats, CPU, version), and
 * nothing in it is used as a size or an offset: the program knows those itself. */
#ifndef SN_PLAN_WEIGHTS_CACHE_H
#define SN_PLAN_WEIGHTS_CACHE_H

#include "graph/tensor.h"

enum { SN_WEIGHTS_HEAD_BYTES = 4096 }; /* before the store, which stays aligned */

typedef struct sn_weights_key {
    uint64_t part[2];
} sn_weights_key;

/* Begins with the version of the library and of the file. */
void sn_weights_key_begin(sn_weights_key *k);
void sn_weights_key_add(sn_weights_key *k, const void *data, size_t bytes);

void sn_weights_head_write(void *head, const sn_weights_key *key, size_t store_bytes);
/* Whether these bytes, a whole file, are a head for this key and a store of this size. */
bool sn_weights_head_check(const void *file, size_t bytes, const sn_weights_key *key,
                           size_t store_bytes);

/* The mapped file, head included; NULL: there is none that fits. */
sn_buffer *sn_weights_cache_find(const char *dir, const sn_weights_key *key, size_t store_bytes,
                                 sn_allocator *alloc);
/* Writes the head into the first page of `whole`, and all of it to disk. Makes the folder. */
sonde_status sn_weights_cache_save(const char *dir, const sn_weights_key *key, sn_buffer *whole,
                                   sonde_error *err);

#endif
