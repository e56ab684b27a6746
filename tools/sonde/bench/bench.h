/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde bench` has measured, as plain data: every raw sample, and what follows from them. The
 * measuring parts fill it, tables, files and plots are pure functions of it. */
#ifndef SONDE_BENCH_BENCH_H
#define SONDE_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When a sample was taken, both from 0. In a round every runtime has a fresh process; in a turn of
 * a round each of them is measured once, one right after the other. What is taken once a round, or
 * one runtime at a time, is of turn 0. */
typedef struct bench_when {
    int round, turn;
} bench_when;

/* Samples in the order in which they were taken: rounds and their turns ascend. */
typedef struct bench_series {
    double *value; /* milliseconds, or bytes for memory */
    bench_when *when;
    size_t n;
} bench_series;

/* Over all samples, none left out. An outlier is more than 5 scaled median absolute deviations away
 * from the median (the scale, 1.4826, makes that deviation a normal distribution's sigma); with all
 * samples but those: kept_mean and kept_stddev. All zero when n is 0. */
typedef struct bench_stats {
    size_t n, outliers;
    double min, max, mean, stddev;
    double p50, p90, p95, p99, p999;
    double kept_mean, kept_stddev;
} bench_stats;

/* By which factor this one is slower than the first runtime that worked, on the same model with the
 * same threads, batch size and instances. A turn's ratio is that of its medians (of times, for
 * whole programs), a round's is the median of its turns', and this is the geometric mean over the
 * rounds. low and high are the ends of its 95 % interval, NAN when there is one round of fewer than
 * six turns. */
typedef struct bench_ratio {
    bool known;
    double value, low, high;
} bench_ratio;

typedef enum bench_state {
    BENCH_OK,
    BENCH_MISSING,     /* not installed; the message is the command that installs it */
    BENCH_UNSUPPORTED, /* it cannot run this model, or cannot be asked that way */
    BENCH_FAILED,      /* it said so */
    BENCH_CRASHED,     /* its process ended, or said what nobody understands */
    BENCH_HUNG         /* no answer in time */
} bench_state;

typedef enum bench_agreement {
    BENCH_UNCOMPARED,
    BENCH_REFERENCE, /* the others are compared with this one's outputs */
    BENCH_AGREES,
    BENCH_DIFFERS
} bench_agreement;

/* The rows of `perf stat`. Hardware rows are not known where the system refuses them. */
typedef struct bench_counter {
    const char *name; /* static: "task-clock" (ms), "context-switches", "cycles", … */
    bool known;
    double value; /* mean of one run of the program */
} bench_counter;
enum { BENCH_COUNTERS = 9 };

/* Process start to result, again and again. */
typedef struct bench_program {
    bench_state state;
    char *message; /* why there are no figures; NULL when there are */
    char *command; /* what was run, for people */
    bench_series wall, user, system, rss;
    bench_stats stats;         /* of wall */
    double user_ms, system_ms; /* means */
    double peak_rss_bytes;     /* the largest */
    bench_ratio ratio;
    bench_counter counters[BENCH_COUNTERS];
} bench_program;

typedef struct bench_accuracy {
    size_t samples;    /* 0: not asked for */
    size_t skipped;    /* samples that cannot be read or have no label */
    double top1, top5; /* share of right answers, 0…1; right among the five best */
} bench_accuracy;

/* One runtime on one model in one configuration. */
typedef struct bench_result {
    char *model;     /* as people typed it: "zoo:regnet_x_400mf" */
    char *hashes[2]; /* of the model's content and form; NULL: nobody asked */
    char *runtime;   /* with its variant: "onnxruntime:opt=off" */
    char *name;      /* without: "onnxruntime" */
    char *version;   /* "" when it never said */
    char *options;   /* what it was told, as members of JSON, each behind a comma */
    int threads, instances;
    size_t skipped;    /* images of a folder that cannot be read */
    int64_t batch;     /* samples in one inference; 1 when the model has no batch dimension */
    int rounds, turns; /* turns: the most that a round had; 1: one runtime at a time */
    char *apart;       /* why there were no turns though asked for, or not in all rounds; or NULL */

    bench_state state;
    char *message; /* NULL when state is BENCH_OK */

    bench_series latency; /* inference alone, ms; with several instances, of each */
    bench_stats stats;
    bench_series full; /* with decoding, resizing and normalising an image; n = 0: not measured */
    bench_stats full_stats;
    char *full_message;       /* why there is no `full` though it was asked for, or NULL */
    bench_series load, first; /* one a round: until it can run; the first inference */
    bench_stats load_stats, first_stats;
    bench_series rss; /* one a round, bytes: peak of the process that loads and runs */
    double peak_rss_bytes;
    double throughput_per_s; /* samples a second: batch × instances × runs / wall time */
    bench_ratio ratio, full_ratio;

    bench_agreement agreement;
    double max_difference; /* largest |difference| to the reference; NAN: not known */
    char *difference;      /* what differs, or why nothing was compared; NULL: nothing to say */

    bench_program program;
    bench_accuracy accuracy;
} bench_result;

typedef struct bench_machine {
    char *cpu, *level; /* "AMD EPYC …", "avx512" */
    int cores, usable_cores;
    char *kernel, *arch; /* "Linux 6.1.0", "x86_64" */
    double memory_bytes;
    char *pinned;   /* "0,1": where every runtime ran; "" when nothing was pinned */
    char *governor; /* of the frequency; "" when it is not shown */
    char *date;     /* "2026-01-31T12:00:00Z" */
    char *version;  /* of sonde */
    char *hardware; /* why there are no hardware counters; "" when there are */
} bench_machine;

/* Results stand in the order models × batch sizes × threads × runtimes: all rows of one table are
 * neighbours. */
typedef struct bench_results {
    bench_result *items;
    size_t n;
    bench_machine machine;
} bench_results;

/* Whether two results belong to one table: same model, threads, batch and instances. */
bool bench_same_table(const bench_result *a, const bench_result *b);

/* ---- statistics.c ---- */
void bench_series_add(bench_series *s, double value, bench_when when);
void bench_series_free(bench_series *s);
bench_stats bench_stats_of(const bench_series *s);
/* Each round of which both have a turn gives one ratio; the interval is Student's over the
 * logarithms of those. One or two rounds would tell too little: with six turns or more the interval
 * is that of the turns' median then, from their scaled median absolute deviation, without what
 * processes differ by. */
bench_ratio bench_ratio_of(const bench_series *of, const bench_series *to);
/* Its interval is so wide that its ends tell nothing: two rounds, for instance, that disagree. */
bool bench_ratio_unclear(const bench_ratio *r);

/* ---- plots ----
 * Draws the results into `path` (.svg): the inference latencies as bars with spread and as violins,
 * whole-program times, peak memory, and where several threads or batch sizes were measured, how
 * they scale. A pure function: reads `results`, writes one file. Results whose state is not
 * BENCH_OK have no samples and are named, not drawn. Returns 0, or 1 after an error said with
 * fail(). */
int bench_plot(const bench_results *results, const char *path);

#endif
