/* SPDX-License-Identifier: Apache-2.0 */
/* How many cores and how much memory this process may really use: the affinity mask and what the
 * machine has, cut by the tightest cgroup limit on the way to the root. A container that shows 64
 * processors and grants 2 of them is the usual case. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cpu.h"

enum { PATH_BYTES = 4096 };

/* One small file's first line; false when it cannot be read. */
static bool read_line(const char *path, char *line, int bytes)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(line, bytes, f) != NULL;
    fclose(f);
    return ok;
}

/* v2: "max 100000" or "150000 100000". */
static double quota_v2(const char *folder)
{
    char path[PATH_BYTES + 32], line[64];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lf %lf", &quota, &period) != 2)
        return 0;
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* v1: two files; a quota of -1 is none. */
static double quota_v1(const char *folder)
{
    char path[PATH_BYTES + 32], line[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line))
        return 0;
    double quota = strtod(line, NULL);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line))
        return 0;
    double period = strtod(line, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* A number of bytes in a file, v2 "max" and other words are none. */
static double bytes_in(const char *folder, const char *file)
{
    char path[PATH_BYTES + 32], line[64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return read_line(path, line, sizeof line) ? strtod(line, NULL) : 0;
}

static double memory_v2(const char *folder)
{
    return bytes_in(folder, "memory.max");
}

/* v1 without a limit says almost 2^63. */
static double memory_v1(const char *folder)
{
    const double bytes = bytes_in(folder, "memory.limit_in_bytes");
    return bytes < 4e18 ? bytes : 0;
}

static double tighter(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* The tightest quota of mount + group and of every folder above it, down to the mount itself. In a
 * container the group's own path is often invisible; its mount then shows the container's group. */
static double walk_up(const char *mount, const char *group, double (*quota)(const char *folder))
{
    char folder[PATH_BYTES];
    size_t mount_bytes = strlen(mount);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, group) >= sizeof folder)
        return 0;
    double least = 0;
    for (;;) {
        least = tighter(quota(folder), least);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < mount_bytes)
            return least;
        *slash = '\0';
    }
}

/* True when `name` is one of the comma-separated words. */
static bool lists(const char *words, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, ",");
        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len + (p[len] == ',');
    }
    return false;
}

/* What limits one thing: its controller's name, where v1 mounts it, how a group's limit is read. */
typedef struct limited {
    const char *controller, *mounts[2];
    double (*v2)(const char *folder), (*v1)(const char *folder);
} limited;

static double tightest(const char *root, const limited *what)
{
    char path[PATH_BYTES], line[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    double least = 0;
    while (fgets(line, sizeof line, f)) {
        /* "0::/path" is v2; "4:cpu,cpuacct:/path" is v1. */
        static const char *const v2_mounts[2] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = '\0';
        *group++ = '\0';
        const bool v2 = *controllers == '\0';
        const char *const *mounts = v2 ? v2_mounts : what->mounts;
        for (int i = 0; i < 2 && (v2 || lists(controllers, what->controller)); i++) {
            snprintf(path, sizeof path, "%s%s", root, mounts[i]);
            least = tighter(walk_up(path, group, v2 ? what->v2 : what->v1), least);
        }
    }
    fclose(f);
    return least;
}

double sn_cpu_quota(const char *root)
{
    static const limited cpu = {
        "cpu", {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}, quota_v2, quota_v1};
    return tightest(root, &cpu);
}

double sn_memory_quota(const char *root)
{
    static const limited memory = {
        "memory", {"/sys/fs/cgroup/memory", "/cgroup/memory"}, memory_v2, memory_v1};
    return tightest(root, &memory);
}

double sn_usable_memory(void)
{
    struct sysinfo info;
    const double quota = sn_memory_quota("");
    if (sysinfo(&info) != 0)
        return quota;
    const double all = ((double)info.totalram + (double)info.totalswap) * (double)info.mem_unit;
    return tighter(quota, all);
}

/* Cores in the affinity mask; the mask grows until the kernel's fits. 0 when it cannot be had. */
static int affinity_cores(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            return 0;
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int n = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (n > 0)
            return n;
    }
    return 0;
}

int sn_cpu_usable_cores(double *quota_cores)
{
    int cores = affinity_cores();
    if (cores == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        cores = online > 0 ? (int)online : 1;
    }
    double quota = sn_cpu_quota("");
    if (quota_cores)
        *quota_cores = quota;
    if (quota > 0 && quota < cores)
        cores = quota < 1 ? 1 : (int)quota;
    return cores;
}
