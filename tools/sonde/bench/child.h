/* SPDX-License-Identifier: Apache-2.0 */
/* Processes the bench starts: pinned, in a group of their own, ended with everything they started
 * when they hang, when the bench is interrupted, or when it dies. */
#ifndef SONDE_BENCH_CHILD_H
#define SONDE_BENCH_CHILD_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "bench/bench.h"
#include "sonde/types.h"

/* ---- scratch.c ---- */
/* A folder for temporary files, gone when the program ends, also by Ctrl-C, which from here on only
 * makes interrupted() true. NULL: after an error that was said. */
const char *scratch_open(void);
const char *scratch_folder(void);
char *scratch_path(const char *name); /* a file in it; from malloc */

/* ---- child.c ---- */
enum {
    BENCH_CPUS = 8192
}; /* numbers of CPUs are below it, as in the kernel: 1024 are not enough */
typedef struct child {
    pid_t pid;    /* 0: none */
    int to, from; /* its standard input and output; -1: closed */
    char *buffer; /* read, but no whole line yet */
    size_t n, cap;
} child;

typedef struct child_setup {
    const char *cores;     /* "0,1": where it may run; "" or NULL: anywhere */
    const char *error_log; /* its standard error goes there; NULL: is shown */
    bool talks;            /* stdin and stdout are pipes to us; else both are /dev/null */
    bool counts;           /* counters are opened, read by child_run */
} child_setup;

typedef enum child_answer { ANSWER_LINE, ANSWER_END, ANSWER_LATE, ANSWER_INTERRUPTED } child_answer;

/* argv ends with NULL. false: after *why (from malloc) said why; a program that cannot be executed
 * is only noticed when it ends with status 127. */
bool child_start(child *c, const char *const *argv, const child_setup *setup, char **why);
/* False: it does not listen any more. */
bool child_send(child *c, const char *fmt, ...) SONDE_PRINTF(2, 3);
/* One line without its end; *line is valid until the next call. */
child_answer child_read(child *c, double timeout_s, char **line);
/* Most bytes its memory ever held, so far; 0: not known. */
double child_peak_rss(const child *c);
/* Time of the processor it has used so far, with all its threads; 0: not known. */
double child_cpu_ms(const child *c);
/* Whether one of its threads runs or waits for a core. */
bool child_works(const child *c);
/* Closes its input, waits a little, ends it if need be. Returns its wait status. */
int child_end(child *c);

typedef struct child_usage {
    double wall_ms, user_ms, system_ms, rss_bytes;
    bench_counter counters[BENCH_COUNTERS];
    int status; /* as of wait */
} child_usage;
/* Runs a program from start to end. ANSWER_END: it ended; else it was ended. */
child_answer child_run(const char *const *argv, const child_setup *setup, double timeout_s,
                       child_usage *usage, char **why);
/* The last line somebody wrote to an error log, without control characters; "" when it is empty. */
char *last_line(const char *path);

/* ---- counters.c ---- */
typedef struct counters {
    int fd[BENCH_COUNTERS];
} counters;
/* Of process `pid` and what it starts, from its next exec on. */
void counters_open(counters *c, pid_t pid);
/* Fills all rows: from the counters, else from `usage`, else not known. */
void counters_close(counters *c, const struct rusage *usage, bench_counter *rows);
/* Why there are no hardware counters on this machine; "" when there are. From malloc. */
char *counters_refused(void);

#endif
