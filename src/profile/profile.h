/* SPDX-License-Identifier: Apache-2.0 */
/* A profile: the recorded data as plain tables. Knows no graph and no recorder: whoever recorded
 * copies names and shapes in. Every output is a pure function of these tables, so that formats
 * cannot disagree. All text and arrays live in the profile's arena. Times are nanoseconds since
 * `start_ns` of the profile.
 *
 * What holds for every finished profile, recorded or read; whoever reads one may rely on it
 * (sn_profile_check looks):
 *  - texts are there, "" where there is nothing to say; only a tensor's `text` and `port` may
 *    be NULL;
 *  - enums have one of their values, and real numbers are finite: record_ns alone may be NaN;
 *  - an index is inside its table, or UINT32_MAX where that is allowed; there is a thread at least;
 *  - ids of spans are unique and not 0; spans are sorted by start; a parent stands before its
 *    children;
 *  - times are at most SN_PROF_MAX_NS, counts and bytes at most SN_PROF_MAX_COUNT, so that two of
 *    them can be added as integers; sums of many need care;
 *  - a value's life does not end before it begins, and all lives together fit into an int64_t. */
#ifndef SN_PROFILE_PROFILE_H
#define SN_PROFILE_PROFILE_H

#include "base/arena.h"
#include "base/arithmetic.h"
#include "base/vec.h"
#include "profile/labels.h"

#define SN_PROF_MAX_NS    (UINT64_C(1) << 60) /* 36 years */
#define SN_PROF_MAX_COUNT (UINT64_C(1) << 62)

typedef struct sn_prof_tensor { /* an input or output of a step as bound */
    const char *name;
    const char *dtype;   /* as stored, of packed weights as packed: "f32"; "" when absent */
    int32_t rank;        /* -1: absent or not a tensor */
    const int64_t *dims; /* below 0: not known */
    const char *text;    /* "seq(f32[?])" when not a tensor, else NULL; never "" */
    bool constant;       /* a weight */
    double zeros;        /* of a weight: the share of elements that are 0; -1: not counted */
    uint32_t value;      /* equal numbers of one binding are the same memory, whatever the names
                            and shapes; 0: not known */
    const char *port;    /* of a step's input: the graph's input whose memory it is; of an output:
                            the graph's output. Else NULL; never "" */
    const int64_t *port_dims; /* of a port whose shape is another than `dims`, as of one that is
                                 reshaped; else NULL */
    int32_t port_rank;        /* of port_dims */
} sn_prof_tensor;

typedef struct sn_prof_origin {
    const char *name, *op_type;
} sn_prof_origin;

/* What hardware counters counted. */
typedef struct sn_prof_hw {
    double calls; /* of the step, that were counted; 0: none */
    double cycles, instructions, cache_misses, branch_misses;
} sn_prof_hw;

/* One step of one binding ("node table"). */
typedef struct sn_prof_step {
    uint32_t table, index; /* binding id and position in it */
    uint32_t threads;      /* of the session, that the binding is for; 0: not known */
    const char *op_type;   /* the anchor's; "[Reorder]": work that is no node's */
    const char *name;      /* the anchor's; "" when the node is unnamed */
    const char *post_op;   /* "Add+Relu" or "" */
    const sn_prof_origin *origins;
    uint32_t n_origins;
    const sn_prof_tensor *inputs;
    uint32_t n_inputs;
    const sn_prof_tensor *outputs;
    uint32_t n_outputs;
    const char *kernel;     /* "f32_conv1x1_14x2_avx512" or "" */
    const char *attributes; /* "kernel_shape=3,3;strides=1,1" */
    uint64_t flops, bytes;
    sn_arithmetic arithmetic; /* of the flops; NONE: there are none, or it is not known */
    uint64_t bind_ns; /* what binding this step cost: the "reshape_time" of spans that `bound` */
    sn_prof_hw hw;    /* over all calls that were counted */
    bool folded;      /* listed at zero time: folded away or merged, never executed */
    bool dynamic;     /* shapes depend on data */
    bool control;     /* runs bodies: its time contains theirs */
} sn_prof_step;

/* What the k-th node a step stands for is called: by its type where it has no name beside others.
 * A step of a file that tells no nodes is its own. */
const char *sn_prof_node_name(const sn_prof_step *s, uint32_t k);
static inline uint32_t sn_prof_node_count(const sn_prof_step *s)
{
    return s->n_origins ? s->n_origins : 1;
}

typedef enum sn_prof_cat {
    SN_CAT_MODEL,
    SN_CAT_ITERATION,
    SN_CAT_OPERATOR,
    SN_CAT_EXECUTOR,
    SN_CAT_MEMORY,
    SN_CAT_THREAD,
    SN_CAT_USER,
    SN_CAT_DEVICE,
    SN_CAT_COUNT
} sn_prof_cat;
const char *sn_prof_cat_name(sn_prof_cat c);               /* "operator" */
sn_prof_cat sn_prof_cat_named(const char *name, size_t n); /* SN_CAT_COUNT: none of that name */

/* A set of categories: bit c for category c; 0 stands for all of them. */
enum { SN_CATS_ALL = (1 << SN_CAT_COUNT) - 1, SN_CATS_TEXT = 96 };
static inline bool sn_prof_cats_have(uint32_t set, sn_prof_cat c)
{
    return !set || set >> c & 1;
}
/* "operator,user" ► the set; NULL is 0. What is no category is an error that lists those there are.
 */
sonde_status sn_prof_cats_parse(const char *list, uint32_t *set, sonde_error *err);
const char *sn_prof_cats_text(uint32_t set, char text[SN_CATS_TEXT]); /* "operator, user" */

typedef struct sn_prof_span {
    uint32_t id;     /* from 1 */
    uint32_t parent; /* span id, 0 = none: operator ► its run; body run ► its control step's span;
                        run ► the record around it on its thread, else the model's span; record and
                        executor's work ► the record around it */
    sn_prof_cat cat;
    uint32_t thread; /* index into threads */
    uint64_t start_ns, dur_ns;
    uint32_t step; /* OPERATOR, and a THREAD's share of one: index into steps; else UINT32_MAX */
    uint32_t run;  /* number of the top-level inference it belongs to, from 1; 0 = none */
    uint32_t iteration; /* ITERATION, OPERATOR: measured iteration from 0; warm-ups count apart */
    uint32_t instance;  /* of the sessions of this process that run side by side, from 0 */
    bool warmup;
    bool bound;           /* OPERATOR: its run bound the shapes; else they were cached */
    const char *name;     /* "Iteration3", "parse", "Conv" … */
    const char *args;     /* USER: text that came with the scope; ITERATION: the traceparent of its
                             caller (base/traceparent.h); "" */
    const char *category; /* USER: one of the scope's own; NULL or "": none, it is "user" */
} sn_prof_span;

/* What a trace calls its category. */
static inline const char *sn_prof_span_category(const sn_prof_span *s)
{
    return s->category && *s->category ? s->category : sn_prof_cat_name(s->cat);
}

typedef struct sn_prof_thread {
    uint32_t id;
    long os_tid;
    const char *name;
    uint32_t worker; /* index into workers; 0 where there are none */
} sn_prof_thread;

typedef struct sn_prof_counter {
    uint64_t at_ns;
    const char *name; /* SN_COUNTER_LIVE, … */
    double value;
    uint32_t step; /* taken after this step: index into steps; UINT32_MAX: none */
} sn_prof_counter;
/* Bytes that the values of all runs under way take by their plans, workspace included and weights
 * not; 0 between runs. What depends on data is not in it. Only changes are listed. */
#define SN_COUNTER_LIVE "live bytes"
/* By the memory profiler: bytes that values and weights take, and bytes the context's allocator
 * holds; always both, one behind the other, before any others. */
#define SN_COUNTER_USED      "used bytes"
#define SN_COUNTER_ALLOCATED "allocated bytes"

/* Where a value of a binding lies while it lives. */
typedef enum sn_prof_place {
    SN_LIFE_ARENA,     /* at `offset` of the frame's arena */
    SN_LIFE_OUTPUT,    /* memory of its own, handed to the caller */
    SN_LIFE_WORKSPACE, /* scratch of one step, behind the arena */
    SN_LIFE_DYNAMIC    /* allocated while running; bytes 0: not known beforehand */
} sn_prof_place;
const char *sn_prof_place_name(sn_prof_place p);            /* "arena" */
sn_prof_place sn_prof_place_named(const char *s, size_t n); /* what is none: DYNAMIC */

typedef struct sn_prof_life {
    uint32_t table;       /* binding id */
    uint32_t first, last; /* steps of it: made by the first, last used by the last */
    const char *name;
    uint64_t offset, bytes;
    sn_prof_place place;
} sn_prof_life;

/* Where its bytes end; what no address can be is the highest there is. */
static inline uint64_t sn_life_end(const sn_prof_life *l)
{
    return l->bytes > UINT64_MAX - l->offset ? UINT64_MAX : l->offset + l->bytes;
}

/* Where its block in the arena ends: values begin at multiples of SN_ALIGN, and what is left before
 * the next one belongs to nobody else. An arena is as large as its highest block reaches. */
static inline uint64_t sn_life_block_end(const sn_prof_life *l)
{
    const uint64_t end = sn_life_end(l), rest = end % SN_ALIGN;
    return rest && end <= UINT64_MAX - SN_ALIGN ? end + SN_ALIGN - rest : end;
}

/* Bytes, when the profile was taken; 0 = none or not known. */
typedef struct sn_prof_memory {
    uint64_t mapped;                      /* model files in the address space, resident or not */
    uint64_t constants;                   /* weights that are not in a mapped file */
    uint64_t packed;                      /* weights in the form kernels read them */
    uint64_t arenas, workspaces, outputs; /* of all bindings that ran */
    uint64_t held, held_peak;             /* by the context's allocator */
    uint64_t rss, rss_peak;               /* of the process */
    uint64_t rss_anon, rss_file;
} sn_prof_memory;

/* What the system counted for the process while counting was on. */
typedef struct sn_prof_usage {
    bool known;
    uint64_t cpu_ns; /* of all threads */
    uint64_t minor_faults, major_faults, voluntary, involuntary;
} sn_prof_usage;

typedef struct sn_prof_cache { /* of all threads together */
    double bytes, gbps;        /* what it holds, and how fast it is read; 0 = not measured */
} sn_prof_cache;

/* What is known of a step of runs whose spans are not in the tables: how often it ran there, its
 * own time there in all, and quantiles (left.h) of a call in all runs, those in the tables
 * included. In order of `step`, each once. */
enum { SN_LEFT_POINTS = 16, SN_LEFT_MOST_SAMPLES = 1024 };
#define SN_LEFT_MEMORY (UINT32_MAX - 1) /* instead of a step: [Mem alloc/free] */
#define SN_LEFT_OTHER  (UINT32_MAX - 2) /* what is left of each run, one call a run */
typedef struct sn_prof_left_step {
    uint32_t step;
    double calls, total_ns;
    double points[SN_LEFT_POINTS];
} sn_prof_left_step;

/* Runs whose spans were left out of a file, as its size is limited. Summaries count them. */
typedef struct sn_prof_left {
    uint64_t warmups;
    double cost_ns;             /* of the recorder, in all measured ones */
    uint64_t first_ns, last_ns; /* from the first start to the last end */
    SN_VEC(double) wall_ns;     /* of each measured run, without the recorder's cost */
    SN_VEC(sn_prof_left_step) steps;
} sn_prof_left;

typedef struct sn_profile sn_profile;

/* One of the profiles that were joined to another one (join.h). */
typedef struct sn_prof_worker {
    sn_profile *part;   /* as it was: its own numbers, and times since its own ns 0 */
    uint64_t offset_ns; /* of that in the joined profile */
    uint32_t first_thread, first_step; /* where its threads and steps begin in the joined tables */
    uint32_t first_run, first_instance, first_table; /* added to its own numbers */
} sn_prof_worker;

struct sn_profile {
    sn_allocator *alloc;
    sn_arena arena;
    const char *model_name;
    const char *file_name; /* that it was read from, without folders; "" */
    const char *version;   /* of sonde */
    const char *cpu_model, *cpu_level;
    const char *precision; /* of the sessions: "file", "f16", …; "mixed"; "" when not known */
    int cores, threads, level;
    int64_t pid;
    uint64_t start_wall_ns; /* epoch time of ns 0 */
    /* The same moment by the monotonic clock, and since when that counts: profiles of one boot have
     * one clock, whatever was done to the wall clock. "" when not known. */
    uint64_t start_mono_ns;
    const char *boot;
    uint64_t wall_error_ns; /* by which the wall clock may be wrong, as the system says; 0: it does
                               not know */
    sn_labels labels;
    double record_ns;    /* cost of recording one step; NaN: not known (another program's
                            profile) */
    uint64_t dropped;    /* records lost to overflow */
    int instance;        /* of several processes that run side by side, from 0 */
    uint32_t categories; /* a set: spans its traces show. Figures are made of all spans */
    double peak_gops[SN_ARITH_COUNT]; /* by arithmetic, of that many threads on this machine; 0 =
                                         not measured */
    double peak_gbps;                 /* of memory */
    sn_prof_cache caches[2];          /* second and third level */
    sn_prof_usage usage;
    const char *counters_note; /* why there are no hardware counters though they were wanted; "" */
    sn_prof_memory memory;
    const char *note; /* what is missing, as a sentence; "" */
    bool note_stays;  /* a .pftrace has the note, too: it is about runs that were never written */
    SN_VEC(sn_prof_step) steps;
    SN_VEC(sn_prof_span) spans; /* sorted by start, parents before children */
    SN_VEC(sn_prof_thread) threads_seen;
    SN_VEC(sn_prof_counter) counters;
    SN_VEC(sn_prof_life) lives;
    SN_VEC(sn_prof_worker) workers; /* of a joined profile, two at least; else none */
    sn_prof_left left;
};

/* What recording one step cost on a thread: in a joined profile, what it cost that worker. */
static inline double sn_prof_record_ns(const sn_profile *p, uint32_t thread)
{
    if (!p->workers.n || thread >= p->threads_seen.n)
        return p->record_ns;
    return p->workers.data[p->threads_seen.data[thread].worker].part->record_ns;
}

/* Finds spans by id. Ids are usually 1, 2, 3 … in order; any unique numbers work. */
typedef struct sn_prof_index {
    struct sn_prof_index_entry {
        uint32_t id, at;
    } * entries; /* sorted by id */
    size_t n;
    sn_allocator *alloc;
} sn_prof_index;
sonde_status sn_prof_index_build(const sn_profile *p, sn_prof_index *index, sonde_error *err);
void sn_prof_index_free(sn_prof_index *index);
/* Position in spans of the span with this id, UINT32_MAX when there is none. */
uint32_t sn_prof_index_find(const sn_prof_index *index, uint32_t id);

/* The step of a table with this index, or NULL. */
const sn_prof_step *sn_prof_find_step(const sn_profile *p, uint32_t table, uint32_t index);

/* Gives records, runs and the executor's work the record around them as parent, where they have
 * none; a run may have the model's span. Spans are in order. */
sonde_status sn_profile_link_records(sn_profile *p, sonde_error *err);

sonde_status sn_profile_new(sn_profile **p, sn_allocator *alloc, sonde_error *err);
void sn_profile_free(sn_profile *p);

/* SONDE_OK when everything above holds; else SONDE_INVALID_ARGUMENT and the first thing that does
 * not, as a sentence. */
sonde_status sn_profile_check(const sn_profile *p, sonde_error *err);

/* ---- aggregation: warm-up runs are left out everywhere; all figures are means per iteration ----
 */
typedef struct sn_prof_stats {
    uint64_t count;
    double min, max, mean, stddev, p50, p90, p95, p97, p99, p999, total; /* linear interpolation */
} sn_prof_stats;
/* Sorts `samples` in place. */
void sn_prof_stats_of(double *samples, size_t n, sn_prof_stats *out);

typedef enum sn_prof_key {
    SN_BY_OP,
    SN_BY_NODE,
    SN_BY_SHAPE,
    SN_BY_KERNEL,
    SN_BY_STEP /* a node once per binding: with exact shapes */
} sn_prof_key;

typedef struct sn_prof_row {
    const char *name;    /* BY_OP: op type, or "[Other]", "[Mem alloc/free]"; BY_NODE, BY_STEP:
                            "Conv+Add+Relu"; BY_SHAPE: "[1, 3, 224, 224], [32, 3, 3, 3], _" */
    const char *op_type; /* the operator the row belongs to */
    const char *kernel;  /* most used kernel, "" if none */
    const char *example; /* an example node name */
    const char *nodes;   /* BY_NODE, BY_STEP: all original nodes, comma-separated */
    double calls;        /* per iteration; [Other]: 1 */
    double mean_ns;      /* per iteration: the rows add up to mean wall time */
    double share;        /* 0…1 of the wall time */
    double usual_ns;    /* per iteration: the median of those it ran in, times how many those are of
                           all; one slow run does not move it */
    double usual_share; /* 0…1 of the sum over rows */
    double per_call_p50_ns, per_call_p99_ns, per_call_mean_ns;
    double flops, bytes; /* per iteration */
    double peak_ns;      /* per iteration: what the flops take at the peaks of their arithmetic; -1:
                            a peak is not known */
    uint32_t arithmetic; /* a set: bit a for arithmetic a of its steps */
    double input_elems;  /* per iteration */
    sn_prof_hw hw;       /* per iteration; calls 0: not counted */
    uint32_t step;       /* index of its first step; UINT32_MAX: none, or not in the tables */
    bool bracket;        /* [Other], [Mem alloc/free] */
} sn_prof_row;

typedef struct sn_prof_summary {
    uint64_t iterations, warmups;
    uint64_t instances;       /* sessions that ran side by side: one more than the highest number */
    double runs_per_s;        /* measured ones, from the first start to the last end */
    double ops;               /* executed steps per iteration */
    sn_prof_stats wall_ns;    /* per iteration */
    double cost_ns;           /* recorder's own cost per iteration, in no row; NaN: not known */
    SN_VEC(sn_prof_row) rows; /* sorted by time, then name */
    sn_allocator *alloc;
    sn_arena arena;
} sn_prof_summary;

/* Measured iterations are spans of ITERATION that are not warm-up and not inside another one. A
 * step counts where its parents lead to such an iteration; a body run (EXECUTOR "body", parent =
 * the control step's span) is only a link of that chain. A control step's own row holds its self
 * time: bodies are counted in their own operators. The recorder's cost is taken off the span it
 * fell into, so no row and no wall time contains it. Folded steps are listed at zero time BY_NODE
 * and BY_STEP. */
sonde_status sn_profile_summarise(const sn_profile *p, sn_prof_key key, sn_prof_summary *out,
                                  sonde_error *err);
void sn_prof_summary_free(sn_prof_summary *s);
/* For each step of the profile the row of `s` (made with the same key) it belongs to; UINT32_MAX:
 * none. `rows` has as many elements as there are steps. */
sonde_status sn_profile_step_rows(const sn_profile *p, sn_prof_key key, const sn_prof_summary *s,
                                  uint32_t *rows, sonde_error *err);

/* Measured iterations in the order of their start. */
typedef struct sn_prof_run {
    uint32_t span;  /* position in spans */
    double wall_ns; /* without the recorder's cost, as in the summary */
} sn_prof_run;

typedef struct sn_prof_runs {
    SN_VEC(sn_prof_run) all;
    sn_allocator *alloc;
} sn_prof_runs;
sonde_status sn_profile_runs(const sn_profile *p, sn_prof_runs *runs, sonde_error *err);
void sn_prof_runs_free(sn_prof_runs *runs);

/* What so many operations take at the peak of their arithmetic; -1: it is not known. A file that
 * does not tell the arithmetic is from when there was one peak, of f32. */
double sn_prof_peak_ns(const sn_profile *p, sn_arithmetic a, double flops);
/* The attained share of the machine's measured peaks, 0…1: the larger of arithmetic over its peak
 * and of bytes over the bandwidth of the level that holds what one call touches. -1: not known. */
double sn_prof_roofline(const sn_profile *p, const sn_prof_row *row);
/* Whether its FLOPs are those of direct arithmetic, of which its kernel does less. */
bool sn_prof_counts_direct(const sn_prof_row *row);
#define SN_PROF_DIRECT_NOTE                                                                        \
    "GFLOP/s and % of the roofline of Winograd convolutions are of direct arithmetic; they "       \
    "multiply 2.25 to 4 times less"
/* The same from plain figures of one call: what sn_prof_peak_ns says, bytes, and how long it took.
 * `bound` (may be NULL) receives "compute", "l2", "l3" or "memory": the peak that is nearest. */
double sn_prof_attained(const sn_profile *p, double peak_ns, double bytes, double ns,
                        const char **bound);

#endif
