/* SPDX-License-Identifier: Apache-2.0 */
/* The measured peaks are figures a machine can have, and memory that is not there is no failure. */
#include "test.h"

#include "compute/peaks.h"

static void check_plausible(const sn_peaks *p, int threads, uint32_t flags)
{
    CHECK(p->threads == threads);
    for (int a = 0; a < SN_ARITH_COUNT; a++) {
        const bool there = *sn_peaks_instructions((sn_arithmetic)a, flags);
        const char *name = sn_arithmetic_name((sn_arithmetic)a);
        CHECK_MSG(there == (p->gops[a] > 0), "%s: %g", name, p->gops[a]);
        CHECK_MSG(p->gops[a] >= 0 && p->gops[a] < 1e7, "%s: %g", name, p->gops[a]);
    }
    CHECK_MSG(p->l2_gbps > 0 && p->l2_gbps < 1e6, "%g", p->l2_gbps);
    CHECK_MSG(p->l3_gbps > 0 && p->l3_gbps < 1e6, "%g", p->l3_gbps);
    CHECK_MSG(p->memory_gbps >= 0 && p->memory_gbps < 1e6, "%g", p->memory_gbps);
}

static sonde_status measure(const sn_cpu *cpu, size_t limit, sn_peaks *one, sn_peaks *all)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    if (sn_pool_create(&pool, 2, &alloc, NULL) != SONDE_OK)
        return SONDE_INTERNAL;
    alloc.limit_bytes = limit ? alloc.live_bytes + limit : 0;
    sonde_error err;
    const sonde_status st = sn_peaks_measure(cpu, pool, &alloc, one, all, &err);
    sn_pool_free(pool);
    return alloc.live_bytes == 0 ? st : SONDE_INTERNAL;
}

TEST(peaks_of_one_and_of_all_threads_are_measured)
{
    sn_cpu cpu;
    sn_peaks one, all;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    (void)sn_cpu_request(&cpu);
    cpu.l3_bytes = (size_t)8 << 20; /* a small machine's: the test shall be short */
    CHECK(measure(&cpu, 0, &one, &all) == SONDE_OK);
    check_plausible(&one, 1, cpu.flags);
    check_plausible(&all, 2, cpu.flags);
    CHECK(one.memory_gbps > 0);
    printf("%.1f and %.1f GFLOP/s; reading %.1f, %.1f and %.1f GB/s\n", one.gops[SN_ARITH_F32],
           all.gops[SN_ARITH_F32], one.l2_gbps, one.l3_gbps, one.memory_gbps);
}

TEST(what_memory_does_not_allow_is_left_out)
{
    sn_cpu cpu;
    sn_peaks one, all;
    CHECK(sn_cpu_detect(&cpu, "baseline", NULL) == SONDE_OK);
    CHECK(measure(&cpu, (size_t)4 << 20, &one, &all) == SONDE_OK);
    check_plausible(&one, 1, cpu.flags);
    for (int a = 0; a < SN_ARITH_COUNT; a++) /* plain C has no instructions for other types */
        CHECK((one.gops[a] > 0) == (a == SN_ARITH_F32));
    if (cpu.l3_bytes >= (size_t)4 << 20)
        CHECK(one.memory_gbps == 0);
    CHECK(measure(&cpu, 1000, &one, &all) == SONDE_OUT_OF_MEMORY);
}

TEST_MAIN()
