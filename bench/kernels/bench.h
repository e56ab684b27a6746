/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the kernel benchmark: cases (cases.inc), who runs them (engine.c, engine_bytes.c,
 * engine_attention.c: sonde's drivers; engine_sparse.c; engine_graph.c: a session on the small
 * graphs of graphs.inc; openblas.c, onednn.c: libraries that may be installed), how they are timed
 * (measure.c), and how the figures are told (report.c). Single kernels are in rows.h. Running out
 * of memory ends the program. */
#ifndef BENCH_KERNELS_BENCH_H
#define BENCH_KERNELS_BENCH_H

#include <stdio.h>

#include "base/arithmetic.h"
#include "base/cpu.h"
#include "base/pool.h"

enum { BENCH_MAX_RUNNERS = 20, BENCH_MAX_ROUNDS = 400, BENCH_MAX_THREADS = 4 };
/* Undisturbed rounds that make the disturbed ones superfluous. */
enum { BENCH_GOOD_ROUNDS = 5 };

typedef struct bench_gemm {
    int64_t m, n, k;
    bool packed;
    int zeros;       /* percent of the blocks of the weights; 0: they are not sparse */
    int outputs, ks; /* of a block */
} bench_gemm;

typedef struct bench_conv {
    int64_t in, out, groups, image, kernel, stride;
    bool residual;
    int64_t dilation;
} bench_conv;

typedef struct bench_attention {
    int64_t batch, heads, len, head;
    bool windows; /* rows found by lists, and a mask of each window */
} bench_attention;

struct bench_graph;

typedef struct bench_case {
    char name[64];     /* "gemm/128x768x3072", "conv/resnet50/s1_b", "conv1d/k3_s2" */
    const char *kind;  /* class of work, a word that selects it as well: "few_rows"; or "" */
    const char *group; /* cases in a row with the same one are summed up */
    bool is_conv;
    bench_gemm gemm;
    bench_conv conv;
    bench_attention attention;       /* batch 0: it is something else */
    const struct bench_graph *graph; /* run by a session; NULL: it is something else */
    int count;                       /* how often the network has it */
    double flops;                    /* 0: the runners know */
} bench_case;

/* The k-th case; false past the end. */
bool bench_case_get(size_t k, bench_case *out);

/* One way to compute one case. */
typedef struct bench_runner {
    const char *by; /* "sonde", "sparse", "winograd", "reference", "openblas", "onednn" */
    int threads;
    sn_arithmetic arithmetic; /* whose peak it is held against; NONE: f32 */
    char plan[64];            /* which kernel, where that is known */
    double flops, bytes;      /* of a run, where the case does not tell; 0: not known */
    void (*prepare)(void *);  /* before a slice, not timed; may be NULL */
    void (*run)(void *state); /* once */
    void (*free)(void *state);
    void *state;
    /* Filled by bench_measure. */
    size_t rounds, inner; /* slices, and runs in each */
    size_t disturbed;     /* slices during which the system took a core away */
    bool bad[BENCH_MAX_ROUNDS];
    double ns[BENCH_MAX_ROUNDS];
    double peak[BENCH_MAX_ROUNDS]; /* GFLOP/s of the arithmetic peak beside each slice */
} bench_runner;

typedef struct bench_setup {
    sn_cpu cpu;
    int threads[BENCH_MAX_THREADS]; /* to measure, ascending */
    int thread_counts;
    sn_pool *pool[BENCH_MAX_THREADS];
    bool cold, reference, rivals, winograd;
    sn_dtype type;                 /* of the weights: F32, BF16, I8 */
    const char *level;             /* the same as cpu, as people write it; NULL: the best */
    double min_ms;                 /* of each runner and case */
    const char *openblas, *onednn; /* file names, NULL: the usual ones */
} bench_setup;

/* Weights that are to come from beyond the second-level cache exist often enough to fill it. */
enum { BENCH_MAX_COPIES = 64 };
typedef struct bench_weights {
    void *of[BENCH_MAX_COPIES];
    size_t copies, next;
} bench_weights;
void bench_weights_make(bench_weights *w, const bench_setup *s, size_t bytes);
const void *bench_weights_next(bench_weights *w);
void bench_weights_free(bench_weights *w);

/* Each gives 0 or 1 runner; `slot` says which of the setup's thread counts. */
bool bench_engine(const bench_setup *s, int slot, uint32_t cpu_flags, const bench_case *c,
                  bench_runner *out);
/* The same in bytes: unsigned ones times signed weights, and bytes again. */
bool bench_bytes(const bench_setup *s, int slot, uint32_t cpu_flags, const bench_case *c,
                 bench_runner *out);
/* Attention, in f32 or bf16. */
bool bench_attend(const bench_setup *s, int slot, uint32_t cpu_flags, const bench_case *c,
                  bench_runner *out);
/* A small graph, in f32 or bf16. */
bool bench_session(const bench_setup *s, int slot, uint32_t cpu_flags, const bench_case *c,
                   bench_runner *out);
/* A product whose weights have zeros, without multiplying those; by the driver the engine would
 * use if that were always faster. */
bool bench_sparse(const bench_setup *s, int slot, const bench_case *c, bench_runner *out);
/* The same as Winograd's F(4×4, 3×3), where a convolution can be. */
bool bench_winograd(const bench_setup *s, int slot, const bench_case *c, bench_runner *out);
bool bench_openblas(const bench_setup *s, int slot, const bench_case *c, bench_runner *out);
bool bench_onednn(const bench_setup *s, int slot, const bench_case *c, bench_runner *out);

/* Runs them in turn, many short slices each, with a slice of the peak before and after. */
void bench_measure(const bench_setup *s, bench_runner *runners, size_t n);

/* How values lie. */
typedef struct bench_spread {
    double low, median, high; /* quartiles */
} bench_spread;
bench_spread bench_spread_of(const double *values, size_t n);
double bench_least(const double *values, size_t n);
/* Share of the peak per round. */
bench_spread bench_share(const bench_runner *r, double flops);
/* How many times faster than `one`, per round. */
bench_spread bench_speedup(const bench_runner *one, const bench_runner *r);

typedef struct bench_report bench_report;
bench_report *bench_report_open(const bench_setup *s, const char *json);
void bench_report_case(bench_report *r, const bench_case *c, const bench_runner *runners, size_t n);
bool bench_report_close(bench_report *r); /* false: the file could not be written */

double bench_peak(const bench_setup *s, sn_arithmetic arithmetic); /* of one thread */
void *bench_alloc(size_t bytes);                                   /* zeroed, aligned */
float *bench_floats(size_t bytes);                                 /* small numbers of both signs */
void *bench_numbers(sn_dtype type, size_t bytes); /* the same of F32 or BF16; any bytes of I8 */

#endif
