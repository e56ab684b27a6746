/* SPDX-License-Identifier: Apache-2.0 */
/* The public objects laid open to the files of this room. Each is a refcount around an object of a
 * lower room plus a reference to the context, whose allocator everything came from. */
#ifndef SN_API_INTERNAL_H
#define SN_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "exec/session.h"
#include "export/export.h"
#include "findings/findings.h"
#include "graph/model.h"
#include "metrics/metrics.h"
#include "profile/profile.h"
#include "records/records.h"
#include "records/stream.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/save.h"
#include "sonde/sonde.h"

struct sn_binding;

/* What another room keeps with a context, until that goes. */
typedef struct sn_attachment {
    const void *key; /* whose it is: an address of that room */
    void (*free)(sonde_context *c, struct sn_attachment *a);
    struct sn_attachment *next;
} sn_attachment;

struct sonde_context {
    _Atomic int refs;
    sn_context core;
    sn_allocator alloc;
    void *(*user_alloc)(void *user, size_t bytes);
    void (*user_free)(void *user, void *ptr, size_t bytes);
    void *user;
    void (*user_log)(void *user, int level, const char *line);
    void *log_user;

    sn_records records; /* its lock is also that of what follows */
    sn_machine machine;
    struct { /* sonde_profiler_*: profiler.c */
        sn_observer observer;
        int level;           /* of sonde_profiler_start; 0 = stopped */
        int kept;            /* level of stopped records that wait for get; 0 = none */
        int streamed;        /* level of sonde_profiler_stream; 0 = off */
        bool paused;         /* between pause and resume */
        uint64_t start;      /* ticks */
        uint32_t categories; /* that traces show; 0 = all */
        sn_labels labels;    /* of its options */
        sn_stream *stream;   /* the trace being written; NULL: none */
    } profiler;
    struct { /* sonde_memory_*: memory_profiler.c */
        sn_observer observer;
        int state; /* 0 off, 1 running, 2 stopped with records kept */
        uint64_t start;
    } memory;
    struct { /* SONDE_TRACE and SONDE_PROFILE: env.c */
        sn_observer observer;
        sn_stream *stream; /* being written; NULL: none */
        bool failed;       /* the trace cannot be written; said once */
    } env;
    sn_attachment *attachments;
    sn_metrics *_Atomic metrics; /* NULL: nobody wants any */
    _Atomic double ns_per_tick;  /* of watched runs; 0: none were */
    char system_root[512];       /* SONDE_SYSTEM_ROOT, or "" */

    sonde_context *next; /* live contexts of the process; guarded by the process's lock */
};

struct sonde_value {
    _Atomic int refs;
    sonde_context *context;
    sn_slot slot;
};

struct sonde_model {
    _Atomic int refs;
    sonde_context *context;
    sn_model *core;
    char *name; /* "mobilenet.onnx", "regnet_x_400mf" */
    size_t name_bytes;
    sn_known_model known;
};

struct sonde_session {
    _Atomic int refs;
    sonde_model *model;
    sn_session *core;
    sn_arena arena;
    const char *nodes, *cpus, *memory; /* where it is bound; "" */
    sonde_type_info *inputs, *outputs;
    const char **input_names, **output_names;
    size_t n_inputs, n_outputs;
    bool has_defaults; /* inputs with a default come last: the program itself lacks them */
    /* For who watches its runs: where they are counted, found at the first that is, and how many
     * records one leaves. */
    sn_series *_Atomic series;
    _Atomic uint32_t records_of_run;
    uint32_t instance;
};

struct sonde_value_set {
    sonde_context *context;
    sn_arena arena; /* names */
    SN_VEC(sonde_value *) values;
    SN_VEC(const char *) names;
};

struct sonde_profile {
    sonde_context *context;
    sn_profile *core;
};

/* Copies the caller's option struct into a zeroed one of ours, whatever version he was built with.
 */
#define SN_OPTIONS(own, theirs, err)                                                               \
    do {                                                                                           \
        memset(&(own), 0, sizeof(own));                                                            \
        if (theirs) {                                                                              \
            if ((theirs)->struct_size < sizeof(size_t))                                            \
                return sn_fail((err), SONDE_INVALID_ARGUMENT,                                      \
                               "struct_size of the options is not set; initialise the struct "     \
                               "with SONDE_INIT");                                                 \
            memcpy(&(own), (theirs),                                                               \
                   (theirs)->struct_size < sizeof(own) ? (theirs)->struct_size : sizeof(own));     \
        }                                                                                          \
        (own).struct_size = sizeof(own);                                                           \
    } while (0)

/* Copies a struct of ours into one of the caller's version; both begin with struct_size. */
static inline sonde_status sn_api_copy_out(void *to, const void *from, size_t ours,
                                           sonde_error *err)
{
    size_t theirs;
    memcpy(&theirs, to, sizeof theirs);
    if (theirs < sizeof(size_t))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size is not set; initialise the struct with SONDE_INIT");
    memcpy(to, from, theirs < ours ? theirs : ours);
    memcpy(to, &theirs, sizeof theirs);
    return SONDE_OK;
}

/* A required pointer argument. */
#define SN_REQUIRE(ptr, err)                                                                       \
    do {                                                                                           \
        if (!(ptr))                                                                                \
            return sn_fail((err), SONDE_INVALID_ARGUMENT, "%s: %s is NULL", __func__, #ptr);       \
    } while (0)

/* ---- context.c ---- */
/* A new reference to `c`, or to the process default when it is NULL. */
sonde_status sn_api_context(sonde_context *c, sonde_context **out, sonde_error *err);
sonde_context *sn_api_context_ref(sonde_context *c);
/* `c`, or the process default if there is one already; no new reference. */
sonde_context *sn_api_context_if_made(sonde_context *c);
/* With the machine's lock held: what a room attached; NULL: nothing yet. */
sn_attachment *sn_api_attached(const sonde_context *c, const void *key);
void sn_api_attach(sonde_context *c, sn_attachment *a);

/* Who is told of a context's life; a row of observers.c. Any function may be NULL. */
typedef struct sn_context_observer {
    sonde_status (*made)(sonde_context *c, sonde_error *err); /* nobody else has it yet */
    void (*forked)(sonde_context *c); /* in a forked child, with the records' lock held */
    void (*ending)(sonde_context *c); /* it is released, or the process ends */
    bool (*wants_exit)(void);         /* whether `ending` is to be called at the process's end */
} sn_context_observer;
extern const sn_context_observer *const sn_context_observers[]; /* and a NULL */
extern const sn_context_observer sn_profiler_observer, sn_memory_observer, sn_env_observer,
    sn_metrics_observer;

/* ---- signals.c ---- */
/* Has `finish` called before a signal ends the process, once; in a forked child again. */
void sn_api_watch_signals(void (*finish)(void));
void sn_api_watch_signals_in_child(void);

/* ---- placement.c ---- */
/* Writes down where a new session is bound. */
sonde_status sn_api_describe_placement(sonde_session *s, sonde_error *err);

/* ---- findings.c ---- */
/* Public findings around `core`, which it takes over, also on failure. */
sonde_status sn_api_findings(sonde_context *c, sn_findings *core, sonde_findings **findings,
                             sonde_error *err);

/* ---- truth.c ---- */
/* Points in[i] at a copy where its booleans have bytes other than 0 and 1. `*clean`: NULL, or then
 * n slots that are the caller's to clear and free, also after a failure. */
sonde_status sn_api_clean_truth(const sn_slot **in, size_t n, sn_allocator *alloc, sn_slot **clean,
                                sonde_error *err);

/* ---- value.c ---- */
/* Takes over what `slot` holds (it becomes NONE) on success. */
sonde_status sn_api_value(sonde_context *c, sn_slot *slot, sonde_value **value, sonde_error *err);
sonde_status sn_api_set_new(sonde_context *c, sonde_value_set **set, sonde_error *err);
/* The name is copied; the reference to the value is taken over on success. */
sonde_status sn_api_set_add(sonde_value_set *set, const char *name, sonde_value *value,
                            sonde_error *err);

/* ---- text.c ---- */
/* "seq(tensor(float))" into buf; always terminated. */
/* A value of this name and type; texts go to the arena, symbols are those of `g`. */
sonde_status sn_api_describe(sn_arena *arena, const sn_graph *g, const char *name,
                             const sn_type *type, sonde_type_info *info, sonde_error *err);
const char *sn_api_onnx_type(const sn_type *type, char *buf, size_t cap);

/* ---- model.c ---- */
/* Takes over the reference to `core`, also on failure. */
sonde_status sn_api_model(sonde_context *c, sn_model *core, const char *name, sonde_model **model,
                          sonde_error *err);

/* ---- zoo_api.c ---- */
/* Whether this is "zoo:NAME" or "zoo:NAME?dim=n" and not the path of a file. */
bool sn_api_is_zoo(const char *path);

/* ---- inspect.c ---- */
/* A graph of the model to a file; `sparse` and `source` (may be NULL) as in
 * sn_model_save_options. */
sonde_status sn_api_save(const sonde_model *model, const sn_graph *graph, const char *path,
                         const sonde_save_options *options, const sn_map *sparse,
                         const sonde_model *source, sonde_error *err);
/* The binding a run with these inputs would use; one reference for the caller. */
sonde_status sn_api_bind(sonde_session *session, const char *const *names,
                         sonde_value *const *inputs, size_t count, struct sn_binding **bound,
                         sonde_error *err);

/* ---- session.c ---- */
bool sn_api_cancelled(const sonde_cancel_token *token);

/* ---- watch.c ---- */
/* What looks at single runs: sampling, metrics, and a caller who says whose trace it is. */
typedef struct sn_run_watch {
    uint64_t t0;
    sn_sampling sample;
    sn_caller caller;
    sn_series *series; /* NULL: not counted */
    uint64_t turned_away;
    size_t records; /* of this thread, before */
} sn_run_watch;
static inline bool sn_api_is_watched(sonde_context *c, const sonde_run_options *o)
{
    return o->traceparent || atomic_load_explicit(&c->metrics, memory_order_relaxed) ||
           atomic_load_explicit(&c->records.sampler.every, memory_order_relaxed);
}
/* Around a run of a session; the first says in `cfg` what it found. */
void sn_api_watch_begin(sn_run_watch *w, sonde_session *s, const sonde_run_options *o,
                        sn_run_config *cfg);
void sn_api_watch_end(const sn_run_watch *w, sonde_session *s, const sn_run_config *cfg,
                      sonde_status st);
/* Before the first run is watched, with the records' lock held; it takes about a millisecond once.
 */
void sn_api_watch_clock(sonde_context *c);

/* What the options say of sampling, checked, into an observer and its level. */
sonde_status sn_api_sampling(const sonde_profiler_options *o, sn_observer *observer, int *level,
                             sonde_error *err);

/* ---- profiler.c ---- */
/* A public profile around `core`, which it takes over, also on failure. */
sonde_status sn_api_profile(sonde_context *c, sn_profile *core, sonde_profile **profile,
                            sonde_error *err);

/* The caller's labels, checked and copied. */
sonde_status sn_api_put_labels(sn_labels *to, const sonde_label *list, size_t n, sonde_error *err);

/* ---- scope.c ---- */
/* Whether a warm-up record is open on the calling thread. */
bool sn_api_in_warmup(void);

/* ---- env.c ---- */
enum { SN_API_MAX_INSTANCES = 100000 }; /* sessions or processes side by side */
/* What the environment asks for; read once per process. */
typedef struct sn_env {
    bool timing;
    const char *timing_text; /* "sort=name …" */
    const char *trace_path;  /* SONDE_TRACE, or NULL */
    bool trace_streams;      /* it is a .pftrace, written while the program runs */
    const char *profile_dir; /* SONDE_PROFILE: a folder, or NULL */
    int instances;    /* SONDE_INSTANCES: profiles are numbered 0 … instances - 1; 0 = unset */
    int level;        /* SONDE_LEVEL, 0 = unset */
    sn_labels labels; /* SONDE_LABELS */
    /* SONDE_TRACE_LIMIT, bytes; 0: none. Files that are written while a program runs have one only
     * where it is set. */
    uint64_t trace_limit, stream_limit;
} sn_env;
const sn_env *sn_api_env(void);
/* Prints the table of one run, begun after `since` ticks, on stderr. `options` NULL: as
 * SONDE_TIMING says. The caller is among the observers since then. */
void sn_api_print_timing(sonde_context *c, uint64_t since, uint32_t run,
                         const sn_table_options *options);
/* SONDE_TRACE and the like are not about this context. */
sonde_status sn_api_ignore_env(sonde_context *c, sonde_error *err);
/* Starts the SONDE_TRACE file of this context if it is one that is written meanwhile. */
void sn_api_begin_trace(sonde_context *c);
#endif
