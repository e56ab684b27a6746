/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine that belong beside every figure, and the cores runtimes are pinned to. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench/parts.h"
#include "sonde/experimental/machine.h"

char *bench_cores(int n)
{
    cpu_set_t *set = need(CPU_ALLOC(BENCH_CPUS));
    const size_t bytes = CPU_ALLOC_SIZE(BENCH_CPUS);
    text t = {.n = 0};
    if (sched_getaffinity(0, bytes, set) == 0)
        for (size_t core = 0; core < BENCH_CPUS && n > 0; core++)
            if (CPU_ISSET_S(core, bytes, set)) {
                text_add(&t, "%s%zu", t.n ? "," : "", core);
                n--;
            }
    CPU_FREE(set);
    return t.data ? t.data : text_of("%s", "");
}

/* The number behind `word` and white space in a file of such lines, or at the very beginning. */
static double number_in(const char *path, const char *word)
{
    char line[256];
    double number = 0;
    FILE *f = fopen(path, "re");
    for (bool found = false; f && !found && fgets(line, sizeof line, f);) {
        const size_t n = strlen(word);
        found = strncmp(line, word, n) == 0 && (!n || strchr(" \t", line[n]));
        number = found ? strtod(line + n, NULL) : 0; /* "max": 0 */
    }
    if (f)
        fclose(f);
    return number;
}

/* Of the machine, and of the group of processes that a container is: what it holds without its
 * files, which it would give back. */
double bench_memory_left(void)
{
    static const char *const groups[][4] = {{"/sys/fs/cgroup/memory.max",
                                             "/sys/fs/cgroup/memory.current",
                                             "/sys/fs/cgroup/memory.stat", "file"},
                                            {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                             "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                                             "/sys/fs/cgroup/memory/memory.stat", "cache"}};
    double left = number_in("/proc/meminfo", "MemAvailable:") * 1024;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const double most = number_in(groups[i][0], "");
        const double held = number_in(groups[i][1], "") - number_in(groups[i][2], groups[i][3]);
        if (most > 0)
            left = most - held < left ? most - held : left;
    }
    return left > 0 ? left : 0;
}

static char *governor(void)
{
    char line[64] = "";
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = 0;
    return text_of("%s", line);
}

static char *date(void)
{
    char out[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text_of("%s", out);
}

int bench_machine_look(bench_machine *m)
{
    sonde_machine_info info = SONDE_INIT(sonde_machine_info);
    sonde_error err;
    struct utsname system;
    if (sonde_machine_peaks(NULL, &info, &err))
        return fail("%s", err.message);
    if (uname(&system))
        memset(&system, 0, sizeof system);
    *m = (bench_machine){.cpu = text_of("%s", info.cpu),
                         .level = text_of("%s", info.level),
                         .cores = info.cores,
                         .usable_cores = info.usable_cores,
                         .kernel = text_of("%s %s", system.sysname, system.release),
                         .arch = text_of("%s", system.machine),
                         .memory_bytes =
                             (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE),
                         .pinned = text_of("%s", ""),
                         .governor = governor(),
                         .date = date(),
                         .version = text_of("%s", sonde_version()),
                         .hardware = counters_refused()};
    return EXIT_OK;
}

void bench_machine_free(bench_machine *m)
{
    char *const texts[] = {m->cpu,      m->level, m->kernel,  m->arch,    m->pinned,
                           m->governor, m->date,  m->version, m->hardware};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
}
