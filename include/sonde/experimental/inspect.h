/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into models: nodes with their types, operators, parameters, what a session made of them.
 *
 *     sonde_inspection *look;
 *     sonde_inspect_model(model, &look, &err);
 *     for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
 *         sonde_node_info node = SONDE_INIT(sonde_node_info);
 *         sonde_inspection_node(look, i, &node, &err);
 *         printf("%s %s\n", node.op_type, node.name);
 *     }
 *
 * An inspection is a snapshot: it keeps alive what it needs and never changes. Texts belong to it.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_INSPECT_H
#define SONDE_EXPERIMENTAL_INSPECT_H

#include "sonde/experimental/save.h"
#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What this library can run, one entry per operator and range of opset versions. */
typedef struct sonde_operator_info {
    size_t struct_size;
    const char *name, *domain; /* the domain is "" for ONNX's own */
    int since, until;          /* opset versions, both inclusive; until 0: the newest */
    const char *types;         /* element types of the first input: "f32 f64 i32"; may be "" */
} sonde_operator_info;
/* SONDE_NOT_FOUND past the end. */
SONDE_API sonde_status sonde_operator_get(size_t index, sonde_operator_info *info,
                                          sonde_error *err);

/* Whether the pass sonde_pass_name(index) reads the contents of weights, more than single numbers
 * of them: 1 or 0, and 0 past the end. A session that is only looked at (plan_only) and leaves
 * these passes out (disabled_passes) reads nothing of a large file. */
SONDE_API int sonde_pass_reads_weights(size_t index);

/* Whether a kernel, as nodes, rows and spans name it, is a loop in plain C: the reference of a
 * family, or an operator that has no loops for this processor's instructions. NULL: 0. */
SONDE_API int sonde_kernel_is_plain(const char *kernel);

/* sonde_model_save_with without options. */
SONDE_API sonde_status sonde_model_save(const sonde_model *model, const char *path,
                                        sonde_error *err);
SONDE_API const char *sonde_model_name(const sonde_model *model); /* file name, or the zoo's name */

typedef struct sonde_inspection sonde_inspection;

/* The graph as read, with inferred types. A model with operators this library does not know can be
 * inspected: sonde_inspection_note then says what stopped inference. */
SONDE_API sonde_status sonde_inspect_model(sonde_model *model, sonde_inspection **inspection,
                                           sonde_error *err);
/* What a session runs: the graph after the passes, in order. With inputs (see sonde_session_run) it
 * is bound to their shapes: types are concrete; kernels, FLOPs and memory are known. Without
 * (input_count 0) they are not. Nothing is computed. */
SONDE_API sonde_status sonde_inspect_session(sonde_session *session, const char *const *input_names,
                                             sonde_value *const *inputs, size_t input_count,
                                             sonde_inspection **inspection, sonde_error *err);
SONDE_API void sonde_inspection_release(sonde_inspection *inspection);
/* The inputs that the session ran (or was bound to) last, "x f32[1, 3, 32, 32]; y i64[]"; "" before
 * the first run. Cut to `bytes` like snprintf's, whose result it returns. */
SONDE_API size_t sonde_session_inputs_text(sonde_session *session, char *text, size_t bytes);

/* A tensor that there need not be yet. */
typedef struct sonde_input_shape {
    const char *name;
    sonde_dtype dtype;
    const int64_t *dims;
    size_t rank;
} sonde_input_shape;
/* Whether one run with inputs of these shapes, which are still to be made, fits into the memory
 * there is or into max_memory. SONDE_OUT_OF_MEMORY: no, and the error says what it needs. The
 * session may be one that is only looked at (plan_only): weights it has not packed count nothing.
 */
SONDE_API sonde_status sonde_session_fits(sonde_session *session, const sonde_input_shape *inputs,
                                          size_t input_count, sonde_error *err);

/* Why types are missing, as a sentence; "" when nothing stood in the way. */
SONDE_API const char *sonde_inspection_note(const sonde_inspection *inspection);

/* What goes in and out, as the graph is inspected; of a model that no session can be made of, too.
 * SONDE_NOT_FOUND past the end. */
SONDE_API sonde_status sonde_inspection_input(const sonde_inspection *inspection, size_t index,
                                              sonde_type_info *info, sonde_error *err);
SONDE_API sonde_status sonde_inspection_output(const sonde_inspection *inspection, size_t index,
                                               sonde_type_info *info, sonde_error *err);

typedef struct sonde_inspection_totals {
    size_t struct_size;
    uint64_t nodes;           /* bodies included */
    uint64_t parameters;      /* weights; running statistics of normalisations are not counted */
    uint64_t parameter_bytes; /* of these, at the width of their type: two of 4 bits are a byte */
    uint64_t file_bytes;      /* of the model as read; 0 for built-in ones */
    /* Bound sessions only, else 0. */
    uint64_t flops;       /* of one inference, bodies not counted */
    uint64_t arena_bytes; /* activations, after reuse of memory */
    uint64_t workspace_bytes;
    uint64_t packed_bytes;   /* weights in the form kernels read them */
    int bound;               /* whether they are known */
    uint64_t constant_bytes; /* all constants of the model, as they lie in memory */
    /* Bound sessions only, else 0: the rest of what one run needs once the model is ready. */
    uint64_t weight_bytes; /* weights that steps read as they are, and those a model that is not
                              mapped holds beside their packed form */
    uint64_t input_bytes, output_bytes;
    uint64_t peak_bytes; /* weights, packed ones, activations, workspace, inputs and outputs */
    int data_dependent;  /* more is allocated while running: in bodies, for shapes that depend on
                            data */
} sonde_inspection_totals;
SONDE_API sonde_status sonde_inspection_totals_get(const sonde_inspection *inspection,
                                                   sonde_inspection_totals *totals,
                                                   sonde_error *err);

typedef struct sonde_port_info {
    const char *name; /* "" for an input left out */
    const char *type; /* "f32[1, 3, 224, 224]"; "" when unknown */
    int constant;
    sonde_dtype dtype; /* of a tensor, else UNDEFINED */
    int block;         /* channels that lie together where a session keeps the tensor in blocks of
                          them; 0: row-major */
    const char *form;  /* how a session stores it where that is not as its type says, row-major:
                          "blocks of 16", "channels last, pitch of 8"; else "" */
    uint64_t bytes;    /* of a tensor, a size that is not known counted as one; else 0 */
} sonde_port_info;

typedef struct sonde_node_info {
    size_t struct_size;
    const char *name, *op_type, *domain; /* of the anchor where nodes were fused; "[Reorder]" and
                                            "[Convert]": no node of the file but a change of layout
                                            or of the element type */
    const char *post_op;                 /* "Add+Relu": what was fused behind it; "" */
    const char *origins;                 /* names of the original nodes, comma-separated */
    const char *attributes;              /* "kernel_shape=3,3;strides=1,1" */
    const char *kernel;                  /* bound sessions: "f32_conv1x1_…"; else "" */
    const sonde_port_info *inputs, *outputs;
    size_t input_count, output_count;
    int depth;              /* 0 = the graph itself, 1 = a body of one of its nodes … */
    uint64_t flops, bytes;  /* bound sessions */
    const char *arithmetic; /* what the flops are computed in: "f32", "bf16_tiles", "i8"; "" where
                               there are none */
} sonde_node_info;
SONDE_API size_t sonde_inspection_node_count(const sonde_inspection *inspection);
SONDE_API sonde_status sonde_inspection_node(const sonde_inspection *inspection, size_t index,
                                             sonde_node_info *node, sonde_error *err);

/* Operator types by how often they occur, most frequent first; NULL past the end. */
SONDE_API const char *sonde_inspection_operator(const sonde_inspection *inspection, size_t index,
                                                uint64_t *count);
/* Imported operator sets; the domain is "" for ONNX's own; NULL past the end. */
SONDE_API const char *sonde_inspection_opset(const sonde_inspection *inspection, size_t index,
                                             int64_t *version);

/* The graph as ".dot" (graphviz), ".onnx" (a bound or unbound session: internal operators are in
 * the domain "sonde") or ".txt", by suffix. */
SONDE_API sonde_status sonde_inspection_save(const sonde_inspection *inspection, const char *path,
                                             sonde_error *err);
/* The same with options, which are those of a model. */
SONDE_API sonde_status sonde_inspection_save_with(const sonde_inspection *inspection,
                                                  const char *path,
                                                  const sonde_save_options *options,
                                                  sonde_error *err);
/* Whether the suffix is one of these, before there is a graph to save; the error names them. */
SONDE_API sonde_status sonde_inspection_can_save(const char *path, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
