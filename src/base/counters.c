/* SPDX-License-Identifier: Apache-2.0 */
/* One event per counter and thread that exists when counting begins, each inherited by threads made
 * later: a read gives the sum over a thread and its descendants. Groups would be read in one call
 * but cannot be inherited on the kernels people run. Only user code is counted, which the default
 * setting of perf_event_paranoid allows. */
#include "base/counters.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

struct sn_counters {
    sn_allocator *alloc;
    SN_VEC(int) files; /* SN_HW_COUNT per thread; -1: not there */
    double read_ns;
};

static int open_event(sn_hw which, pid_t thread)
{
    static const uint64_t configs[SN_HW_COUNT] = {
        [SN_HW_CYCLES] = PERF_COUNT_HW_CPU_CYCLES,
        [SN_HW_INSTRUCTIONS] = PERF_COUNT_HW_INSTRUCTIONS,
        [SN_HW_CACHE_MISSES] = PERF_COUNT_HW_CACHE_MISSES,
        [SN_HW_BRANCH_MISSES] = PERF_COUNT_HW_BRANCH_MISSES,
    };
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = configs[which],
                                   .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                  PERF_FORMAT_TOTAL_TIME_RUNNING,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int paranoid(void)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int level = 0;
    if (f && fscanf(f, "%d", &level) != 1)
        level = 0;
    if (f)
        fclose(f);
    return level;
}

static sonde_status refused(int why, sonde_error *err)
{
    switch (why) {
    case EACCES:
    case EPERM:
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "hardware counters are not allowed (kernel.perf_event_paranoid is %d): run "
                       "'sysctl kernel.perf_event_paranoid=2' or add the capability CAP_PERFMON; a "
                       "container may also forbid perf_event_open",
                       paranoid());
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "this machine has no hardware counters; a virtual machine has them only if "
                       "its host provides the PMU");
    case ENOSYS:
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "hardware counters are not available: this kernel has no perf_event_open, "
                       "or a sandbox blocks it");
    default:
        return sn_fail(err, SONDE_UNSUPPORTED, "cannot open hardware counters: %s", strerror(why));
    }
}

/* A thread that ended meanwhile is no failure. */
static sonde_status open_thread(sn_counters *c, pid_t thread, sonde_error *err)
{
    if (!sn_vec_reserve(&c->files, c->alloc, SN_HW_COUNT))
        return sn_fail_memory(err, SN_HW_COUNT * sizeof(int));
    for (int which = 0; which < SN_HW_COUNT; which++) {
        const int file = open_event((sn_hw)which, thread), why = errno;
        c->files.data[c->files.n++] = file;
        if (file < 0 && which <= SN_HW_INSTRUCTIONS && why != ESRCH)
            return refused(why, err);
    }
    return SONDE_OK;
}

static sonde_status open_threads(sn_counters *c, sonde_error *err)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return open_thread(c, 0, err);
    sonde_status st = SONDE_OK;
    const struct dirent *entry;
    while (!st && (entry = readdir(tasks)))
        if (entry->d_name[0] != '.')
            st = open_thread(c, (pid_t)strtol(entry->d_name, NULL, 10), err);
    closedir(tasks);
    return st;
}

static void measure_cost(sn_counters *c)
{
    enum { READS = 32 };
    uint64_t values[SN_HW_COUNT];
    sn_counters_read(c, values);
    const uint64_t start = sn_now_ns();
    for (int i = 0; i < READS; i++)
        sn_counters_read(c, values);
    c->read_ns = (double)(sn_now_ns() - start) / (double)READS;
}

sonde_status sn_counters_open(sn_counters **counters, sn_allocator *alloc, sonde_error *err)
{
    *counters = NULL;
    sn_counters *c = sn_alloc_zero(alloc, sizeof *c);
    if (!c)
        return sn_fail_memory(err, sizeof *c);
    c->alloc = alloc;
    const sonde_status st = open_threads(c, err);
    if (st != SONDE_OK) {
        sn_counters_close(c);
        return st;
    }
    measure_cost(c);
    *counters = c;
    return SONDE_OK;
}

void sn_counters_close(sn_counters *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->files.n; i++)
        if (c->files.data[i] >= 0)
            close(c->files.data[i]);
    sn_vec_free(&c->files, c->alloc);
    sn_free(c->alloc, c, sizeof *c);
}

void sn_counters_read(const sn_counters *c, uint64_t values[SN_HW_COUNT])
{
    memset(values, 0, SN_HW_COUNT * sizeof *values);
    for (size_t i = 0; i < c->files.n; i++) {
        struct {
            uint64_t value, enabled, running;
        } got;
        if (c->files.data[i] < 0 || read(c->files.data[i], &got, sizeof got) != sizeof got)
            continue;
        /* More events than counters take turns: scaled to the whole time. */
        if (got.running > 0 && got.running < got.enabled)
            got.value = (uint64_t)((double)got.value * ((double)got.enabled / (double)got.running));
        values[i % SN_HW_COUNT] += got.value;
    }
}

double sn_counters_read_ns(const sn_counters *c)
{
    return c->read_ns;
}

static uint64_t time_ns(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

sn_usage sn_usage_now(void)
{
    struct rusage r;
    if (getrusage(RUSAGE_SELF, &r) != 0)
        return (sn_usage){.cpu_ns = 0};
    return (sn_usage){.cpu_ns = time_ns(&r.ru_utime) + time_ns(&r.ru_stime),
                      .minor_faults = (uint64_t)r.ru_minflt,
                      .major_faults = (uint64_t)r.ru_majflt,
                      .voluntary = (uint64_t)r.ru_nvcsw,
                      .involuntary = (uint64_t)r.ru_nivcsw};
}

sn_usage sn_usage_since(const sn_usage *then)
{
    const sn_usage now = sn_usage_now();
    return (sn_usage){.cpu_ns = now.cpu_ns - then->cpu_ns,
                      .minor_faults = now.minor_faults - then->minor_faults,
                      .major_faults = now.major_faults - then->major_faults,
                      .voluntary = now.voluntary - then->voluntary,
                      .involuntary = now.involuntary - then->involuntary};
}
