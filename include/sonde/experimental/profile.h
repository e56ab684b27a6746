/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says as numbers, and two profiles side by side.
 *
 *     sonde_profile *old, *now;
 *     sonde_comparison *change;
 *     sonde_profile_load(NULL, "old.pftrace", &old, &err);
 *     sonde_profile_load(NULL, "new.pftrace", &now, &err);
 *     sonde_profile_compare(old, now, SONDE_BY_OP, &change, &err);
 *     sonde_change total = SONDE_INIT(sonde_change);
 *     sonde_comparison_total(change, &total, &err);
 *     printf("%.3f times as long\n", total.ratio);
 *
 * Times are nanoseconds. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_PROFILE_H
#define SONDE_EXPERIMENTAL_PROFILE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_profile_summary {
    size_t struct_size;
    const char *model, *version; /* the version is the writer's: "0.1.0", "ONNX Runtime" */
    const char *cpu, *cpu_level; /* "" when not known */
    const char *note;            /* what is missing, as a sentence; "" */
    int cores, threads, level;
    uint64_t start_wall_ns;       /* since 1970 */
    uint64_t spans, dropped;      /* records kept, and lost to overflow */
    uint64_t iterations, warmups; /* runs; figures are of the measured ones */
    double ops;                   /* executed steps per run */
    double mean_ns, stddev_ns, min_ns, max_ns, p50_ns, p90_ns, p95_ns, p99_ns; /* of a run */
    double cost_ns; /* recording took this per run; not included. NaN: not known, as of profiles
                       that other programs wrote */
    const char *precision; /* of the sessions: "file", "f16", …; "mixed"; "" when not known */
} sonde_profile_summary;
SONDE_API sonde_status sonde_profile_summary_get(const sonde_profile *profile,
                                                 sonde_profile_summary *summary, sonde_error *err);

/* The labels of a profile; texts belong to it. */
SONDE_API size_t sonde_profile_label_count(const sonde_profile *profile);
SONDE_API sonde_status sonde_profile_label_get(const sonde_profile *profile, size_t index,
                                               sonde_label *label, sonde_error *err);

/* What makes two steps the same row. */
typedef enum sonde_by {
    SONDE_BY_OP = 0,    /* operator type */
    SONDE_BY_NODE = 1,  /* original nodes; two profiles: what either did in one step is one row */
    SONDE_BY_SHAPE = 2, /* operator type and shapes of the inputs */
    SONDE_BY_KERNEL = 3 /* the inner loop; rows only, not for comparisons */
} sonde_by;

/* One row of a profile, as in the timing table; figures are per run. */
typedef struct sonde_profile_row {
    size_t struct_size;
    const char *name, *op_type;   /* "Conv+Relu", "Conv"; "[Other]" and "[Mem alloc/free]" too */
    const char *node, *kernel;    /* an example, and the kernel that took most of the time; or "" */
    const char *dtype;            /* of the first input as stored: "f32"; "" when not known */
    double calls, mean_ns, share; /* the rows add up to the run */
    double per_call_mean_ns, per_call_p50_ns, per_call_p99_ns;
    double flops, bytes;
    double
        roofline; /* 0…1 of the measured peaks; -1: not known, see sonde/experimental/machine.h */
    const char *bound; /* the peak that is nearest: "compute", "l2", "l3", "memory"; "" */
    double instructions, cycles, cache_misses, branch_misses; /* 0: not counted */
    int bracket;            /* not an operator but time between them */
    int dynamic;            /* shapes depend on data */
    const char *nodes;      /* SONDE_BY_NODE: all the original nodes, comma-separated; else "" */
    const char *arithmetic; /* what the flops are computed in: "f32", "bf16_tiles", "i8"; several:
                               "f32+bf16_tiles"; "" where there are none */
} sonde_profile_row;

/* Texts belong to the rows; the rows do not need the profile. Largest time first. */
typedef struct sonde_profile_rows sonde_profile_rows;
SONDE_API sonde_status sonde_profile_rows_get(const sonde_profile *profile, sonde_by by,
                                              sonde_profile_rows **rows, sonde_error *err);
SONDE_API size_t sonde_profile_rows_count(const sonde_profile_rows *rows);
SONDE_API sonde_status sonde_profile_rows_row(const sonde_profile_rows *rows, size_t index,
                                              sonde_profile_row *row, sonde_error *err);
SONDE_API void sonde_profile_rows_release(sonde_profile_rows *rows);

/* Every span of a profile: one line of a data frame. Texts are "" and numbers -1 where there is
 * nothing to say. */
typedef struct sonde_profile_span {
    size_t struct_size;
    char trace_id[33]; /* one per inference */
    char span_id[17], parent_span_id[17];
    const char *name, *category; /* "Conv", "operator"; of a scope: its own */
    const char *text;            /* of a scope */
    const char *thread_name;
    const char *node; /* all original nodes the step stands for: "conv1;relu1" */
    const char *op_type, *post_op, *kernel;
    const char *input_shapes, *input_types; /* as in traces: "1*3*8,8*4" "fp32,fp32" */
    const char *output_shapes, *output_types;
    int64_t thread_id;                 /* the system's */
    uint64_t start_ns, end_ns;         /* since 1970 */
    int64_t iteration, instance;       /* measured iterations and warm-ups count apart */
    int64_t operator_index;            /* step of the inference */
    int64_t pe_index, execution_index; /* on a device */
    int64_t flops, bytes;
    int warmup;
    const char *arithmetic; /* "bf16_tiles" */
} sonde_profile_span;

/* They are read from the profile, which must live as long. In order of start. */
typedef struct sonde_profile_spans sonde_profile_spans;
SONDE_API sonde_status sonde_profile_spans_get(const sonde_profile *profile,
                                               sonde_profile_spans **spans, sonde_error *err);
SONDE_API size_t sonde_profile_spans_count(const sonde_profile_spans *spans);
SONDE_API sonde_status sonde_profile_spans_span(const sonde_profile_spans *spans, size_t index,
                                                sonde_profile_span *span, sonde_error *err);
SONDE_API void sonde_profile_spans_release(sonde_profile_spans *spans);

typedef enum sonde_verdict {
    SONDE_SAME = 0,    /* the interval lies within 5 % of 1 */
    SONDE_FASTER = 1,  /* at least 2 %, and the interval lies below 1 */
    SONDE_SLOWER = 2,  /* at least 2 %, and the interval lies above 1 */
    SONDE_UNCLEAR = 3, /* too few samples or too much noise */
    SONDE_NEW = 4,     /* only in the second profile */
    SONDE_GONE = 5     /* only in the first profile */
} sonde_verdict;
SONDE_API const char *sonde_verdict_text(sonde_verdict verdict); /* "slower" */

typedef struct sonde_change {
    size_t struct_size;
    const char *name;      /* of the row: "Conv", "Conv+Relu", "[1, 3, 224, 224], …" */
    const char *op_type;   /* its operator */
    const char *node;      /* an example; SONDE_BY_NODE: all the original nodes, comma-separated */
    double old_ns, new_ns; /* mean per run; the rows add up to the total */
    double old_share, new_share; /* of the medians: 0…1 of the median run */
    double old_calls, new_calls; /* per run */
    double old_median_ns, new_median_ns;
    double ratio;     /* new / old, of the medians; 1 where one of them is 0 */
    double low, high; /* interval of the ratio; 0 and infinity: not known. Those of total and rows
                         hold all together with 95 % */
    double p;         /* that equal times would differ so much by chance, in this row alone */
    sonde_verdict verdict;
    size_t turns; /* not 0: both were recorded in turns, and `ratio` is the median of the ratios of
                     that many neighbours */
} sonde_change;

/* Both must have measured runs. Texts belong to the comparison. */
typedef struct sonde_comparison sonde_comparison;
SONDE_API sonde_status sonde_profile_compare(const sonde_profile *old_profile,
                                             const sonde_profile *new_profile, sonde_by by,
                                             sonde_comparison **comparison, sonde_error *err);
SONDE_API void sonde_comparison_release(sonde_comparison *comparison);
SONDE_API sonde_status sonde_comparison_total(const sonde_comparison *comparison,
                                              sonde_change *change, sonde_error *err);
SONDE_API size_t sonde_comparison_count(const sonde_comparison *comparison);
/* Largest change of the median first. */
SONDE_API sonde_status sonde_comparison_row(const sonde_comparison *comparison, size_t index,
                                            sonde_change *change, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
