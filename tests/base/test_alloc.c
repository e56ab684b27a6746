/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: alignment, counting, the limit, and what a refusal leaves behind. */
#include "base/alloc.h"
#include "base/vec.h"
#include "test.h"

TEST(blocks_of_every_size_are_aligned_and_writable)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    size_t sizes[] = {0, 1, 63, 64, 65, 4096, (2u << 20) - 1, 2u << 20, (5u << 20) + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = sn_alloc(&a, sizes[i]);
        CHECK(p != NULL);
        CHECK((uintptr_t)p % SN_ALIGN == 0);
        memset(p, 0xAB, sizes[i]);
        sn_free(&a, p, sizes[i]);
    }
    CHECK_EQ(a.live_bytes, 0);
    CHECK_EQ(a.peak_bytes, (5u << 20) + 3);
}

TEST(kept_blocks_count_what_was_asked_for_and_end_in_a_huge_page)
{
    enum { HUGE_PAGE = 2 << 20 };
    sn_allocator a;
    sn_allocator_init_system(&a);
    const size_t sizes[] = {0, 4096, 128 << 10, 360 << 10, HUGE_PAGE + 4096, 3 * HUGE_PAGE - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = sn_alloc_kept(&a, sizes[i]);
        CHECK(p != NULL);
        CHECK((uintptr_t)p % SN_ALIGN == 0);
        CHECK_EQ(a.live_bytes, sizes[i] ? sizes[i] : 1);
        memset(p, 0xAB, sizes[i]);
        sn_free(&a, p, sizes[i]);
#ifdef __linux__
        CHECK(sizes[i] < 128 << 10 || (uintptr_t)p % HUGE_PAGE == 0);
#endif
    }
    CHECK(sn_alloc_kept(&a, SIZE_MAX) == NULL);
    CHECK(sn_alloc_kept(&a, PTRDIFF_MAX) == NULL);
    a.limit_bytes = 200 << 10; /* of what is asked for, not of what is left of a page */
    void *p = sn_alloc_kept(&a, 199 << 10);
    CHECK(p && !sn_alloc_kept(&a, 2 << 10));
    sn_free(&a, p, 199 << 10);
    CHECK_EQ(a.live_bytes, 0);
}

TEST(zero_bytes_give_pointers_of_their_own)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    void *p = sn_alloc(&a, 0), *q = sn_alloc(&a, 0);
    CHECK(p && q && p != q);
    sn_free(&a, p, 0);
    sn_free(&a, q, 0);
    sn_free(&a, NULL, 100);
    CHECK_EQ(a.live_bytes, 0);
}

TEST(the_limit_refuses_and_counts_nothing)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    a.limit_bytes = 1000;
    void *p = sn_alloc(&a, 600);
    CHECK(p != NULL);
    CHECK(sn_alloc(&a, 401) == NULL);
    CHECK(sn_alloc(&a, SIZE_MAX) == NULL);
    CHECK_EQ(a.live_bytes, 600);
    sonde_error err;
    CHECK_EQ(sn_fail_memory(&err, 401), SONDE_OUT_OF_MEMORY);
    CHECK_STR(err.message, "cannot allocate 401 bytes: the memory limit is 1000 bytes "
                           "(max_memory, --max-memory)");
    CHECK(sn_alloc(&a, 401) == NULL);
    CHECK_EQ(sn_fail_memory(&err, 0), SONDE_OUT_OF_MEMORY);
    CHECK_STR(err.message, "there is not enough memory: the memory limit is 1000 bytes "
                           "(max_memory, --max-memory)");
    void *q = sn_alloc(&a, 400);
    CHECK(q != NULL);
    CHECK_EQ(a.peak_bytes, 1000);
    sn_free(&a, p, 600);
    sn_free(&a, q, 400);
}

TEST(absurd_sizes_fail_without_a_limit)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    CHECK(sn_alloc(&a, SIZE_MAX) == NULL);
    CHECK(sn_alloc(&a, (size_t)PTRDIFF_MAX + 1) == NULL);
    CHECK(sn_alloc_zero(&a, SIZE_MAX - 4096) == NULL);
    CHECK_EQ(a.live_bytes, 0);
}

TEST(realloc_keeps_the_content_and_a_failure_keeps_the_block)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    char *p = sn_realloc(&a, NULL, 0, 4);
    memcpy(p, "abc", 4);
    p = sn_realloc(&a, p, 4, 4000);
    CHECK_STR(p, "abc");
    CHECK(sn_realloc(&a, p, 4000, SIZE_MAX) == NULL);
    CHECK_STR(p, "abc");
    p = sn_realloc(&a, p, 4000, 2);
    CHECK_EQ(p[1], 'b');
    sn_free(&a, p, 2);
    CHECK_EQ(a.live_bytes, 0);
}

TEST(zeroed_blocks_are_zero)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    unsigned char *p = sn_alloc_zero(&a, 3u << 20);
    size_t sum = 0;
    for (size_t i = 0; i < 3u << 20; i++)
        sum += p[i];
    CHECK_EQ(sum, 0);
    sn_free(&a, p, 3u << 20);
}

TEST(checked_sizes_notice_overflow_and_leave_the_result_alone)
{
    size_t s = 7;
    int64_t i = 7;
    CHECK(!sn_size_mul(SIZE_MAX, 2, &s) && s == 7);
    CHECK(!sn_size_add(SIZE_MAX, 1, &s) && s == 7);
    CHECK(!sn_i64_mul(INT64_MIN, -1, &i) && i == 7);
    CHECK(!sn_i64_add(INT64_MAX, 1, &i) && i == 7);
    CHECK(sn_size_mul(3, 4, &s) && s == 12);
    CHECK(sn_i64_add(-3, 4, &i) && i == 1);
    CHECK_EQ(sn_round_up(65, 64), 128);
}

TEST(what_is_appended_follows_what_is_there)
{
    static const int some[] = {1, 2, 3};
    sn_allocator a;
    sn_allocator_init_system(&a);
    SN_VEC(int) v = {0};
    CHECK(sn_vec_append(&v, &a, NULL, 0));
    CHECK_EQ(v.n, 0);
    for (int i = 0; i < 10; i++)
        CHECK(sn_vec_append(&v, &a, some, 3));
    CHECK_EQ(v.n, 30);
    for (size_t i = 0; i < v.n; i++)
        CHECK_EQ(v.data[i], some[i % 3]);
    a.limit_bytes = a.live_bytes;
    CHECK(!sn_vec_append(&v, &a, some, v.cap - v.n + 1));
    CHECK_EQ(v.n, 30);
    sn_vec_free(&v, &a);
    CHECK_EQ(a.live_bytes, 0);
}

TEST(a_vector_grows_and_keeps_its_elements)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    SN_VEC(int) v = {0};
    for (int i = 0; i < 10000; i++)
        CHECK(sn_vec_push(&v, &a, i));
    CHECK_EQ(v.n, 10000);
    for (int i = 0; i < 10000; i++)
        CHECK_EQ(v.data[i], i);
    CHECK(sn_vec_reserve(&v, &a, 50000));
    CHECK(v.cap >= 60000);
    CHECK_EQ(v.data[9999], 9999);
    sn_vec_free(&v, &a);
    CHECK_EQ(a.live_bytes, 0);
}

TEST(a_vector_that_cannot_grow_stays_as_it_was)
{
    sn_allocator a;
    sn_allocator_init_system(&a);
    a.limit_bytes = 256;
    SN_VEC(uint64_t) v = {0};
    uint64_t pushed = 0;
    while (sn_vec_push(&v, &a, pushed))
        pushed++;
    CHECK_EQ(v.n, pushed);
    CHECK_EQ(v.data[pushed - 1], pushed - 1);
    CHECK(!sn_vec_reserve(&v, &a, SIZE_MAX / 16));
    sn_vec_free(&v, &a);
    CHECK_EQ(a.live_bytes, 0);
}

TEST_MAIN()
