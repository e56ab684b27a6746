/* SPDX-License-Identifier: Apache-2.0 */
/* Writing protobuf. A message's length stands before its bytes, so everything is walked twice by
 * the same code: the first pass counts and remembers the length of each message in the order they
 * begin, the second one writes. Tensor contents go straight to the sink; nothing large is ever
 * copied. */
#ifndef SN_ONNX_EMIT_H
#define SN_ONNX_EMIT_H

#include "base/vec.h"
#include "graph/type.h"
#include "onnx/onnx.h"

typedef struct sn_emitter {
    bool counting;
    bool no_memory, stopped; /* checked once, at the end of a pass */
    uint64_t count;          /* bytes of the pass so far */
    SN_VEC(uint64_t) sizes;
    size_t next;
    sn_allocator *alloc;
    sn_onnx_write_fn write;
    void *user;
    size_t used;
    uint8_t buf[4096];
} sn_emitter;

void sn_emit_start(sn_emitter *e, sn_allocator *alloc, sn_onnx_write_fn write, void *user);
/* Ends the counting pass; the same calls must follow once more. Refuses what protobuf cannot hold.
 */
sonde_status sn_emit_second_pass(sn_emitter *e, sonde_error *err);
/* The same of bytes that are no message and may be any number. */
void sn_emit_second_pass_of_bytes(sn_emitter *e);
sonde_status sn_emit_finish(sn_emitter *e, sonde_error *err); /* flushes */
void sn_emit_free(sn_emitter *e);

typedef struct sn_emit_mark {
    size_t slot;
    uint64_t start;
    uint32_t field;
} sn_emit_mark;
sn_emit_mark sn_emit_begin(sn_emitter *e, uint32_t field);
void sn_emit_end(sn_emitter *e, sn_emit_mark mark);

void sn_emit_int(sn_emitter *e, uint32_t field, uint64_t v);
void sn_emit_float(sn_emitter *e, uint32_t field, float f);
void sn_emit_bytes(sn_emitter *e, uint32_t field, const void *data, size_t bytes);
void sn_emit_text(sn_emitter *e, uint32_t field, const char *s); /* NULL and "" are written too */
void sn_emit_text_if(sn_emitter *e, uint32_t field, const char *s); /* left out when NULL or "" */
/* A bytes field in pieces: its length first, then exactly that many bytes. */
void sn_emit_head(sn_emitter *e, uint32_t field, uint64_t bytes);
void sn_emit_raw(sn_emitter *e, const void *data, size_t bytes);

/* The contents of a message, for a tensor that is plain and dense. */
void sn_emit_tensor(sn_emitter *e, const sn_tensor *t, const char *name);
/* The elements alone, as raw data: sn_dtype_file_bytes bytes. Not for strings. */
void sn_emit_elements(sn_emitter *e, const sn_tensor *t);
/* A tensor whose elements are in the file `location`, at `offset`. Not for strings. */
void sn_emit_external(sn_emitter *e, const sn_tensor *t, const char *name, const char *location,
                      uint64_t offset);
/* A SparseTensorProto that keeps what is not zero. */
void sn_emit_sparse(sn_emitter *e, const sn_tensor *t, const char *name);
/* Whether that takes less room than the tensor itself, and is not so much smaller that readers who
 * bound how a small file may grow refuse it. Counts zeros: reads all elements. */
bool sn_emit_sparse_pays(const sn_tensor *t);
/* A TypeProto; `symbols` names symbolic dims (id k is symbols[k-1]). */
void sn_emit_type(sn_emitter *e, const sn_type *t, const char *const *symbols, size_t n_symbols);

#endif
