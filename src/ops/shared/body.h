/* SPDX-License-Identifier: Apache-2.0 */
/* What the control-flow operators share: finding a body among the attributes, running it through
 * the frame's hook, generalising the types of values that go round a loop, and stacking what
 * iterations give. Captures never appear here: the executor supplies them. */
#ifndef SN_OPS_SHARED_BODY_H
#define SN_OPS_SHARED_BODY_H

#include "ops/shared/data_movement.h"

typedef struct sn_body_ref {
    sn_graph *graph;
    uint32_t index; /* among the node's graph attributes: the number run_body wants */
} sn_body_ref;

sonde_status sn_body_find(sn_prep *p, const char *name, sn_body_ref *b);
/* Each of the node's own inputs from `first` on is given: a body has no way to do without. */
sonde_status sn_body_need_inputs(sn_prep *p, uint32_t first);

/* ---- infer ---- */
/* The type both a and b are of, as far as they agree; false when their kinds or element types
 * clash. */
bool sn_body_join(const sn_type *a, const sn_type *b, sn_type *out, sn_arena *arena);
/* Infers the body until the types of its loop-carried values hold: `formal` has n facts, of which
 * those from `first` on are carried and come back as outputs from `first_out` on. Carried facts are
 * generalised in place. */
sonde_status sn_body_fixpoint(sn_infer *c, const sn_body_ref *b, sn_fact *formal, uint32_t n,
                              uint32_t first, uint32_t n_carried, uint32_t first_out);
/* Type of output o of the node: `t` with one more dim at `axis`. */
sonde_status sn_body_stacked(sn_infer *c, uint32_t o, const sn_type *t, sn_dim count, int64_t axis);

/* ---- run ---- */
sonde_status sn_body_run(const sn_step *s, sn_frame *f, const sn_body_ref *b, const sn_slot *in,
                         uint32_t n_in, sn_slot *out, uint32_t n_out);
sonde_status sn_body_cancelled(const sn_step *s,
                               sn_frame *f); /* SONDE_CANCELLED when asked to stop */
/* dst receives what src owns; src becomes NONE. */
void sn_body_move(sn_slot *dst, sn_slot *src);
void sn_body_clear(sn_slot *slots, uint32_t n);

/* Equal tensors of successive iterations, stacked along a new first axis. */
typedef struct sn_stack {
    sn_buffer *buffer;
    sn_tensor row;           /* type and dims of one; data unused */
    int64_t n, cap;          /* rows */
    SN_VEC(sn_slot) strings; /* string tensors are kept whole until the end */
} sn_stack;
/* `expect`: rows that will probably come, 0 when unknown. Consumes *row. */
sonde_status sn_stack_push(const sn_step *s, sn_frame *f, sn_stack *k, sn_slot *row,
                           int64_t expect);
/* The stacked tensor goes to *out (cleared first). Without rows, the type says what is missing. */
sonde_status sn_stack_finish(const sn_step *s, sn_frame *f, sn_stack *k, const sn_type *type,
                             sn_slot *out);
void sn_stack_free(sn_frame *f, sn_stack *k);

#endif
