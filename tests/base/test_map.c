/* SPDX-License-Identifier: Apache-2.0 */
/* The map: finds what was put, replaces, grows, survives refusals; the hash spreads. */
#include "base/map.h"
#include "test.h"

TEST(a_hundred_thousand_names_are_found_again)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_map m;
    sn_map_init(&m, &alloc);
    enum { N = 100000 };
    static char keys[N][24];
    CHECK(sn_map_get(&m, "absent") == NULL);
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "node_%d", i);
        CHECK(sn_map_put(&m, keys[i], keys[i], NULL));
    }
    CHECK_EQ(m.n, N);
    for (int i = 0; i < N; i++)
        CHECK(sn_map_get(&m, keys[i]) == keys[i]);
    CHECK(sn_map_get(&m, "node_100000") == NULL);
    sn_map_free(&m);
    CHECK_EQ(alloc.live_bytes, 0);
    CHECK(sn_map_get(&m, "node_1") == NULL);
    CHECK(sn_map_put(&m, "again", keys, NULL));
    sn_map_free(&m);
}

TEST(putting_twice_replaces_and_tells_the_old_value)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_map m;
    sn_map_init(&m, &alloc);
    int one, two;
    void *old = &one;
    CHECK(sn_map_put(&m, "k", &one, &old) && old == NULL);
    CHECK(sn_map_put(&m, "k", &two, &old) && old == &one);
    CHECK(sn_map_get(&m, "k") == &two);
    CHECK_EQ(m.n, 1);
    sn_map_free(&m);
}

TEST(keys_are_bytes_with_a_length)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_map m;
    sn_map_init(&m, &alloc);
    int v[4];
    CHECK(sn_map_put_n(&m, "a\0b", 3, &v[0], NULL));
    CHECK(sn_map_put_n(&m, "a\0", 2, &v[1], NULL));
    CHECK(sn_map_put_n(&m, "a", 1, &v[2], NULL));
    CHECK(sn_map_put_n(&m, NULL, 0, &v[3], NULL));
    CHECK(sn_map_get_n(&m, "a\0b", 3) == &v[0]);
    CHECK(sn_map_get_n(&m, "a\0", 2) == &v[1]);
    CHECK(sn_map_get(&m, "a") == &v[2]);
    CHECK(sn_map_get(&m, "") == &v[3]);
    CHECK_EQ(m.n, 4);
    sn_map_free(&m);
}

/* What the objects contain does not count, nor does it when it changes. */
TEST(keys_by_address_are_the_objects_themselves)
{
    enum { N = 100 };
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_map m;
    sn_map_init(&m, &alloc);
    static const int objects[N + 1]; /* all alike */
    for (int i = 0; i < N; i++) {
        const int *variable = &objects[i]; /* not needed any more after the round */
        CHECK(!sn_map_get_address(&m, variable));
        CHECK(sn_map_put_address(&m, variable, (void *)(uintptr_t)(i + 1), NULL));
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ((uintptr_t)sn_map_get_address(&m, &objects[i]), i + 1);
    CHECK(!sn_map_get_address(&m, &objects[N]));
    CHECK(!sn_map_get_n(&m, &objects[0], sizeof objects[0])); /* its contents are another key */
    void *old = NULL;
    CHECK(sn_map_put_address(&m, &objects[7], &m, &old) && (uintptr_t)old == 8);
    CHECK_EQ(m.n, N);
    sn_map_free(&m);
}

TEST(a_refused_growth_keeps_what_is_there)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    alloc.limit_bytes = 4000;
    sn_map m;
    sn_map_init(&m, &alloc);
    static char keys[1000][16];
    int n = 0;
    for (; n < 1000; n++) {
        snprintf(keys[n], sizeof keys[n], "%d", n);
        if (!sn_map_put(&m, keys[n], keys[n], NULL))
            break;
    }
    CHECK(n > 0 && n < 1000);
    for (int i = 0; i < n; i++)
        CHECK(sn_map_get(&m, keys[i]) == keys[i]);
    CHECK(sn_map_get(&m, keys[n]) == NULL);
    CHECK(sn_map_put(&m, keys[0], keys[1], NULL)); /* replacing needs no memory */
    sn_map_free(&m);
    CHECK_EQ(alloc.live_bytes, 0);
}

TEST(every_bit_of_key_and_seed_matters_and_lengths_differ)
{
    unsigned char key[40];
    for (size_t bytes = 0; bytes <= sizeof key; bytes++) {
        for (size_t i = 0; i < sizeof key; i++)
            key[i] = (unsigned char)test_rand();
        uint64_t h = sn_hash(key, bytes, 1);
        CHECK(sn_hash(key, bytes, 2) != h);
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            key[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            uint64_t other = sn_hash(key, bytes, 1);
            int changed = __builtin_popcountll(h ^ other);
            CHECK_MSG(changed >= 8 && changed <= 56, "bit %zu of %zu bytes changes %d bits", bit,
                      bytes, changed);
            key[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        }
    }
    memset(key, 0, sizeof key);
    for (size_t a = 0; a < sizeof key; a++)
        for (size_t b = 0; b < a; b++)
            CHECK(sn_hash(key, a, 3) != sn_hash(key, b, 3));
}

TEST(two_maps_have_seeds_of_their_own)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_map a, b;
    sn_map_init(&a, &alloc);
    sn_map_init(&b, &alloc);
    CHECK(a.seed != b.seed);
}

TEST_MAIN()
