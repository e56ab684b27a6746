/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: cores, clock, instructions, memory, counters, noise. What cannot be seen from inside
 * a container or a virtual machine is said to be so, not guessed. */
#include <math.h>
#include <string.h>

#include "doctor.h"
#include "sonde/experimental/machine.h"

/* The first line of a small file; false: not there. */
static bool read_line(const char *path, char *line, int bytes)
{
    FILE *f = fopen(path, "re");
    const bool got = f && fgets(line, bytes, f);
    if (f)
        fclose(f);
    if (got)
        line[strcspn(line, "\n")] = 0;
    return got;
}

static void look_at_build(findings *f, const sonde_machine_info *m)
{
    if (*m->build)
        found(f, SONDE_SLOW, "build", text_of("this is a slow build of sonde: %s", m->build),
              text_of("%s", ""), "build with 'cmake --preset release'");
}

static void look_at_cores(findings *f, const sonde_machine_info *m)
{
    char *evidence =
        text_of("%d cores online, %d usable, %d threads in use%s", m->cores, m->usable_cores,
                m->threads, m->quota_cores > 0 ? "" : ", no cgroup quota");
    if (m->threads > m->usable_cores)
        found(f, SONDE_SLOW, "cores",
              text_of("there are more threads than cores, so threads wait for each other"),
              evidence,
              "remove -t and SONDE_THREADS, or set them to at most the number of usable cores");
    else if (m->quota_cores > 0 && m->quota_cores < m->cores)
        found(f, SONDE_NOTE, "cores",
              text_of("the cgroup's CPU quota allows %.2f of %d cores", m->quota_cores, m->cores),
              evidence, "raise the container's CPU limit to use all cores");
    else if (m->usable_cores < m->cores)
        found(f, SONDE_NOTE, "cores",
              text_of("the affinity mask allows %d of %d cores", m->usable_cores, m->cores),
              evidence, "start without taskset or a cpuset to use all cores");
    else
        found(f, SONDE_GOOD, "cores", text_of("all %d cores can be used", m->cores), evidence, "");
}

static void look_at_clock(findings *f)
{
    char line[64];
    if (!read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", line, sizeof line))
        found(f, SONDE_GOOD, "clock", text_of("the system does not show a frequency governor"),
              text_of("this is usual in virtual machines, where the host controls the clock"), "");
    else if (strcmp(line, "performance") == 0)
        found(f, SONDE_GOOD, "clock", text_of("the frequency governor is 'performance'"),
              text_of("%s", ""), "");
    else
        found(f, SONDE_NOTE, "clock",
              text_of(
                  "the frequency governor is '%s', so short runs may run at a low clock frequency",
                  line),
              text_of("scaling_governor of core 0"), "cpupower frequency-set -g performance");
}

static void look_at_instructions(findings *f, const sonde_machine_info *m)
{
    char *evidence =
        *m->unused ? text_of("this machine has %s; no kernel uses %s yet", m->levels, m->unused)
                   : text_of("this machine has %s", m->levels);
    if (strcmp(m->level, m->found) == 0)
        found(f, SONDE_GOOD, "instructions",
              text_of("the best instruction set, %s, is used", m->level), evidence, "");
    else
        found(f, SONDE_SLOW, "instructions", text_of("only %s is used, not %s", m->level, m->found),
              evidence, "remove --cpu and SONDE_CPU");
}

/* Sockets, hardware threads, huge pages: the library looks at those. */
static int look_at_topology(findings *f, sonde_context *context)
{
    sonde_findings *all = NULL;
    sonde_error err;
    if (sonde_machine_findings(context, NULL, &all, &err))
        return fail("%s", err.message);
    found_all(f, all);
    return EXIT_OK;
}

static void look_at_memory(findings *f)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long total = 0, left = 0, kib;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemTotal: %llu", &kib) == 1)
            total = kib << 10;
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            left = kib << 10;
    }
    if (file)
        fclose(file);
    if (!total)
        return;
    const bool low = left < total / 10;
    found(f, low ? SONDE_SLOW : SONDE_GOOD, "memory",
          low ? text_of("memory is nearly full, so parts of the model may be read from disk again")
              : text_of("%s of memory are available", bytes_text(left)),
          text_of("%s of %s", bytes_text(left), bytes_text(total)),
          low ? "stop other programs that use memory" : "");
}

static void look_at_counters(findings *f, sonde_context *context)
{
    sonde_error err;
    if (sonde_counters_start(context, &err))
        found(f, SONDE_NOTE, "counters", text_of("no hardware counters"),
              text_of("%s", err.message),
              "profiles still show times, FLOPs and the system's counters");
    else
        found(f, SONDE_GOOD, "counters", text_of("hardware counters are available"),
              text_of("sonde profile --counters shows them"), "");
    (void)sonde_counters_stop(context, &err);
}

/* The same work again and again: what differs is not ours. */
static void look_at_noise(findings *f)
{
    enum { LOOPS = 60 };
    double ms[LOOPS];
    volatile uint64_t x = 1;
    for (int i = 0; i < LOOPS; i++) {
        const double start = now_ms();
        for (int k = 0; k < 1000000; k++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        ms[i] = now_ms() - start;
    }
    sort_samples(ms, LOOPS);
    const double spread = ms[LOOPS * 9 / 10] / ms[0] - 1;
    char load[64] = "";
    (void)read_line("/proc/loadavg", load, sizeof load);
    load[strcspn(load, " ")] = 0;
    char *evidence = text_of("a fixed loop took %.2f to %.2f ms in 90 %% of its runs and %.2f ms "
                             "at most; load average %s",
                             ms[0], ms[LOOPS * 9 / 10], ms[LOOPS - 1], *load ? load : "unknown");
    if (spread > 0.1)
        found(f, spread > 0.5 ? SONDE_SLOW : SONDE_NOTE, "noise",
              text_of("other work disturbs this machine: the time of equal work varies by %.0f %%",
                      spread * 100),
              evidence, "stop other work, or measure longer (--duration) and compare medians");
    else
        found(
            f, SONDE_GOOD, "noise",
            text_of("the machine is quiet: the time of equal work varies by %.1f %%", spread * 100),
            evidence, "");
}

/* NULL: all that this machine can multiply has a peak. */
static const char *without_peak(const sonde_machine_info *m)
{
    for (size_t i = 0; i < m->rate_count; i++)
        if (!(m->rates[i].all_gops > 0))
            return m->rates[i].arithmetic;
    return NULL;
}

static void look_at_peaks(findings *f, const sonde_machine_info *m)
{
    if (!m->measured)
        found(f, SONDE_NOTE, "peaks",
              text_of("the peak performance of this machine has not been measured"),
              text_of("with %d threads and %s", m->threads, m->level),
              "run 'sonde doctor --calibrate'; profiles then show the percentage of the peak");
    else if (without_peak(m))
        found(f, SONDE_NOTE, "peaks",
              text_of("the peak of %s has not been measured", without_peak(m)),
              text_of("the stored peaks are from an earlier version"),
              "run 'sonde doctor --calibrate'; operators in that type have no percentage without");
    else if (m->all.threads > 1 && m->all.gflops < 0.6 * m->all.threads * m->one.gflops)
        found(f, SONDE_NOTE, "peaks",
              text_of("%d threads reach only %.1f times the FLOP/s of one thread", m->all.threads,
                      m->all.gflops / m->one.gflops),
              text_of("%.1f and %.1f GFLOP/s", m->all.gflops, m->one.gflops),
              "the cores are shared, or were busy during the measurement: run 'sonde doctor "
              "--calibrate' again");
}

int look_at_machine(findings *f, sonde_context *context, bool quick)
{
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_error err;
    if (sonde_machine_peaks(context, &m, &err))
        return fail("%s", err.message);
    look_at_build(f, &m);
    look_at_cores(f, &m);
    look_at_clock(f);
    look_at_instructions(f, &m);
    if (look_at_topology(f, context))
        return EXIT_ERROR;
    look_at_memory(f);
    look_at_counters(f, context);
    if (!quick)
        look_at_noise(f);
    look_at_peaks(f, &m);
    return EXIT_OK;
}
