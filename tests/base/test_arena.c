/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: zeroed, aligned, disjoint objects; refusal without damage; reuse after a reset. */
#include "base/arena.h"
#include "test.h"

TEST(objects_are_zeroed_aligned_and_apart)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_arena a;
    sn_arena_init(&a, &alloc);
    enum { N = 3000 };
    static unsigned char *at[N];
    static size_t size[N];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            size_t align = (size_t)1 << (test_rand() % 7);
            size[i] = test_rand() % 300 + (i % 500 == 0 ? 100000 : 0);
            at[i] = sn_arena_alloc(&a, size[i], align);
            CHECK(at[i] != NULL);
            CHECK((uintptr_t)at[i] % align == 0);
            for (size_t k = 0; k < size[i]; k++)
                CHECK_EQ(at[i][k], 0);
            memset(at[i], i % 255 + 1, size[i]);
        }
        for (int i = 0; i < N; i++)
            for (size_t k = 0; k < size[i]; k++)
                CHECK(at[i][k] == i % 255 + 1);
        sn_arena_reset(&a); /* the second round gets dirty memory, which must come back zeroed */
        CHECK_EQ(a.used_bytes, 0);
    }
    sn_arena_free(&a);
    CHECK_EQ(alloc.live_bytes, 0);
    CHECK(SN_NEW(&a, int) != NULL);
    sn_arena_free(&a);
}

TEST(overflowing_and_oversized_requests_give_null)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    alloc.limit_bytes = 1 << 20;
    sn_arena a;
    sn_arena_init(&a, &alloc);
    CHECK(SN_NEW_N(&a, uint64_t, SIZE_MAX / 4) == NULL);
    CHECK(sn_arena_alloc(&a, SIZE_MAX, 1) == NULL);
    CHECK(sn_arena_alloc(&a, SIZE_MAX - 100, 64) == NULL);
    CHECK(sn_arena_alloc(&a, 2 << 20, 8) == NULL);
    CHECK(sn_arena_alloc(&a, 8, 128) == NULL);
    CHECK(sn_arena_strndup(&a, "x", SIZE_MAX) == NULL);
    CHECK(SN_NEW(&a, int) != NULL);
    sn_arena_free(&a);
}

TEST(blocks_grow_so_that_a_million_small_objects_take_few)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_arena a;
    sn_arena_init(&a, &alloc);
    for (int i = 0; i < 1000000; i++)
        CHECK(sn_arena_alloc(&a, 24, 8) != NULL);
    CHECK(alloc.live_bytes < (24u + SN_ARENA_GAP_BYTES) * 1000000u + (2u << 20));
    sn_arena_free(&a);
}

TEST(strings_are_copied_and_formatted)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_arena a;
    sn_arena_init(&a, &alloc);
    char text[] = "hello";
    char *copy = sn_arena_strdup(&a, text);
    text[0] = 'J';
    CHECK_STR(copy, "hello");
    CHECK_STR(sn_arena_strndup(&a, "abcdef", 3), "abc");
    CHECK_STR(sn_arena_strndup(&a, NULL, 0), "");
    CHECK_STR(sn_arena_printf(&a, "%d-%s", 42, "x"), "42-x");
    CHECK_EQ(strlen(sn_arena_printf(&a, "%*d", 20000, 1)), 20000);
    sn_arena_free(&a);
}

TEST_MAIN()
