/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from byte strings to pointers. Open addressing, seeded hash (hostile names cannot make
 * it quadratic). Keys are not copied: they must outlive the map. An object whose identity is the
 * key needs no memory for one: sn_map_put_address. */
#ifndef SN_BASE_MAP_H
#define SN_BASE_MAP_H

#include "base/alloc.h"

typedef struct sn_map_entry {
    const char *key;
    size_t key_bytes;
    uint64_t hash;
    void *value;
} sn_map_entry;

typedef struct sn_map {
    sn_allocator *alloc;
    sn_map_entry *entries; /* key == NULL: free */
    size_t cap, n;
    uint64_t seed; /* drawn by sn_map_init */
} sn_map;

void sn_map_init(sn_map *m, sn_allocator *alloc);
void sn_map_free(sn_map *m);
/* The value, or NULL when absent. */
void *sn_map_get(const sn_map *m, const char *key);
void *sn_map_get_n(const sn_map *m, const void *key, size_t key_bytes);
/* Inserts or replaces; *old (may be NULL) receives the previous value or NULL. False: no memory. */
bool sn_map_put(sn_map *m, const char *key, void *value, void **old);
bool sn_map_put_n(sn_map *m, const void *key, size_t key_bytes, void *value, void **old);

/* The same by address: `object` itself is the key, what it contains is never read. Not NULL. A map
 * may have keys of both kinds. */
void *sn_map_get_address(const sn_map *m, const void *object);
bool sn_map_put_address(sn_map *m, const void *object, void *value, void **old);

uint64_t sn_hash(const void *data, size_t bytes, uint64_t seed);

#endif
