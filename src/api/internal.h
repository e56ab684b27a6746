/* SPDX-License-Identifier: Apache-2.0 */
/* The public objects laid open to the files of this room. Each is a refcount around an object of a
 * lower room plus a reference to the context, whose allocator everything came from. */
#ifndef SN_API_INTERNAL_H
#define SN_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "api/machine.h"
#include "exec/session.h"
#include "export/export.h"
#include "graph/model.h"
#include "profile/profile.h"
#include "sonde/sonde.h"

typedef struct sn_stream sn_stream;
typedef struct sn_reader { /* somebody who reads records now; lies on his stack */
    uint64_t since;        /* ticks: the earliest ones he wants */
    struct sn_reader *next;
} sn_reader;
typedef struct sn_op_cache sn_op_cache;
struct sn_binding;

struct sonde_context {
    _Atomic int refs;
    sn_context core;
    sn_allocator alloc;
    void *(*user_alloc)(void *user, size_t bytes);
    void (*user_free)(void *user, void *ptr, size_t bytes);
    void *user;
    void (*user_log)(void *user, int level, const char *line);
    void *log_user;

    /* Who may record now, and who may forget records: a call that may record counts itself in
     * `in_flight` first and then looks at `clearing`; the one who clears does it the other way
     * round, so one of them always sees the other (sequentially consistent). */
    _Atomic int in_flight;
    _Atomic int clearing;
    pthread_mutex_t lock;    /* everything below, and clearing */
    int api_level;           /* of sonde_profiler_start; 0 = stopped */
    bool api_paused;         /* between pause and resume */
    int api_kept;            /* level of stopped records that wait for get; 0 = none */
    int stream_level;        /* of sonde_profiler_stream; 0 = off */
    int env_level;           /* of SONDE_TRACE; 0 = off */
    uint64_t api_start;      /* ticks at sonde_profiler_start */
    uint32_t api_categories; /* that traces show; 0 = all */
    int memory; /* the memory profiler: 0 off, 1 running, 2 stopped with records kept */
    uint64_t memory_start;
    uint64_t fork_ticks; /* when this process was forked off; what came before is the parent's */
    sn_stream *api_stream, *env_stream; /* traces being written */
    sn_stream *streams;                 /* all of them, also those that are being closed */
    bool env_failed;                    /* SONDE_TRACE cannot be written; said once */
    sn_reader *readers;                 /* of records, now */
    struct sonde_recording *recordings; /* all there are */
    sonde_model *models;                /* live ones, for their names */
    sn_machine machine;
    sn_op_cache *op_cache; /* of the operator profiler; with the machine's lock held */

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
    sonde_model *next; /* of the context */
};

struct sonde_session {
    _Atomic int refs;
    sonde_model *model;
    sn_session *core;
    sn_arena arena;
    sonde_type_info *inputs, *outputs;
    const char **input_names, **output_names;
    size_t n_inputs, n_outputs;
    bool has_defaults; /* inputs with a default come last: the program itself lacks them */
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
                               "struct_size of the options is not set; use SONDE_INIT");           \
            memcpy(&(own), (theirs),                                                               \
                   (theirs)->struct_size < sizeof(own) ? (theirs)->struct_size : sizeof(own));     \
        }                                                                                          \
        (own).struct_size = sizeof(own);                                                           \
    } while (0)

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
/* Around every call that may record. */
void sn_api_enter(sonde_context *c);
void sn_api_leave(sonde_context *c);
/* Forgets records that nobody wants; when there are no others and nothing records, lets go of
 * pinned bindings too. With the context's lock held. */
void sn_api_forget(sonde_context *c);
/* Around reading records without the context's lock: those since `since` and the bindings they name
 * stay. Begin with the lock held; the end takes it, and forgets what nobody else wants. */
void sn_api_read_begin(sonde_context *c, sn_reader *reader, uint64_t since);
void sn_api_read_end(sonde_context *c, sn_reader *reader);
/* The recorder's level from those who asked for one. With the context's lock held. */
sonde_status sn_api_set_level(sonde_context *c, sonde_error *err);

/* ---- value.c ---- */
/* Takes over what `slot` holds (it becomes NONE) on success. */
sonde_status sn_api_value(sonde_context *c, sn_slot *slot, sonde_value **value, sonde_error *err);
sonde_status sn_api_set_new(sonde_context *c, sonde_value_set **set, sonde_error *err);
/* The name is copied; the reference to the value is taken over on success. */
sonde_status sn_api_set_add(sonde_value_set *set, const char *name, sonde_value *value,
                            sonde_error *err);

/* ---- text.c ---- */
/* "seq(tensor(float))" into buf; always terminated. */
const char *sn_api_onnx_type(const sn_type *type, char *buf, size_t cap);

/* ---- model.c ---- */
/* Takes over the reference to `core`, also on failure. */
sonde_status sn_api_model(sonde_context *c, sn_model *core, const char *name, sonde_model **model,
                          sonde_error *err);

/* ---- inspect.c ---- */
/* The binding a run with these inputs would use; one reference for the caller. */
sonde_status sn_api_bind(sonde_session *session, const char *const *names,
                         sonde_value *const *inputs, size_t count, struct sn_binding **bound,
                         sonde_error *err);

/* ---- op_profile.c ---- */
void sn_api_op_cache_free(sonde_context *c);

/* ---- profile_build.c ---- */
/* The records since `since` ticks as plain tables; `only_run` != 0: of that inference alone. The
 * caller is among the readers, since then or earlier. */
sonde_status sn_api_profile_build(sonde_context *c, uint64_t since, uint32_t only_run, int level,
                                  sn_profile **profile, sonde_error *err);
/* The same of the inferences that began in one of `n` (at least 1) windows, in order, and of what
 * else touches one; records of a higher level than asked for are left out. */
typedef struct sn_window {
    uint64_t from, to; /* ticks */
} sn_window;
sonde_status sn_api_profile_build_within(sonde_context *c, const sn_window *windows, size_t n,
                                         int level, sn_profile **profile, sonde_error *err);

/* ---- recording.c ---- */
/* The highest level that recordings ask for now, and the earliest ticks that they want; 0 and
 * UINT64_MAX: there are none. With the context's lock held. */
int sn_api_recordings_level(const sonde_context *c);
uint64_t sn_api_recordings_since(const sonde_context *c);

/* ---- profiler.c ---- */
/* A public profile around `core`, which it takes over, also on failure. */
sonde_status sn_api_profile(sonde_context *c, sn_profile *core, sonde_profile **profile,
                            sonde_error *err);

/* ---- user_cache.c ---- */
/* The user's cache folder for this library, $XDG_CACHE_HOME/sonde or ~/.cache/sonde; it need not
 * exist. Returns its length, 0 when there is none or it is too long. */
size_t sn_api_user_cache(char *path, size_t bytes);

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
    int instances; /* SONDE_INSTANCES: profiles are numbered 0 … instances - 1; 0 = unset */
    int level;     /* SONDE_LEVEL, 0 = unset */
} sn_env;
const sn_env *sn_api_env(void);
/* Prints the table of one run, begun after `since` ticks, on stderr. `options` NULL: as
 * SONDE_TIMING says. The caller is among the readers since then. */
void sn_api_print_timing(sonde_context *c, uint64_t since, uint32_t run,
                         const sn_table_options *options);
/* Starts the SONDE_TRACE file of this context if it is one that is written meanwhile. */
void sn_api_begin_trace(sonde_context *c);
/* Writes, or ends, the files SONDE_TRACE and SONDE_PROFILE ask for. */
void sn_api_write_trace(sonde_context *c);

#endif
