/* SPDX-License-Identifier: Apache-2.0 */
/* A file of packed weights is taken for exactly one key and size, and nothing that was changed in
 * it goes unseen. */
#include "plan/weights_cache.h"

#include <unistd.h>

#include "temp_folder.h"
#include "test.h"

/* Three parts, the last one short. */
enum { STORE = (2 << 20) + 1000, FILE_BYTES = SN_WEIGHTS_HEAD_BYTES + STORE + 3 * 8, HEAD = 48 };

static sn_weights_key some_key(void)
{
    sn_weights_key k;
    sn_weights_key_begin(&k);
    sn_weights_key_add(&k, "weights", 7);
    return k;
}

static uint8_t *sealed(const sn_weights_key *key, sn_pool *pool)
{
    static uint8_t file[FILE_BYTES];
    for (size_t i = 0; i < STORE; i++)
        file[SN_WEIGHTS_HEAD_BYTES + i] = (uint8_t)(i * 7);
    sn_weights_seal(file, key, STORE, pool);
    return file;
}

TEST(a_file_is_taken_for_its_key_and_size_only)
{
    const sn_weights_key key = some_key();
    sn_weights_key other = key;
    other.part[1]++;
    size_t bytes = 0;
    CHECK(sn_weights_file_bytes(STORE, &bytes));
    CHECK_EQ(bytes, FILE_BYTES);
    CHECK(!sn_weights_file_bytes(SIZE_MAX - 100, &bytes));
    const uint8_t *file = sealed(&key, NULL);
    CHECK(sn_weights_check(file, FILE_BYTES, &key, STORE, NULL));
    CHECK(!sn_weights_check(file, FILE_BYTES, &other, STORE, NULL));
    CHECK(!sn_weights_check(file, FILE_BYTES, &key, STORE - 1, NULL));
    CHECK(!sn_weights_check(file, FILE_BYTES - 1, &key, STORE, NULL));
    CHECK(!sn_weights_check(file, SN_WEIGHTS_HEAD_BYTES, &key, 0, NULL));
    for (size_t n = 0; n < 64; n++)
        CHECK(!sn_weights_check(file, n, &key, STORE, NULL));
}

static bool sees(uint8_t *file, size_t at, unsigned bit, sn_pool *pool)
{
    const sn_weights_key key = some_key();
    file[at] ^= (uint8_t)(1u << bit);
    const bool taken = sn_weights_check(file, FILE_BYTES, &key, STORE, pool);
    file[at] ^= (uint8_t)(1u << bit);
    return !taken;
}

TEST(every_changed_bit_of_head_store_and_checksums_is_seen)
{
    sonde_error err;
    sn_allocator alloc;
    sn_pool *pool = NULL;
    sn_allocator_init_system(&alloc);
    CHECK_OK(sn_pool_create(&pool, 2, &alloc, &err));
    const sn_weights_key key = some_key();
    uint8_t *file = sealed(&key, pool);
    CHECK(sn_weights_check(file, FILE_BYTES, &key, STORE, pool));
    for (size_t bit = 0; bit < HEAD * 8; bit++)
        CHECK_MSG(sees(file, bit / 8, bit % 8, pool), "bit %zu of the head", bit);
    for (size_t bit = 0; bit < (size_t)3 * 8 * 8; bit++)
        CHECK_MSG(sees(file, SN_WEIGHTS_HEAD_BYTES + STORE + bit / 8, bit % 8, pool),
                  "bit %zu of the checksums", bit);
    static const size_t edges[] = {0, (1 << 20) - 1, 1 << 20, (2 << 20) - 1, 2 << 20, STORE - 1};
    for (size_t i = 0; i < 40; i++) {
        const size_t at = i < 6 ? edges[i] : test_rand() % STORE;
        CHECK_MSG(sees(file, SN_WEIGHTS_HEAD_BYTES + at, i % 8, pool), "byte %zu of the store", at);
    }
    CHECK(sn_weights_check(file, FILE_BYTES, &key, STORE, pool));
    sn_pool_free(pool);
}

TEST(parts_that_changed_places_are_seen)
{
    const sn_weights_key key = some_key();
    uint8_t *file = sealed(&key, NULL), *store = file + SN_WEIGHTS_HEAD_BYTES;
    uint8_t *sums = store + STORE;
    store[0] ^= 1; /* the first two parts are alike otherwise */
    sn_weights_seal(file, &key, STORE, NULL);
    for (size_t i = 0; i < 1 << 20; i++) {
        const uint8_t x = store[i];
        store[i] = store[i + (1 << 20)];
        store[i + (1 << 20)] = x;
    }
    CHECK(!sn_weights_check(file, FILE_BYTES, &key, STORE, NULL));
    uint8_t first[8];
    memcpy(first, sums, 8);
    memcpy(sums, sums + 8, 8);
    memcpy(sums + 8, first, 8);
    CHECK(!sn_weights_check(file, FILE_BYTES, &key, STORE, NULL));
}

TEST(keys_tell_contents_apart)
{
    sn_weights_key a = some_key(), b = some_key();
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    sn_weights_key_add(&a, "ab", 2);
    sn_weights_key_add(&b, "a", 1);
    sn_weights_key_add(&b, "b", 1);
    CHECK(a.part[0] != b.part[0] && a.part[1] != b.part[1]);
}

TEST(what_was_saved_is_found_and_mapped)
{
    sonde_error err = {0};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    char dir[TEMP_PATH], inner[TEMP_PATH + 8];
    temp_make(dir);
    snprintf(inner, sizeof inner, "%s/made", dir);
    const sn_weights_key key = some_key();
    sn_cache cache;
    CHECK_OK(sn_cache_open(&cache, inner, true, &err));
    sn_buffer *found = NULL;
    CHECK_EQ(sn_weights_cache_find(&cache, &key, STORE, NULL, &alloc, &found, &err),
             SONDE_NOT_FOUND);
    sn_buffer *whole = sn_buffer_new(&alloc, FILE_BYTES);
    memset(whole->data, 7, whole->bytes);
    CHECK_OK(sn_weights_cache_save(&cache, &key, whole, STORE, NULL, &err));
    CHECK_OK(sn_weights_cache_find(&cache, &key, STORE, NULL, &alloc, &found, &err));
    CHECK_EQ(found->bytes, whole->bytes);
    CHECK(memcmp(found->data, whole->data, whole->bytes) == 0);
    sn_buffer_unref(found);
    CHECK_EQ(sn_weights_cache_find(&cache, &key, STORE + 1, NULL, &alloc, &found, &err), SONDE_IO);
    CHECK_HAS(err.message, "checksum");
    CHECK_HAS(err.message, inner);
    sn_buffer_unref(whole);
    sn_cache_close(&cache);
    CHECK_EQ(atomic_load(&alloc.live_bytes), 0);
    CHECK(temp_remove(dir));
}

TEST_MAIN()
