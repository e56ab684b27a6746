/* SPDX-License-Identifier: Apache-2.0 */
/* Counters count, or a sentence says why not; what the system counts is always there. */
#include "test.h"

#include "base/counters.h"
#include "base/pool.h"

static void spin(void *arg, size_t task, int worker)
{
    (void)worker;
    volatile uint64_t x = task;
    for (int i = 0; i < 1000000; i++)
        x = x * 3 + 1;
    atomic_fetch_add((_Atomic int *)arg, 1);
}

TEST(work_of_every_thread_is_counted_or_a_sentence_says_why_not)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_counters *c = NULL;
    sonde_error err = {.status = SONDE_OK};
    const sonde_status st = sn_counters_open(&c, &alloc, &err);
    if (st != SONDE_OK) {
        CHECK_EQ(st, SONDE_UNSUPPORTED);
        CHECK(c == NULL && alloc.live_bytes == 0);
        CHECK_HAS(err.message, "hardware counters");
        SKIP_TEST("not counted here: %s", err.message);
    }
    uint64_t before[SN_HW_COUNT], after[SN_HW_COUNT];
    _Atomic int done = 0;
    sn_pool *pool = NULL;
    CHECK_OK(sn_pool_create(&pool, 2, &alloc, &err));
    sn_counters_read(c, before);
    sn_pool_run(pool, 4, spin, &done);
    sn_counters_read(c, after);
    /* 4 million rounds of a few instructions each, on threads that began after the counters. */
    CHECK(after[SN_HW_INSTRUCTIONS] - before[SN_HW_INSTRUCTIONS] > 8000000);
    CHECK(after[SN_HW_CYCLES] > before[SN_HW_CYCLES]);
    CHECK(sn_counters_read_ns(c) > 0);
    sn_pool_free(pool);
    sn_counters_close(c);
    CHECK(alloc.live_bytes == 0);
}

TEST(out_of_memory_is_told)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    alloc.limit_bytes = 8;
    sn_counters *c = NULL;
    CHECK_EQ(sn_counters_open(&c, &alloc, NULL), SONDE_OUT_OF_MEMORY);
    sn_counters_close(NULL);
}

TEST(the_system_counts_time_and_page_faults)
{
    const sn_usage then = sn_usage_now();
    _Atomic int done = 0;
    spin(&done, 1, 0);
    const size_t bytes = (size_t)8 << 20;
    char *pages = malloc(bytes);
    CHECK(pages != NULL);
    for (size_t i = 0; i < bytes; i += 4096)
        *(volatile char *)(pages + i) = 1;
    const sn_usage used = sn_usage_since(&then);
    free(pages);
    CHECK(used.minor_faults > 0);
    CHECK(sn_usage_now().cpu_ns >= then.cpu_ns);
}

TEST_MAIN()
