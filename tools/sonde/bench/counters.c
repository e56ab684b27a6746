/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `perf stat`, of a process and everything it starts. Where the system refuses the
 * hardware's counters those stay unknown; what it counts for every process anyway is taken from
 * there. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/child.h"
#include "tool.h"

static const struct row {
    const char *name;
    uint32_t type;
    uint64_t config;
} rows_of[BENCH_COUNTERS] = {
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
};

static int open_one(const struct row *r, pid_t pid, bool without_kernel)
{
    struct perf_event_attr a = {.size = sizeof a, .type = r->type, .config = r->config};
    a.disabled = 1;
    a.inherit = 1;
    a.enable_on_exec = 1;
    a.exclude_kernel = without_kernel;
    a.exclude_hv = 1;
    a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Ordinary users may often count user space only: better than nothing. */
static int open_row(const struct row *r, pid_t pid)
{
    const int fd = open_one(r, pid, false);
    return fd >= 0 || r->type == PERF_TYPE_SOFTWARE ? fd : open_one(r, pid, true);
}

void counters_open(counters *c, pid_t pid)
{
    for (int i = 0; i < BENCH_COUNTERS; i++)
        c->fd[i] = pid > 0 ? open_row(&rows_of[i], pid) : -1;
}

static bool from_usage(int row, const struct rusage *u, double *value)
{
    const double times[] = {(double)u->ru_utime.tv_sec, (double)u->ru_utime.tv_usec,
                            (double)u->ru_stime.tv_sec, (double)u->ru_stime.tv_usec};
    switch (row) {
    case 0:
        *value = (times[0] + times[2]) * 1e3 + (times[1] + times[3]) / 1e3;
        return true;
    case 1:
        *value = (double)u->ru_nvcsw + (double)u->ru_nivcsw;
        return true;
    case 3:
        *value = (double)u->ru_minflt + (double)u->ru_majflt;
        return true;
    default:
        return false;
    }
}

void counters_close(counters *c, const struct rusage *usage, bench_counter *rows)
{
    for (int i = 0; i < BENCH_COUNTERS; i++) {
        uint64_t got[3] = {0, 0, 0}; /* count, time enabled, time running */
        rows[i] = (bench_counter){.name = rows_of[i].name};
        if (c->fd[i] >= 0 && read(c->fd[i], got, sizeof got) == (ssize_t)sizeof got && got[2]) {
            /* More events than the processor has counters take turns. */
            rows[i].value = (double)got[0] * ((double)got[1] / (double)got[2]);
            rows[i].known = true;
            if (i == 0)
                rows[i].value /= 1e6; /* ns ► ms */
        } else {
            rows[i].known = from_usage(i, usage, &rows[i].value);
        }
        if (c->fd[i] >= 0)
            close(c->fd[i]);
    }
}

char *counters_refused(void)
{
    const int fd = open_row(&rows_of[4], 0);
    if (fd < 0)
        return text_of("not supported on this machine (%s)", strerror(errno));
    close(fd);
    return text_of("%s", "");
}
