/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: one shape signature of a program as side tables: concrete types, kernel parameters,
 * arena offsets, release lists. No graph rewrite and no packing, so a growing sequence costs
 * little. */
#ifndef SN_PLAN_BINDING_H
#define SN_PLAN_BINDING_H

#include "plan/program.h"

/* What reports need to know of a step beyond its node. */
typedef struct sn_step_info {
    const char *kernel;
    uint64_t flops, bytes;
    sn_arithmetic arithmetic; /* of the flops; NONE: there are none */
    uint64_t bind_ticks;
    size_t workspace_bytes;
    uint32_t overwrites; /* see sn_bind */
    bool dynamic;        /* shapes known only while running */
    bool view, joins;    /* see sn_bind */
    bool unmeasured;     /* it can be cut in several ways, and which is fastest is not known */
} sn_step_info;

typedef struct sn_input_view {
    uint32_t slot, of; /* slot shares the memory of input slot `of` */
} sn_input_view;

struct sn_frame_impl;

/* What a binding is for: kind, element type and dims of every input, and the number of threads. */
typedef struct sn_signature {
    const int64_t *words; /* per input: kind, dtype, rank, dims…; then the number of threads */
    size_t n;
    uint64_t hash;
} sn_signature;

typedef enum sn_tuned {
    SN_TUNED,       /* or there is nothing to tune */
    SN_TUNE_WANTED, /* by the next run that finds it */
    SN_TUNE_BEGUN   /* a run measures its steps; others use it as it is */
} sn_tuned;

struct sn_binding {
    _Atomic int refs;
    sn_program *program; /* not referenced: a program owns its bindings; pins reference both */
    uint32_t id;         /* table number in the recorder; unique in the context */
    sn_arena arena;
    sn_signature signature;
    int threads;
    sn_fact *facts; /* by value id */
    sn_step *steps; /* ready to run: those that have something to do */
    sn_step_info *info;
    uint32_t n_steps, n_slots;
    /* Nodes with nothing left to do in a run: their results are known (fact.data), or are views. */
    const sn_node **skipped;
    uint32_t n_skipped;
    sn_slot
        *slots; /* template of a frame's slots: CONST and ARENA tensors (data = offset) filled */
    uint8_t *place; /* sn_place by slot */
    size_t *offset; /* ARENA: by slot */
    uint32_t *root; /* by slot: the slot whose memory it shares, or itself */
    sn_input_view *views;
    uint32_t n_views;
    uint32_t *inputs, *outputs; /* = the program's */
    size_t arena_bytes, workspace_bytes;
    size_t output_bytes; /* of results whose size is known and that a run may have to allocate */
    /* Steps with slots to clear afterwards (dynamic values): release[release_start[i] … [i+1]). */
    uint32_t *release, *release_start;
    uint32_t n_tuned;      /* steps that run in another way than the cost model's */
    uint32_t n_unmeasured; /* steps to tune */
    sn_tuned tuned;        /* guarded by the program's lock */
    bool is_static;        /* no dynamic slot at all: the plain loop */
    _Atomic bool pinned;
    sn_fork_lock lock;            /* free frames */
    struct sn_frame_impl *frames; /* exec's, linked; freed through free_frames */
    void (*free_frames)(struct sn_binding *);
    sn_binding *next; /* LRU list of the program */
};

/* Finds or makes the binding for these inputs (slots by program input order; NONE = use the default
 * initializer). The caller holds one reference. `pool`: what runs will use, to tune with. `stop`
 * (NULL: never) ends tuning, and waiting for a thread that makes the same binding.
 * *made: it was bound now, not found. */
sonde_status sn_binding_get(sn_program *p, const sn_slot *const *in, int threads, sn_pool *pool,
                            const sn_stop *stop, sn_binding **b, bool *made, sonde_error *err);
/* A new reference to the one that was used last; NULL: there is none. */
sn_binding *sn_binding_latest(sn_program *p);
sn_binding *sn_binding_ref(sn_binding *b);
void sn_binding_unref(sn_binding *b);

/* ---- between this room's files ---- */
/* A new binding, in no list; `signature` is copied. Steps are cut as the program's tuning knows,
 * without measuring anything. */
sonde_status sn_binding_make(sn_program *p, const sn_slot *const *in, int threads,
                             const sn_signature *signature, sn_binding **b, sonde_error *err);

/* A step whose results follow from the shapes is computed now, and they become constants of the
 * binding: *done. Results that are handed to the caller are left to their step. `out`: the facts
 * just inferred. */
sonde_status sn_binding_fold_step(sn_binding *b, const sn_step *s, sn_fact *out, bool *done,
                                  sonde_error *err);

/* Lifetimes and offsets: fills place, offset, views, arena_bytes, release lists. */
sonde_status sn_binding_plan_memory(sn_binding *b, sonde_error *err);

#endif
