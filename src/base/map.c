/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most three quarters full. Every map draws a seed of its
 * own, so that names chosen to collide in one map, or in one process, do not in another. The hash
 * folds 128-bit products of the key's words with odd constants. */
#include "base/map.h"

#include <string.h>

#include "base/clock.h"

enum { FIRST_CAP = 16 };

/* As key_bytes: the key is the address. No object is that large. */
#define ADDRESS SIZE_MAX

__extension__ typedef unsigned __int128 wide;

/* Odd, about half the bits set, taken from the fractions of the square roots of 2, 3 and 5. */
static const uint64_t K0 = 0x6A09E667F3BCC909u, K1 = 0xBB67AE8584CAA73Bu, K2 = 0x3C6EF372FE94F82Bu;

static uint64_t fold(uint64_t a, uint64_t b)
{
    wide p = (wide)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t read64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The last 0…8 bytes as one number. */
static uint64_t read_tail(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    if (n)
        memcpy(&v, p, n);
    return v;
}

enum { LANES = 4, LANE = 16, STRIDE = LANES * LANE, PAGE = 4096 };

/* Whole strides of much data, in chains that do not wait for each other; what they have read is in
 * *h. Asks for the page behind as well, which the hardware does not. Returns where the rest is. */
static const unsigned char *hash_strides(const unsigned char *p, size_t *left, uint64_t *h)
{
    uint64_t lane[LANES] = {*h, *h ^ K0, *h ^ K1, *h ^ K2};
    for (; *left > STRIDE; p += STRIDE, *left -= STRIDE) {
        __builtin_prefetch(p + PAGE);
        for (int k = 0; k < LANES; k++)
            lane[k] = fold(read64(p + k * LANE) ^ K1, read64(p + k * LANE + 8) ^ lane[k]);
    }
    *h = fold(fold(lane[0] ^ K0, lane[1] ^ K1), fold(lane[2] ^ K1, lane[3] ^ K2) ^ K0);
    return p;
}

uint64_t sn_hash(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    size_t left = bytes;
    uint64_t h = fold(seed ^ K0, K1);
    if (left > 2 * STRIDE)
        p = hash_strides(p, &left, &h);
    for (; left > 16; p += 16, left -= 16)
        h = fold(read64(p) ^ K1, read64(p + 8) ^ h);
    uint64_t a, b = 0;
    if (left > 8) {
        a = read64(p);
        b = read_tail(p + 8, left - 8);
    } else {
        a = read_tail(p, left);
    }
    /* The length goes in, because a tail padded with zeros looks like a longer key. */
    return fold(fold(a ^ K1, b ^ h), (uint64_t)bytes ^ K2);
}

void sn_map_init(sn_map *m, sn_allocator *alloc)
{
    uint64_t here = (uint64_t)(uintptr_t)m;
    *m = (sn_map){.alloc = alloc, .seed = fold(sn_ticks() ^ K0, here ^ K2)};
}

void sn_map_free(sn_map *m)
{
    sn_free(m->alloc, m->entries, m->cap * sizeof *m->entries);
    m->entries = NULL;
    m->cap = m->n = 0;
}

/* The entry of this key, or the free one where it would go. The map has a free entry. */
static sn_map_entry *find(const sn_map *m, const void *key, size_t key_bytes, uint64_t hash)
{
    size_t mask = m->cap - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        sn_map_entry *e = &m->entries[i];
        if (!e->key || (e->hash == hash && e->key_bytes == key_bytes &&
                        (e->key == key || key_bytes == 0 ||
                         (key_bytes != ADDRESS && memcmp(e->key, key, key_bytes) == 0))))
            return e;
    }
}

static bool grow(sn_map *m)
{
    size_t cap = m->cap ? m->cap * 2 : FIRST_CAP, bytes;
    if (cap < m->cap || !sn_size_mul(cap, sizeof *m->entries, &bytes))
        return false;
    sn_map_entry *entries = sn_alloc_zero(m->alloc, bytes);
    if (!entries)
        return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->entries[i].key)
            continue;
        size_t j = (size_t)m->entries[i].hash & (cap - 1);
        while (entries[j].key)
            j = (j + 1) & (cap - 1);
        entries[j] = m->entries[i];
    }
    sn_free(m->alloc, m->entries, m->cap * sizeof *m->entries);
    m->entries = entries;
    m->cap = cap;
    return true;
}

static void *get(const sn_map *m, const void *key, size_t key_bytes, uint64_t hash)
{
    const sn_map_entry *e = find(m, key, key_bytes, hash);
    return e->key ? e->value : NULL;
}

void *sn_map_get_n(const sn_map *m, const void *key, size_t key_bytes)
{
    return m->n ? get(m, key, key_bytes, sn_hash(key, key_bytes, m->seed)) : NULL;
}

void *sn_map_get(const sn_map *m, const char *key)
{
    return sn_map_get_n(m, key, strlen(key));
}

void *sn_map_get_address(const sn_map *m, const void *object)
{
    return m->n ? get(m, object, ADDRESS, sn_hash(&object, sizeof object, m->seed)) : NULL;
}

static bool put(sn_map *m, const void *key, size_t key_bytes, uint64_t hash, void *value,
                void **old)
{
    sn_map_entry *e = m->cap ? find(m, key, key_bytes, hash) : NULL;
    if (e && e->key) {
        if (old)
            *old = e->value;
        e->value = value;
        return true;
    }
    if (!e || m->n >= m->cap / 4 * 3) {
        if (!grow(m))
            return false;
        e = find(m, key, key_bytes, hash);
    }
    /* An empty key may come as NULL, which marks free entries. */
    *e =
        (sn_map_entry){.key = key ? key : "", .key_bytes = key_bytes, .hash = hash, .value = value};
    m->n++;
    if (old)
        *old = NULL;
    return true;
}

bool sn_map_put_n(sn_map *m, const void *key, size_t key_bytes, void *value, void **old)
{
    return put(m, key, key_bytes, sn_hash(key, key_bytes, m->seed), value, old);
}

bool sn_map_put_address(sn_map *m, const void *object, void *value, void **old)
{
    return put(m, object, ADDRESS, sn_hash(&object, sizeof object, m->seed), value, old);
}

bool sn_map_put(sn_map *m, const char *key, void *value, void **old)
{
    return sn_map_put_n(m, key, strlen(key), value, old);
}
