/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde: runs ONNX models and profiles their time and memory.
 *
 *     sonde_model *model;
 *     sonde_session *session;
 *     sonde_error err;
 *     if (sonde_model_load(NULL, "model.onnx", NULL, &model, &err) ||
 *         sonde_session_create(model, NULL, &session, &err))
 *         die(err.message);
 *     sonde_value *in, *out = NULL;
 *     sonde_tensor_borrow(NULL, SONDE_DTYPE_F32, dims, 4, pixels, bytes, &in, &err);
 *     const char *in_name = sonde_session_input_name(session, 0);
 *     sonde_session_run(session, NULL, &in_name, &in, 1, NULL, &out, 1, &err);
 *     const float *scores = sonde_tensor_data(out);
 *
 * General rules:
 *  - A function that can fail returns sonde_status and writes a message to `err`,
 *    which may be NULL.
 *  - `create`, `load` and `new` return one reference; drop it with the matching `release`.
 *    Releasing NULL does nothing. An object keeps the objects it needs alive (a session its model,
 *    a model its context), so they may be released in any order.
 *  - A returned string is owned by the object it was asked from and lives as long as that object.
 *  - Option structs start with struct_size: set it with SONDE_INIT(type) and fields added later
 * keep their defaults. NULL options mean defaults.
 *  - Objects may be used from many threads at once unless said otherwise; values must not be
 * written while a run reads them.
 *  - The library prints nothing unless a variable such as SONDE_TIMING or SONDE_LOG is set. It
 *    never exits, and never aborts because of its input.
 */
#ifndef SONDE_SONDE_H
#define SONDE_SONDE_H

#include "sonde/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_VERSION_MAJOR 0
#define SONDE_VERSION_MINOR 1
#define SONDE_VERSION_PATCH 0

/* A zeroed option struct with its size set: sonde_run_options o = SONDE_INIT(sonde_run_options); */
#ifdef __cplusplus
extern "C++" {
template <class T> inline T sonde_init_options()
{
    T options = T();
    options.struct_size = sizeof(T);
    return options;
}
}
#define SONDE_INIT(T) (sonde_init_options<T>())
#else
#define SONDE_INIT(T)                                                                              \
    {                                                                                              \
        .struct_size = sizeof(T)                                                                   \
    }
#endif

SONDE_API const char *sonde_version(void);                    /* "0.1.0" */
SONDE_API const char *sonde_status_text(sonde_status status); /* "invalid model" */
SONDE_API const char *sonde_dtype_text(sonde_dtype dtype);    /* "f32" */
/* "file", "f32", "bf16", "f16", "auto"; NULL: not a precision. */
SONDE_API const char *sonde_precision_text(sonde_precision precision);
SONDE_API const char *sonde_dtype_onnx_text(sonde_dtype dtype); /* "float" */
SONDE_API size_t sonde_dtype_bytes(sonde_dtype dtype); /* in memory; sub-byte types take 1 */

/* ---------------------------------------------------------------- context
 * Thread pool, allocator, log and recorder. NULL everywhere means the process default, made at
 * first use from the environment (SONDE_THREADS, SONDE_CPU, SONDE_LOG). */
typedef struct sonde_context sonde_context;

typedef struct sonde_context_options {
    size_t struct_size;
    int threads;       /* 0 = SONDE_THREADS, else all cores that affinity and cgroup quota allow */
    const char *cpu;   /* "baseline", "avx2", …; NULL = SONDE_CPU, else the best */
    size_t max_memory; /* bytes the context may hold at once; 0 = no limit */
    /* Log lines; NULL = silent unless SONDE_LOG is set. level: 1 error … 4 debug. */
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    int log_level;
    /* Memory: both or neither. alloc returns 64-byte-aligned memory or NULL. */
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *ptr, size_t bytes);
    void *alloc_user;
    /* On machines with several memory nodes (sockets): "auto" binds threads to the cores of one
     * node and their memory to that node, "0" or "0,2-3" to these, "off" leaves both to the system.
     * With threads 0 there is one for each core, not for its further hardware threads. Callers of
     * sonde_session_run are bound for the length of the call. NULL = SONDE_NUMA, else "off". */
    const char *numa;
} sonde_context_options;

SONDE_API sonde_status sonde_context_create(const sonde_context_options *options,
                                            sonde_context **context, sonde_error *err);
SONDE_API void sonde_context_release(sonde_context *context);
/* Warnings and errors that the process default context logs (NULL: discarded). May be called
 * at any time, `log` from any thread, one call at a time; it must not use the library. Without
 * effect where SONDE_LOG is set: they go to stderr then. */
SONDE_API void sonde_default_log(void (*log)(void *user, int level, const char *line), void *user);
/* Writes the files that SONDE_TRACE and SONDE_PROFILE ask for now, as the end of the process does;
 * what runs later is not in them. For programs that leave without `exit`: by _exit, by exec, or
 * because of a signal that they handle. Not from a signal handler. Does nothing without these
 * variables. */
SONDE_API void sonde_environment_finish(void);
SONDE_API int sonde_context_threads(sonde_context *context);
SONDE_API const char *sonde_context_cpu(sonde_context *context); /* "avx512" */

/* ---------------------------------------------------------------- values
 * A tensor, sequence, optional or map; refcounted. */
typedef struct sonde_value sonde_value;

/* A tensor with memory of its own, copied from `data` (NULL: zeroed). `bytes` must be the exact
 * size. */
SONDE_API sonde_status sonde_tensor_create(sonde_context *context, sonde_dtype dtype,
                                           const int64_t *dims, size_t rank, const void *data,
                                           size_t bytes, sonde_value **value, sonde_error *err);
/* A tensor over the caller's memory, which must be aligned for its element type and outlive the
 * value and every run that uses it. As an output it is written to. */
SONDE_API sonde_status sonde_tensor_borrow(sonde_context *context, sonde_dtype dtype,
                                           const int64_t *dims, size_t rank, void *data,
                                           size_t bytes, sonde_value **value, sonde_error *err);
SONDE_API sonde_status sonde_tensor_create_strings(sonde_context *context, const int64_t *dims,
                                                   size_t rank, const sonde_string *elements,
                                                   sonde_value **value, sonde_error *err);
SONDE_API sonde_status sonde_sequence_create(sonde_context *context, sonde_value *const *items,
                                             size_t count, sonde_value **value, sonde_error *err);
/* item NULL: an optional that holds nothing. */
SONDE_API sonde_status sonde_optional_create(sonde_context *context, sonde_value *item,
                                             sonde_value **value, sonde_error *err);
/* keys: a tensor of integers or strings; values: a tensor of as many elements. */
SONDE_API sonde_status sonde_map_create(sonde_context *context, sonde_value *keys,
                                        sonde_value *values, sonde_value **value, sonde_error *err);
SONDE_API sonde_value *sonde_value_retain(sonde_value *value);
SONDE_API void sonde_value_release(sonde_value *value);

SONDE_API sonde_kind sonde_value_kind(const sonde_value *value);
SONDE_API sonde_dtype sonde_tensor_dtype(const sonde_value *value); /* UNDEFINED: not a tensor */
SONDE_API size_t sonde_tensor_rank(const sonde_value *value);
SONDE_API const int64_t *sonde_tensor_dims(const sonde_value *value);
SONDE_API int64_t sonde_tensor_count(const sonde_value *value); /* elements */
SONDE_API size_t sonde_tensor_bytes(const sonde_value *value);
/* Dense, row-major; string tensors: sonde_string elements. NULL for anything but a tensor. */
SONDE_API void *sonde_tensor_data(const sonde_value *value);
/* Sequences and optionals: how many items, and a new reference to one. A map has two: a tensor of
 * its keys and a tensor of its values. */
SONDE_API size_t sonde_value_count(const sonde_value *value);
SONDE_API sonde_status sonde_value_item(const sonde_value *value, size_t index, sonde_value **item,
                                        sonde_error *err);

/* ---------------------------------------------------------------- models */
typedef struct sonde_model sonde_model;

typedef struct sonde_model_options {
    size_t struct_size;
    /* Read the model and its external data instead of mapping them. If a mapped file is truncated
     * while the model or one of its sessions exists, the process gets SIGBUS. */
    int no_mmap;
    const char *external_dir; /* folder of external data; NULL = the model's folder */
} sonde_model_options;

/* `path`: a file, or a built-in model, "zoo:NAME" or "zoo:NAME?batch=8" (experimental/zoo.h). */
SONDE_API sonde_status sonde_model_load(sonde_context *context, const char *path,
                                        const sonde_model_options *options, sonde_model **model,
                                        sonde_error *err);
/* `data` is copied. */
SONDE_API sonde_status sonde_model_load_memory(sonde_context *context, const void *data,
                                               size_t bytes, const sonde_model_options *options,
                                               sonde_model **model, sonde_error *err);
SONDE_API void sonde_model_release(sonde_model *model);
SONDE_API int64_t sonde_model_ir_version(const sonde_model *model);
SONDE_API const char *sonde_model_producer(const sonde_model *model);
/* Metadata of the model file; strings are "" if they are not set. */
typedef struct sonde_model_info {
    size_t struct_size;
    const char *producer, *producer_version;
    const char *domain, *description; /* "ai.example", documentation of the model */
    const char *graph_name, *graph_description;
    int64_t version; /* of the model, as its author counts */
} sonde_model_info;
SONDE_API sonde_status sonde_model_info_get(const sonde_model *model, sonde_model_info *info,
                                            sonde_error *err);
SONDE_API size_t sonde_model_metadata_count(const sonde_model *model);
SONDE_API const char *sonde_model_metadata_key(const sonde_model *model, size_t index);
SONDE_API const char *sonde_model_metadata_value(const sonde_model *model, size_t index);

/* ---------------------------------------------------------------- sessions
 * A model that is ready to run, after all passes and with packed weights. Sessions with equal
 * options share one program of their model, so packed weights exist only once. */
typedef struct sonde_session sonde_session;

typedef struct sonde_session_options {
    size_t struct_size;
    int no_optimize; /* no passes, but what QuantizeLinear and DequantizeLinear mean stays: a pass
                        with the name "fuse-qdq" that disabled_passes may contain */
    const char *const *disabled_passes; /* names, see sonde_pass_name */
    size_t disabled_pass_count;
    int no_prepack; /* do not pack weights beforehand */
    int threads;    /* for this session; 0 = the context's */
    int plan_only;  /* for sonde_inspect_session only, cannot run: no weights
                       are packed, so the weights in the file are not read */
    /* Folder in which packed weights are cached and from which they are mapped the next time; it is
     * created if needed. NULL: no cache. "": the user's cache folder, $XDG_CACHE_HOME/sonde or
     * ~/.cache/sonde. A folder that cannot be written to, is a symbolic link, belongs to another
     * user or is writable by other users is not used; this only causes a warning. If a file does
     * not match its checksums, there is also a warning, and the weights are packed again. */
    const char *weights_cache;
    /* Folder for tuning results. The first run with new shapes times several block sizes for every
     * matrix product and convolution, which takes seconds, and stores the fastest for this machine,
     * version and number of threads. NULL: no tuning, the cost model selects. "", folders that are
     * not accepted and damaged files: as for weights_cache. */
    const char *tune;
    /* Treat denormal numbers as 0 during a run, on all its threads; the caller's own setting is
     * restored afterwards. Arithmetic on them is many times slower on most processors. */
    int flush_denormals;
    /* The number of this session among several that run in parallel, from 0: profiles show the
     * iterations of each instance separately. */
    int instance;
    sonde_precision precision; /* 0: as the model file has its weights */
    const char *numa;          /* as for contexts; NULL: the context's */
    /* How many sessions run in parallel; 0 or 1: this one alone. With threads 0 they share the
     * context's threads; with numa each is on one of the nodes, in turn, on cores of its own and
     * with packed weights on that node, which those on one node share. */
    int instances;
} sonde_session_options;

SONDE_API sonde_status sonde_session_create(sonde_model *model,
                                            const sonde_session_options *options,
                                            sonde_session **session, sonde_error *err);
SONDE_API void sonde_session_release(sonde_session *session);

/* Dims: >= 0 known, -1 symbolic. dim_names[i] is NULL for known dims and dims without a name. */
typedef struct sonde_type_info {
    size_t struct_size;
    const char *name;
    sonde_kind kind;
    sonde_dtype dtype; /* tensor; for sequences and optionals of tensors: of the element */
    int rank;          /* -1 unknown */
    const int64_t *dims;
    const char *const *dim_names;
    const char *text;   /* "f32[N, 3, 224, 224]" */
    int optional_input; /* has a default (an initializer of the same name) */
    const char
        *onnx_type; /* as ONNX writes types: "tensor(float)", "seq(map(int64,tensor(float)))" */
} sonde_type_info;

SONDE_API size_t sonde_session_input_count(const sonde_session *session);
SONDE_API size_t sonde_session_output_count(const sonde_session *session);
SONDE_API const char *sonde_session_input_name(const sonde_session *session, size_t index);
SONDE_API const char *sonde_session_output_name(const sonde_session *session, size_t index);
SONDE_API sonde_status sonde_session_input_info(const sonde_session *session, size_t index,
                                                sonde_type_info *info, sonde_error *err);
SONDE_API sonde_status sonde_session_output_info(const sonde_session *session, size_t index,
                                                 sonde_type_info *info, sonde_error *err);

/* Set to non-zero by sonde_cancel to make a run stop with SONDE_CANCELLED after the current step;
 * some long steps (loops, recurrent layers) end earlier. sonde_cancel may be called from any thread
 * and from a signal handler. Profiles do not include a cancelled run. */
typedef struct sonde_cancel_token sonde_cancel_token;
SONDE_API sonde_status sonde_cancel_token_create(sonde_cancel_token **token, sonde_error *err);
SONDE_API void sonde_cancel_token_release(sonde_cancel_token *token);
SONDE_API void sonde_cancel(sonde_cancel_token *token);
SONDE_API void sonde_cancel_reset(sonde_cancel_token *token);

typedef struct sonde_run_options {
    size_t struct_size;
    sonde_cancel_token *cancel;
    int timing; /* print the timing table of this run on stderr; a warm-up run has none */
    int timing_sort_by_name;
    int timing_by_shape;
    const char *timing_filter; /* "Conv,MatMul" */
    int verbose;               /* print every step as it runs, on stderr */
    int warmup;                /* mark this run as a warm-up in profiles */
    /* Asked between two steps, while steps are tuned, and while the run waits for another that
     * prepares what both need; on the thread that runs, ten times a second once it has taken a
     * tenth of one: non-zero makes it stop as sonde_cancel does. NULL: nobody is asked. */
    int (*interrupt)(void *user);
    void *interrupt_user;
    /* The trace that the caller is in, as W3C Trace Context writes it ("00-…-…-01"); a text that
     * the standard does not allow is ignored. Where the run is recorded, its spans belong to that
     * trace; if the caller does not sample it (the last bit is 0), sampling leaves it out, too. */
    const char *traceparent;
    /* Not NULL: this run is recorded, whatever the profilers do, and *profile receives a profile of
     * it alone: times, names and shapes of its operators. It is NULL if the run fails or memory is
     * out, and has no operators where the recorder was full. Release it. */
    struct sonde_profile **profile;
} sonde_run_options;

/* Runs the model. `input_names` may name graph inputs or inner values (whose producers are then
 * skipped); NULL: the graph's inputs in order. `output_names` may name graph outputs or inner
 * values; NULL: the graph's outputs in order. Other names than the graph's own have to be prepared
 * first, like a session; a session keeps the 8 sets of names that were used last. On entry
 * outputs[i] is NULL (a fresh value is made) or a tensor of the right type and shape to be written
 * to. */
SONDE_API sonde_status sonde_session_run(sonde_session *session, const sonde_run_options *options,
                                         const char *const *input_names, sonde_value *const *inputs,
                                         size_t input_count, const char *const *output_names,
                                         sonde_value **outputs, size_t output_count,
                                         sonde_error *err);

/* A set of named values, as partial runs return. */
typedef struct sonde_value_set sonde_value_set;
/* Runs everything that can be computed from these feeds and returns the values the rest of the
 * model needs: feed them, with the missing inputs, to sonde_session_run. */
SONDE_API sonde_status sonde_session_partial_run(sonde_session *session,
                                                 const sonde_run_options *options,
                                                 const char *const *input_names,
                                                 sonde_value *const *inputs, size_t input_count,
                                                 sonde_value_set **set, sonde_error *err);
SONDE_API size_t sonde_value_set_count(const sonde_value_set *set);
SONDE_API const char *sonde_value_set_name(const sonde_value_set *set, size_t index);
SONDE_API sonde_value *sonde_value_set_value(const sonde_value_set *set,
                                             size_t index); /* borrowed */
SONDE_API void sonde_value_set_release(sonde_value_set *set);

/* ---------------------------------------------------------------- profiling
 * The profiler records every session of the context. Start, pause and stop take effect between
 * runs. A NULL context is the default context of the process. */
typedef struct sonde_profile sonde_profile;

SONDE_API sonde_status sonde_profiler_start(sonde_context *context, int level, sonde_error *err);
/* The same, but records are written to a .pftrace file while the program runs. Memory use stays
 * constant, and after a crash the file is readable up to the last tenth of a second.
 * sonde_profiler_stop with `profile` NULL ends it. */
SONDE_API sonde_status sonde_profiler_stream(sonde_context *context, int level, const char *path,
                                             sonde_error *err);
/* What its user calls a profile: "host", "worker", "version" and keys of his own. Any text. */
typedef struct sonde_label {
    const char *key, *value;
} sonde_label;
/* Starts the profiler with all options. */
typedef struct sonde_profiler_options {
    size_t struct_size;
    int level;        /* 1 to 3 */
    const char *path; /* streamed to, as by sonde_profiler_stream; NULL: kept in memory */
    /* Categories of spans in traces (.json, .pftrace), such as "operator,user"; NULL: all of model,
     * iteration, operator, executor, memory, thread, user and device. Tables and reports always
     * use all spans. */
    const char *categories;
    /* Sampling, for programs that are profiled as long as they run: one run of `sample_every` is
     * recorded, at level 1, and others take the way without a recorder. 0: every run is recorded.
     * A run is skipped if recording it would take more than this share of the time of recent runs
     * (0: 0.01; from 1 on there is no bound). Profilers that sample at the same time record the
     * same runs: as many as the one that wants most. */
    int sample_every;
    double max_overhead;
    /* What the profile is called by those who join several (docs/fleet.md): copied; of two with one
     * key the later counts, and one with the value "" takes the key away. They come after those of
     * SONDE_LABELS, which come after "host" (the machine's name) and "worker" (the process's
     * number). At most 64, keys of 255 and values of 4096 bytes. */
    const sonde_label *labels;
    size_t label_count;
} sonde_profiler_options;
SONDE_API sonde_status sonde_profiler_start_with(sonde_context *context,
                                                 const sonde_profiler_options *options,
                                                 sonde_error *err);
/* Stops and returns the profile. With `profile` NULL it only stops: the records are kept for
 * sonde_profiler_get until sonde_profiler_clear or the next start. */
SONDE_API sonde_status sonde_profiler_stop(sonde_context *context, sonde_profile **profile,
                                           sonde_error *err);
/* Nothing is recorded between pause and resume; it is still one profile. */
SONDE_API sonde_status sonde_profiler_pause(sonde_context *context, sonde_error *err);
SONDE_API sonde_status sonde_profiler_resume(sonde_context *context, sonde_error *err);
/* The profile of everything recorded so far, running or stopped; the records are kept. */
SONDE_API sonde_status sonde_profiler_get(sonde_context *context, sonde_profile **profile,
                                          sonde_error *err);
/* The same, written to a file as by sonde_profile_save. */
SONDE_API sonde_status sonde_profiler_dump(sonde_context *context, const char *path,
                                           sonde_error *err);
/* Discards the records; an active profiler continues. */
SONDE_API sonde_status sonde_profiler_clear(sonde_context *context, sonde_error *err);
SONDE_API void sonde_profile_release(sonde_profile *profile);

/* A labelled part of the calling thread's work, shown around the inferences in it. Records can be
 * nested. Runs inside a warm-up record count as warm-up. *record is NULL if no profiler is active;
 * ending NULL is allowed. The label is copied. */
typedef struct sonde_record sonde_record;
SONDE_API sonde_status sonde_record_begin(sonde_context *context, const char *label, int warm_up,
                                          sonde_record **record, sonde_error *err);
SONDE_API void sonde_record_end(sonde_record *record); /* on the same thread; NULL accepted */

/* Scopes for your own code. They cost a few nanoseconds while no profiler is active. Use the
 * macros; begin returns 0 if nothing is recorded, and end then does nothing. */
SONDE_API uint64_t sonde_scope_begin(sonde_context *context);
SONDE_API void sonde_scope_end(sonde_context *context, uint64_t begin, const char *name,
                               const char *category, const char *args);
typedef struct sonde_scope {
    uint64_t begin;
    const char *name, *category;
    char args[112];
} sonde_scope;
SONDE_API void sonde_scope_leave(sonde_scope *scope);
SONDE_API sonde_scope sonde_scope_enter(const char *name, const char *category, const char *fmt,
                                        ...) SONDE_PRINTF(3, 4);
#if defined(__GNUC__)
#define SONDE_SCOPE_JOIN_(a, b) a##b
#define SONDE_SCOPE_NAME_(line) SONDE_SCOPE_JOIN_(sonde_scope_of_line_, line)
/* From here to the end of the block: SONDE_SCOPE("decode"); */
#define SONDE_SCOPE(name) SONDE_SCOPE_ARGS(name, "user", "%s", "")
/* With a category and text: SONDE_SCOPE_ARGS("decode", "io", "frame %d", n); The category is what
 * traces show; whatever it is, "user" selects the span. NULL and "" are "user". */
#define SONDE_SCOPE_ARGS(name, category, ...)                                                      \
    __attribute__((cleanup(sonde_scope_leave), unused)) sonde_scope SONDE_SCOPE_NAME_(__LINE__) =  \
        sonde_scope_enter(name, category, __VA_ARGS__)
#endif

typedef struct sonde_table_options {
    size_t struct_size;
    int sort_by_name, by_shape, by_node;
    const char *filter_op; /* "Conv,MatMul" */
    int width; /* of the terminal: names are shortened to it, and extra columns added as far as they
                * fit; 0 = the plain table with whole names */
    int color;
} sonde_table_options;
/* The timing table, piece by piece. */
SONDE_API sonde_status sonde_profile_table(const sonde_profile *profile,
                                           const sonde_table_options *options,
                                           void (*write)(void *user, const char *text, size_t size),
                                           void *user, sonde_error *err);
/* Other views of a profile as text, by the inferences of which it consists. Warm-up runs are left
 * out of all figures. */
typedef enum sonde_report {
    SONDE_REPORT_SUMMARY = 1,        /* counts and latencies over all inferences */
    SONDE_REPORT_SUMMARY_BY_RECORD,  /* one block for each record's label */
    SONDE_REPORT_INFERENCES,         /* one line per inference */
    SONDE_REPORT_EXECUTIONS,         /* what ran on a device: total, run, waiting */
    SONDE_REPORT_OPERATORS,          /* average and count of each operator */
    SONDE_REPORT_EXTERNAL_OPERATORS, /* host operators, one line per execution */
    SONDE_REPORT_MEMORY              /* who holds memory, when it peaks, the arena as a map */
} sonde_report;
SONDE_API sonde_status sonde_profile_report(const sonde_profile *profile, sonde_report kind,
                                            void (*write)(void *user, const char *text,
                                                          size_t size),
                                            void *user, sonde_error *err);
typedef struct sonde_report_options {
    size_t struct_size;
    int width; /* columns that the map of SONDE_REPORT_MEMORY may take; 0 = 80 */
} sonde_report_options;
/* The same with options, which may be NULL. */
SONDE_API sonde_status sonde_profile_report_with(
    const sonde_profile *profile, sonde_report kind, const sonde_report_options *options,
    void (*write)(void *user, const char *text, size_t size), void *user, sonde_error *err);
/* The suffix of `path` picks the format (".json" = Chrome trace); "-" is not a path here. */
SONDE_API sonde_status sonde_profile_save(const sonde_profile *profile, const char *path,
                                          sonde_error *err);
/* What .csv and .xlsx assume when they estimate the latency with sparse weights, 0 = the default in
 * brackets; a ratio is the latency now divided by the latency then. And which spans traces show. */
typedef struct sonde_export_options {
    size_t struct_size;
    double sparse_ratio_90, sparse_ratio_80, sparse_ratio_70; /* at so many % zeros [4, 2.5, 2] */
    double sparse_ratio_others;                               /* at any other share [1] */
    double sparse_aim;      /* % of zeros that are aimed at, below 100 [90] */
    const char *categories; /* as in sonde_profiler_options; NULL: what was chosen there */
    const char *format;     /* ".summary.json", whatever the path is called; NULL: its suffix */
    int folded_nodes;       /* .csv, .xlsx: also rows, at zero, of nodes that were folded away */
    /* Measured ratios (sonde/experimental/whatif.h), which count before those above; NULL: none. */
    const sonde_sparse_ratio *measured;
    size_t measured_count;
    /* The report page (.html): a profile it is compared with, which came before; what both are
     * called there; findings and scenarios beside those of the profile; and whether the page asks
     * whoever serves it for newer data, which lie beside it as "data" in the format .page.gz. */
    const sonde_profile *before;
    const char *before_title, *title;
    const sonde_finding *findings;
    size_t finding_count;
    const sonde_scenario_time *scenarios;
    size_t scenario_count;
    int live;
    /* Bytes of a file that lists spans (.json, .pftrace, .html, .page.gz, .otlp.json): as many runs
     * as fit have spans in it, and its figures are those of all runs. 0 = 256 MiB, below 0 = no
     * limit. */
    int64_t trace_limit;
    const char *measured_about; /* when and where the measured ratios were; NULL: not said */
} sonde_export_options;
SONDE_API sonde_status sonde_profile_save_with(const sonde_profile *profile, const char *path,
                                               const sonde_export_options *options,
                                               sonde_error *err);
/* The same, through a callback instead of to a file; a Chrome trace unless `format` is set. */
SONDE_API sonde_status sonde_profile_write(const sonde_profile *profile,
                                           const sonde_export_options *options,
                                           void (*write)(void *user, const char *data, size_t size),
                                           void *user, sonde_error *err);
/* Loads a saved profile: a .pftrace or .json of sonde, or a profile of ONNX Runtime or PyTorch. The
 * format is detected from the content, not the name. A .pftrace may be truncated. */
SONDE_API sonde_status sonde_profile_load(sonde_context *context, const char *path,
                                          sonde_profile **profile, sonde_error *err);
/* Options for loading files other than models. A file is mapped only while it is loaded; if another
 * process truncates it during that time, the process gets SIGBUS. */
typedef struct sonde_load_options {
    size_t struct_size;
    int no_mmap; /* read the file instead of mapping it: a truncated file is then an error */
    /* .npz and .safetensors: asked for each array before it is read or unpacked; 0: it is left out.
     * An archive of a few KiB may contain GiB of zeros. NULL: all are read. */
    int (*wants)(void *user, const char *name, const int64_t *dims, size_t rank);
    void *wants_user;
} sonde_load_options;
SONDE_API sonde_status sonde_profile_load_with(sonde_context *context, const char *path,
                                               const sonde_load_options *options,
                                               sonde_profile **profile, sonde_error *err);
/* Names of passes, formats and categories, for --help; NULL past the end. */
SONDE_API const char *sonde_pass_name(size_t index);
SONDE_API const char *sonde_pass_summary(size_t index);
SONDE_API const char *sonde_format_suffix(size_t index);
SONDE_API const char *sonde_category_name(size_t index);

#ifdef __cplusplus
}
#endif
#endif
