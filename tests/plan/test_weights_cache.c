/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a file of packed weights: it is taken for exactly one key and size, and nothing that
 * was changed in it goes unseen. */
#include "plan/weights_cache.h"

#include <unistd.h>

#include "test.h"

enum { STORE = 1000 };

static sn_weights_key some_key(void)
{
    sn_weights_key k;
    sn_weights_key_begin(&k);
    sn_weights_key_add(&k, "weights", 7);
    return k;
}

TEST(a_head_is_taken_for_its_key_and_size_only)
{
    static uint8_t file[SN_WEIGHTS_HEAD_BYTES + STORE];
    const sn_weights_key key = some_key();
    sn_weights_key other = key;
    other.part[1]++;
    sn_weights_head_write(file, &key, STORE);
    CHECK(sn_weights_head_check(file, sizeof file, &key, STORE));
    CHECK(!sn_weights_head_check(file, sizeof file, &other, STORE));
    CHECK(!sn_weights_head_check(file, sizeof file, &key, STORE - 1));
    CHECK(!sn_weights_head_check(file, sizeof file - 1, &key, STORE));
    CHECK(!sn_weights_head_check(file, SN_WEIGHTS_HEAD_BYTES, &key, 0));
    for (size_t n = 0; n < 64; n++)
        CHECK(!sn_weights_head_check(file, n, &key, STORE));
}

TEST(every_changed_bit_of_a_head_is_seen)
{
    static uint8_t file[SN_WEIGHTS_HEAD_BYTES + STORE];
    const sn_weights_key key = some_key();
    sn_weights_head_write(file, &key, STORE);
    for (size_t bit = 0; bit < 40 * 8; bit++) {
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_MSG(!sn_weights_head_check(file, sizeof file, &key, STORE), "bit %zu", bit);
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(sn_weights_head_check(file, sizeof file, &key, STORE));
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
    char dir[] = "/tmp/sonde-weights-XXXXXX", inner[64], command[96];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(inner, sizeof inner, "%s/made", dir);
    const sn_weights_key key = some_key();
    CHECK(sn_weights_cache_find(inner, &key, STORE, &alloc) == NULL);
    sn_buffer *whole = sn_buffer_new(&alloc, SN_WEIGHTS_HEAD_BYTES + STORE);
    memset(whole->data, 7, whole->bytes);
    CHECK_OK(sn_weights_cache_save(inner, &key, whole, &err));
    sn_buffer *found = sn_weights_cache_find(inner, &key, STORE, &alloc);
    CHECK(found && found->bytes == whole->bytes);
    CHECK(memcmp(found->data, whole->data, whole->bytes) == 0);
    sn_buffer_unref(found);
    CHECK(sn_weights_cache_find(inner, &key, STORE + 1, &alloc) == NULL);
    sn_buffer_unref(whole);
    CHECK_EQ(atomic_load(&alloc.live_bytes), 0);
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK_EQ(system(command), 0);
}

TEST_MAIN()
