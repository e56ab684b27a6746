/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's protobuf ⇄ the graph. Models come in and go out through src/model_readers, which opens
 * files and finishes what was read. The reader is bounded and zero-copy: it never allocates more
 * than the file can justify, raw initializers stay views of the mapped file (large ones even when
 * they are misaligned there: see sn_value_make_readable), and every error names the place. */
#ifndef SN_ONNX_ONNX_H
#define SN_ONNX_ONNX_H

#include "graph/model.h"

typedef struct sn_onnx_options {
    const char *dir; /* where external data lies, "" = here; NULL: nowhere, it is refused */
    bool no_mmap;    /* external data is read, not mapped */
} sn_onnx_options;

/* Fills an empty model, which then has to go through sn_model_finish. The bytes must live as long
 * as it does. IR versions from 3 on; of those past 14 what is not known is named in warnings. */
sonde_status sn_onnx_read(sn_model *m, const void *data, size_t bytes, const sn_onnx_options *opt,
                          sonde_error *err);

/* A graph as a ModelProto (onnx.checker agrees). Internal `sonde` domain nodes are written as such
 * with an opset import. `write` returns false to stop. Files past 2 GiB need external data: refused
 * with a sentence that says so. */
typedef bool (*sn_onnx_write_fn)(void *user, const void *data, size_t bytes);
sonde_status sn_onnx_write(const sn_model *m, const sn_graph *g, sn_onnx_write_fn write, void *user,
                           sonde_error *err);

/* Serialized TensorProto, SequenceProto or OptionalProto (test data). `as` says what to expect: the
 * type of the graph value it belongs to (NULL: a tensor). */
sonde_status sn_onnx_read_value(const void *data, size_t bytes, const sn_type *as,
                                sn_allocator *alloc, sn_slot *out, const char **name,
                                sn_arena *name_arena, sonde_error *err);
/* A tensor, sequence or optional as bytes of the matching proto. */
sonde_status sn_onnx_write_value(const sn_slot *v, const char *name, sn_onnx_write_fn write,
                                 void *user, sonde_error *err);

#endif
