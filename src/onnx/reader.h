/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share: the state of one load, and one function per message. A model
 * is read in one go and never touches the contents of raw tensors; whatever outlives the load goes
 * to the model's arena or, when it is tensor memory of some size, to its buffers. */
#ifndef SN_ONNX_READER_H
#define SN_ONNX_READER_H

#include "base/wire.h"
#include "onnx/onnx.h"
#include "onnx/tensor_source.h"

/* Tensors up to this size live in the arena and are aligned at once: inference and passes read them
 * (shapes, axes, scales, biases). */
#define SN_READER_SMALL_BYTES ((size_t)16384)

typedef struct sn_onnx_reader sn_onnx_reader;

struct sn_onnx_reader {
    sn_model *m;
    sn_arena *arena;
    sn_allocator *alloc;
    const sn_onnx_options *opt;  /* never NULL */
    char *real_dir;              /* resolved, made at first use; from malloc */
    sn_map by_location, by_path; /* external files, sn_file * */
    sn_map symbols;              /* name ► id */
    sn_arena scratch;            /* names on their way into the graph, which copies them */
    unsigned depth;
    size_t sparse_bytes, dense_bytes; /* all sparse tensors so far: in the file, made dense */
    bool located; /* the error already names the innermost node: those around it add nothing */
    /* sn_read_body. Graphs hold nodes, nodes hold attributes, and attributes hold graphs again:
     * read_attr.c, which stands below read_graph.c, calls it through this pointer. */
    sonde_status (*read_body)(sn_onnx_reader *r, sn_wire w, sn_graph *parent, sn_graph **out);
    sonde_error *err;
};

/* Values by name within one graph. Keys are the values' own names. */
typedef struct sn_scope {
    sn_graph *g;
    sn_map values;
} sn_scope;

/* Refuses what nests deeper than SN_WIRE_MAX_DEPTH; `what` is plural. Pair with
 * sn_onnx_reader_leave. */
sonde_status sn_onnx_reader_enter(sn_onnx_reader *r, const char *what);
static inline void sn_onnx_reader_leave(sn_onnx_reader *r)
{
    r->depth--;
}
/* The sentence for bytes that are no protobuf message. */
sonde_status sn_onnx_reader_broken(sn_onnx_reader *r, const char *what);
/* A name as a NUL-terminated string in the model's arena; an embedded NUL is an error. */
sonde_status sn_onnx_reader_name(sn_onnx_reader *r, const sn_wire *w, const char *what,
                                 const char **out);
/* The same in an arena of the caller's choice. */
sonde_status sn_onnx_reader_name_in(sn_onnx_reader *r, sn_arena *arena, const sn_wire *w,
                                    const char *what, const char **out);
/* A domain: as a name, with "ai.onnx" made "". */
sonde_status sn_onnx_reader_domain(sn_onnx_reader *r, sn_arena *arena, const sn_wire *w,
                                   const char **out);
/* SN_ALIGN-aligned memory that lives with the model; *owner receives its buffer, or NULL when it is
 * small enough to live in the arena. */
sonde_status sn_onnx_reader_memory(sn_onnx_reader *r, size_t bytes, void **data, sn_buffer **owner);

sonde_status sn_read_opset(sn_onnx_reader *r, sn_wire w, sn_opset *out);
/* Fills `g`; parent scopes do not matter, a body's free names become values without a producer.
 * `closed`: such values are an error (the main graph). */
sonde_status sn_read_graph(sn_onnx_reader *r, sn_wire w, sn_graph *g, bool closed);
/* A new graph for an attribute: a body of `parent`. */
sonde_status sn_read_body(sn_onnx_reader *r, sn_wire w, sn_graph *parent, sn_graph **out);
sonde_status sn_read_function(sn_onnx_reader *r, sn_wire w, sn_function *out);
sonde_status sn_read_attr(sn_onnx_reader *r, sn_wire w, sn_graph *g, sn_attr *out);
/* `name` is the value's, for errors. */
sonde_status sn_read_type(sn_onnx_reader *r, sn_wire w, const char *name, sn_type *out);
/* An initializer or attribute; `what` says which. *name (may be NULL) receives its name. */
sonde_status sn_read_tensor(sn_onnx_reader *r, sn_wire w, const char *what, const sn_tensor **out,
                            const char **name);
/* The same for an initializer: when it is large, data may be misaligned. */
sonde_status sn_read_initializer(sn_onnx_reader *r, sn_wire w, const sn_tensor **out,
                                 const char **name);
sonde_status sn_read_sparse(sn_onnx_reader *r, sn_wire w, const char *what, const sn_tensor **out,
                            const char **name);
/* Warns of every kind of field in a model that no version known here has. */
void sn_onnx_reader_tell_unknown(sn_onnx_reader *r, sn_wire model);
/* Where the contents of an external tensor lie: src->raw. */
sonde_status sn_external_resolve(sn_onnx_reader *r, sn_tensor_source *src);
void sn_external_free(sn_onnx_reader *r);

#endif
