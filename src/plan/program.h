/* SPDX-License-Identifier: Apache-2.0 */
/* Program: a model's graph after the passes, as steps over numbered slots, with packed weights.
 * Independent of shapes. Keyed by options, feeds and requested outputs; refcounted; shared. */
#ifndef SN_PLAN_PROGRAM_H
#define SN_PLAN_PROGRAM_H

#include <pthread.h>
#include <sys/types.h>

#include "base/stop.h"
#include "graph/model.h"
#include "ops/framework/op.h"

typedef struct sn_program sn_program;
typedef struct sn_binding sn_binding;

typedef struct sn_program_config {
    bool no_optimize, no_prepack;
    sonde_precision precision;
    bool plan_only; /* packed formats are chosen but not filled: to look at, not to run */
    const char *const *disabled;
    size_t n_disabled;
    /* Values to be fed and to be returned, by name; NULL = the graph's own. */
    const char *const *feeds, *const *outputs;
    size_t n_feeds, n_outputs;
    const char *weights_cache; /* folder where packed weights are kept; NULL: they are not */
    const char *tune;          /* folder where what was tuned is kept; NULL: nothing is tuned */
    const sn_id_set *memory;   /* nodes where weights and arenas should lie; NULL: anywhere */
    bool apart; /* dimensions of one name may differ from input to input (plan/symbols.h) */
} sn_program_config;

/* Where a slot's memory comes from. */
typedef enum sn_place {
    SN_PLACE_NONE,   /* not a tensor, or allocated while running (data-dependent) */
    SN_PLACE_CONST,  /* weights: mapped file, program buffers, packed store */
    SN_PLACE_INPUT,  /* the caller's */
    SN_PLACE_OUTPUT, /* the caller's, or fresh memory per run */
    SN_PLACE_ARENA,  /* frame arena at a planned offset */
    SN_PLACE_VIEW    /* same memory as an INPUT slot (reshape of an input) */
} sn_place;

typedef enum sn_program_state {
    SN_PROGRAM_BEING_MADE, /* by a thread that holds no lock; whoever wants it waits */
    SN_PROGRAM_READY,
    SN_PROGRAM_FAILED /* left the list */
} sn_program_state;

struct sn_program {
    _Atomic int refs;
    sn_context *ctx;
    sn_model *model;    /* referenced by the root program */
    sn_program *parent; /* of a body: not referenced, the parent owns it */
    const char *key;    /* of the root: identifies it among the model's programs */
    sn_arena arena;     /* root only; bodies use the root's */
    sn_graph *graph;    /* rewritten; slot number = value id */
    sn_buffers buffers; /* root only: constants made by passes */
    sn_buffer *packed;  /* root only: the packed weight store */
    size_t packed_bytes;
    struct sn_tuning *tuning; /* the root's; NULL: steps run as the cost model says */
    bool plan_only;
    bool apart;       /* as in the configuration */
    bool unoptimized; /* every node is a step of every run */
    sonde_precision precision;
    const sn_id_set *memory; /* nodes where weights and arenas should lie; NULL: anywhere */
    sn_step *steps;          /* templates: run and bound are set by the binding */
    uint32_t n_steps, n_slots;
    uint32_t *inputs, *outputs; /* slots */
    uint32_t n_inputs, n_outputs;
    uint32_t n_formal_inputs; /* of a body; the rest are captures */
    sn_slot *consts;          /* n_slots; TENSOR for constants (packed where packed), else NONE */
    sn_program **bodies;      /* of all control steps, in order of steps and attributes */
    uint32_t n_bodies;
    pid_t process;        /* whose threads make it and bind it (sn_program_adopt) */
    sn_fork_lock lock;    /* of the bindings; never held while one is made or tuned */
    sn_binding *bindings; /* most recently used first */
    uint32_t n_bindings;
    struct sn_bind_job *bind_jobs; /* bindings that threads are making now */
    pthread_cond_t bind_done;      /* one of those jobs is over */
    /* Guarded by the model's lock: */
    sn_program *next_shared; /* list of the model's live programs */
    sn_program_state state;
    pthread_cond_t made; /* it is not SN_PROGRAM_BEING_MADE any more */
};

/* Finds or makes the program. The caller holds one reference. `stop` (NULL: never) ends waiting for
 * a thread that makes the same one. */
sonde_status sn_program_get(sn_context *ctx, sn_model *model, const sn_program_config *cfg,
                            sn_pool *pool, const sn_stop *stop, sn_program **program,
                            sonde_error *err);
sn_program *sn_program_ref(sn_program *p);
void sn_program_unref(sn_program *p);

/* ---- for program.c's helpers ---- */
/* Packs what operators ask for, in parallel, into one store; releases the file pages it read.
 * `cache_dir`: where such stores are kept on disk, or NULL. */
sonde_status sn_program_pack(sn_program *root, sn_program *p, sn_pool *pool, const char *cache_dir,
                             sonde_error *err);

/* With the program's lock held, or with nobody else left: in a forked child the threads of its
 * parent that were binding or waiting are not there, and a condition they waited for cannot be
 * signalled or destroyed: both would wait for them. */
void sn_program_adopt(sn_program *p);

#endif
