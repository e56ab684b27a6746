/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine allows, how it is restricted, and how cgroup quotas are found. */
#include "base/cpu.h"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amx.h"
#include "temp_folder.h"
#include "test.h"

TEST(detection_gives_sane_facts)
{
    sn_cpu cpu;
    sonde_error err = {0};
    CHECK_OK(sn_cpu_detect(&cpu, NULL, &err));
    CHECK_EQ(cpu.flags, cpu.found);
    CHECK(cpu.model[0] != '\0');
    CHECK(cpu.cores >= 1 && cpu.usable_cores >= 1);
    CHECK(cpu.l1_bytes >= 4096 && cpu.l2_bytes >= cpu.l1_bytes && cpu.l3_bytes > 0);
#if defined(__x86_64__)
    CHECK_EQ(cpu.found & (SN_CPU_NEON | SN_CPU_DOTPROD | SN_CPU_I8MM | SN_CPU_ARMBF16), 0);
    CHECK_EQ((cpu.found & SN_CPU_AVX2) != 0,
             __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#else
    CHECK(cpu.found & SN_CPU_NEON);
#endif
}

TEST(every_level_found_can_be_asked_for_and_excludes_those_above)
{
    sn_cpu all, cpu;
    sonde_error err = {0};
    CHECK_OK(sn_cpu_detect(&all, NULL, &err));
    CHECK_OK(sn_cpu_detect(&cpu, "baseline", &err));
    CHECK_EQ(cpu.flags, 0);
    CHECK_EQ(cpu.found, all.found);
    CHECK_STR(sn_cpu_level_name(cpu.flags), "baseline");
    const char *with_kernels = "baseline";
#define SN_INSTRUCTION_SET(name, bit, text, architecture, used, ...)                               \
    if (all.found & SN_CPU_##name) {                                                               \
        CHECK_OK(sn_cpu_detect(&cpu, text, &err));                                                 \
        if (SN_CPU_##name & SN_CPU_WITH_KERNELS)                                                   \
            with_kernels = text;                                                                   \
        CHECK_STR(sn_cpu_level_name(cpu.flags), with_kernels);                                     \
        CHECK_EQ(cpu.flags, all.found &((2u << bit) - 1));                                         \
    } else {                                                                                       \
        CHECK(sn_cpu_detect(&cpu, text, &err) != SONDE_OK);                                        \
        CHECK_HAS(err.message, text);                                                              \
        CHECK_HAS(err.message, "baseline");                                                        \
    }
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
}

TEST(an_unknown_level_lists_the_words_accepted_here)
{
    sn_cpu cpu;
    sonde_error err = {0};
    CHECK_EQ(sn_cpu_detect(&cpu, "mmx", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'mmx'");
    CHECK_HAS(err.message, "baseline");
    CHECK_EQ(sn_cpu_detect(&cpu, "", NULL), SONDE_INVALID_ARGUMENT);
}

TEST(a_level_without_kernels_is_listed_but_not_said_to_be_used)
{
    char text[128], unused[128] = "";
    uint32_t all = 0, flags = SN_CPU_NEON | SN_CPU_DOTPROD | SN_CPU_I8MM;
    CHECK_STR(sn_cpu_level_name(flags), "i8mm");
    CHECK_STR(sn_cpu_level_name(SN_CPU_AVX2 | SN_CPU_AVXVNNI), "avxvnni");
    sn_cpu_level_list(flags, text, sizeof text);
    CHECK_STR(text, "baseline, neon, dotprod, i8mm");
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...)                               \
    all |= SN_CPU_##name;                                                                          \
    if (!(used))                                                                                   \
        snprintf(unused + strlen(unused), sizeof unused - strlen(unused), "%s%s",                  \
                 *unused ? ", " : "", word);
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
    sn_cpu_unused_list(all, text, sizeof text);
    CHECK_STR(text, unused);
    sn_cpu_unused_list(SN_CPU_AVX2, text, sizeof text);
    CHECK_STR(text, "");
}

TEST(detection_asks_for_no_permission)
{
    sn_cpu cpu;
    sonde_error err = {0};
    const int before = amx_permission();
    if (before < 0)
        SKIP_TEST("this machine has no AMX, or its kernel does not say who may use it");
    CHECK_OK(sn_cpu_detect(&cpu, NULL, &err));
    CHECK_EQ(before, 0);
    CHECK_EQ(amx_permission(), 0);
}

/* A permission stays with its process, so each of these checks is a child's. It returns whether all
 * is well, and says what is not. */
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static int in_child(bool (*check)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(!check());
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* A processor with kernels for AMX. */
static sn_cpu with_amx_kernels(void)
{
    sn_cpu cpu;
    (void)sn_cpu_detect(&cpu, NULL, NULL);
    cpu.on_request = SN_CPU_AMX;
    return cpu;
}

static bool ask(void)
{
    sn_cpu cpu = with_amx_kernels(), none = cpu;
    none.on_request = 0;
    EXPECT(sn_cpu_request(&none) && amx_permission() == 0);
    none = cpu;
    none.flags = SN_CPU_AVX2;
    EXPECT(sn_cpu_request(&none) && amx_permission() == 0);
    EXPECT(sn_cpu_request(&cpu) && amx_permission() == 1);
    EXPECT(cpu.flags == cpu.found);
    EXPECT(sn_cpu_request(&cpu) && sn_cpu_request_amx());
    return true;
}

static bool ask_with_a_small_signal_stack(void)
{
    static uint8_t memory[4096]; /* a frame with the registers of AMX takes more than 8 KiB */
    const stack_t small = {.ss_sp = memory, .ss_size = sizeof memory},
                  none = {.ss_flags = SS_DISABLE};
    sn_cpu cpu = with_amx_kernels();
    EXPECT(sigaltstack(&small, NULL) == 0);
    EXPECT(!sn_cpu_request(&cpu) && amx_permission() == 0);
    EXPECT(cpu.flags == (cpu.found & ~(uint32_t)SN_CPU_AMX));
    EXPECT(sn_cpu_request(&cpu)); /* nothing is left to ask for */
    EXPECT(sigaltstack(&none, NULL) == 0);
    EXPECT(!sn_cpu_request_amx()); /* the first answer stays */
    return true;
}

TEST(amx_is_asked_for_when_kernels_need_it)
{
    if (amx_permission() < 0)
        SKIP_TEST("this machine has no AMX, or its kernel does not say who may use it");
    CHECK_EQ(in_child(ask), 0);
}

TEST(a_process_with_a_small_signal_stack_does_without_amx)
{
    if (amx_permission() < 0)
        SKIP_TEST("this machine has no AMX, or its kernel does not say who may use it");
    CHECK_EQ(in_child(ask_with_a_small_signal_stack), 0);
}

static int refused;

static bool refuse(void)
{
    refused++;
    return false;
}

TEST(what_is_refused_is_not_used)
{
    sn_cpu cpu = {.flags = SN_CPU_AVX512 | SN_CPU_AMX, .on_request = SN_CPU_AMX, .request = refuse};
    CHECK(!sn_cpu_request(&cpu));
    CHECK_EQ(cpu.flags, SN_CPU_AVX512);
    CHECK(sn_cpu_request(&cpu));
    CHECK_EQ(refused, 1);
}

TEST(usable_cores_follow_affinity)
{
    cpu_set_t was, one;
    CHECK(sched_getaffinity(0, sizeof was, &was) == 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &was))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        SKIP_TEST("the affinity may not be changed here");
    int cores = sn_cpu_usable_cores(NULL);
    CHECK(sched_setaffinity(0, sizeof was, &was) == 0);
    CHECK_EQ(cores, 1);
    CHECK(sn_cpu_usable_cores(NULL) <= CPU_COUNT(&was));
}

static char root[TEMP_PATH];

/* Writes root + path, making its folders. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void new_root(void)
{
    temp_make(root);
}

static void drop_root(void)
{
    if (!temp_remove(root))
        fprintf(stderr, "cannot remove %s\n", root);
}

TEST(the_tightest_v2_quota_on_the_way_up_counts)
{
    new_root();
    put("/proc/self/cgroup", "0::/outer/inner/leaf\n");
    put("/sys/fs/cgroup/outer/inner/leaf/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
    double quota = sn_cpu_quota(root);
    drop_root();
    CHECK_MSG(quota == 2.5, "%g", quota);
}

TEST(a_v1_quota_is_found_where_the_group_is_invisible)
{
    new_root();
    put("/proc/self/cgroup", "5:memory:/x\n4:cpuset:/x\n3:cpu,cpuacct:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    double quota = sn_cpu_quota(root);
    drop_root();
    CHECK_MSG(quota == 1.5, "%g", quota);
}

TEST(the_tightest_limit_of_memory_counts)
{
    new_root();
    put("/proc/self/cgroup", "0::/outer/leaf\n");
    put("/sys/fs/cgroup/outer/leaf/memory.max", "max\n");
    put("/sys/fs/cgroup/outer/memory.max", "1073741824\n");
    double v2 = sn_memory_quota(root);
    put("/proc/self/cgroup", "7:cpu:/a\n5:memory:/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    double none = sn_memory_quota(root);
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "536870912\n");
    double v1 = sn_memory_quota(root);
    drop_root();
    CHECK_MSG(v2 == 1073741824, "%g", v2);
    CHECK_MSG(none == 0, "%g", none);
    CHECK_MSG(v1 == 536870912, "%g", v1);
    CHECK(sn_usable_memory() > 1e6);
}

TEST(no_quota_and_nonsense_are_no_quota)
{
    new_root();
    CHECK(sn_cpu_quota(root) == 0);
    put("/proc/self/cgroup", "garbage\n1:cpu:/a\n0::/b\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/b/cpu.max", "what 0\n");
    double quota = sn_cpu_quota(root);
    drop_root();
    CHECK_MSG(quota == 0, "%g", quota);
}

TEST_MAIN()
