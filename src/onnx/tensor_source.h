/* SPDX-License-Identifier: Apache-2.0 */
/* A TensorProto taken apart and checked, its contents not touched yet. Opening proves that the
 * number of elements the dims promise is there, byte for byte; filling then cannot fail. */
#ifndef SN_ONNX_TENSOR_SOURCE_H
#define SN_ONNX_TENSOR_SOURCE_H

#include "base/wire.h"
#include "graph/tensor.h"

typedef struct sn_tensor_source {
    sn_wire body; /* the whole message */
    sn_wire name;
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    int64_t count;
    size_t bytes;      /* in memory: sub-byte types one byte an element */
    size_t file_bytes; /* as raw data */
    /* Contents as raw data: raw_data, external data, or one packed run of floats, which looks the
     * same. NULL: they are in field `field`, or there are none (count 0). */
    const uint8_t *raw;
    uint32_t field;
    int elem; /* wire type of its elements */
    /* External data: where. raw is NULL until someone resolves it. */
    bool external;
    sn_wire location;
    uint64_t offset;
} sn_tensor_source;

/* `what` ("initializer", "tensor") opens the sentence of an error. */
sonde_status sn_tensor_source_open(sn_tensor_source *s, sn_wire w, const char *what,
                                   sonde_error *err);
/* Decodes all elements to dst (s->bytes). Strings point into the message. */
void sn_tensor_source_fill(const sn_tensor_source *s, void *dst);
/* True when raw contents can be used where they lie: same layout as in memory, aligned. */
bool sn_tensor_source_is_view(const sn_tensor_source *s);

/* Alignment an element needs. */
size_t sn_dtype_align(sn_dtype t);

/* For "%.*s" in a sentence: a name, clipped. */
#define SN_SHOW(w) sn_show_bytes(&(w)), ((w).at ? (const char *)(w).at : "")
static inline int sn_show_bytes(const sn_wire *w)
{
    size_t n = sn_wire_bytes(w);
    return n > 200 ? 200 : (int)n;
}

#endif
