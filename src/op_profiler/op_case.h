/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the operator profiler: a case is what is to be measured, apart from how. */
#ifndef SN_OP_PROFILER_OP_CASE_H
#define SN_OP_PROFILER_OP_CASE_H

#include "api/internal.h"
#include "sonde/experimental/op.h"

typedef struct sn_op_port {
    const char *name;
    sonde_value *value;    /* what it is given; NULL: left out, or `data` alone */
    const sn_tensor *data; /* of a constant */
    const sn_type *type;   /* of what is not a tensor */
} sn_op_port;

typedef struct sn_op_case {
    sonde_context *context; /* the caller's; values belong to it */
    sn_arena arena;
    const char *op_type, *domain, *name;
    int64_t opset;
    const char *attributes; /* described ones, as text */
    const sn_node *from;    /* cut out: the node in its model's graph */
    const sn_model *source; /* its model; alive as long as the caller's */
    sn_op_port *in;
    size_t n_in, n_out;
    bool *wanted; /* by output */
} sn_op_case;

/* op_case.c: from a specification; sn_op_case_free in any case. */
sonde_status sn_op_case_make(sn_op_case *c, sonde_context *context, const sonde_op_spec *spec,
                             sonde_error *err);
void sn_op_case_free(sn_op_case *c);
/* The one-node model of a case in another context. */
sonde_status sn_op_case_model(const sn_op_case *c, sonde_context *context, sonde_model **model,
                              sonde_error *err);
/* "f32[1, 64, 56, 56], const f32[64, 64, 3, 3], _" in the arena; NULL: out of memory. */
const char *sn_op_case_text(const sn_op_case *c, sn_arena *arena);

/* attributes.c */
sonde_status sn_op_parse_attributes(sn_graph *g, sn_node *node, const char *text, sonde_error *err);

/* measure.c */
typedef struct sn_op_way { /* how a case is run */
    const char *cpu;
    int threads;
    bool no_prepack, no_optimize;
    int warmup, exec, repeat;
    sonde_cancel_token *cancel; /* NULL: nothing does */
    sonde_precision precision;
} sn_op_way;
/* Fills the row, texts and samples in `arena`. *steps (how many of the program's are the operator)
 * is 0 when passes left nothing of it; *reordered: its tensors were brought into another layout. */
sonde_status sn_op_measure(const sn_op_case *c, const sn_op_way *way, sn_arena *arena,
                           sonde_op_variant *row, size_t *steps, bool *reordered, sonde_error *err);

#endif
