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
    cpu_set_t set;
    text t = {.n = 0};
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (size_t core = 0; core < CPU_SETSIZE && n > 0; core++)
            if (CPU_ISSET(core, &set)) {
                text_add(&t, "%s%zu", t.n ? "," : "", core);
                n--;
            }
    return t.data ? t.data : text_of("%s", "");
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
