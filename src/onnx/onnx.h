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

/* Takes a piece of what is written; false stops. */
typedef bool (*sn_onnx_write_fn)(void *user, const void *data, size_t bytes);

/* Where a model goes. A message has at most 2 GiB; the initializers of a larger model go to a
 * second file ("external data"), each at a multiple of SN_ONNX_DATA_ALIGN bytes. */
typedef struct sn_onnx_sink {
    sn_onnx_write_fn write;
    sn_onnx_write_fn
        write_data;        /* the second file; NULL: there is none, large models are refused */
    void *user;            /* of both */
    const char *location;  /* what the model calls the second file */
    bool external;         /* use it, however small the model is */
    uint64_t inline_bytes; /* use it when the model would have more bytes; 0: 2 GiB */
    /* NULL, or tensors by address: initializers to write as sparse ones where that takes less
     * room. */
    const sn_map *sparse;
} sn_onnx_sink;
enum {
    SN_ONNX_DATA_ALIGN = 4096,
    SN_ONNX_DATA_LEAST = 1024 /* initializers of fewer bytes stay in the model */
};

/* A graph as a ModelProto (onnx.checker agrees). Internal `sonde` domain nodes are written as such
 * with an opset import. */
sonde_status sn_onnx_write(const sn_model *m, const sn_graph *g, const sn_onnx_sink *sink,
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
