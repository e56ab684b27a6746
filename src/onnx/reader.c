/* SPDX-License-Identifier: Apache-2.0 */
/* What every file of the reader needs: names, depth, memory that lives with the model, the sentence
 * for broken bytes. Nothing here calls one of them back. */
#include "onnx/reader.h"

#include <string.h>

sonde_status sn_onnx_reader_enter(sn_onnx_reader *r, const char *what)
{
    if (r->depth >= SN_WIRE_MAX_DEPTH)
        return sn_fail(r->err, SONDE_LIMIT, "%s are nested deeper than %d levels", what,
                       SN_WIRE_MAX_DEPTH);
    r->depth++;
    return SONDE_OK;
}

sonde_status sn_onnx_reader_broken(sn_onnx_reader *r, const char *what)
{
    return sn_fail(r->err, SONDE_INVALID_FORMAT, "%s is truncated or not valid protobuf", what);
}

sonde_status sn_onnx_reader_name(sn_onnx_reader *r, const sn_wire *w, const char *what,
                                 const char **out)
{
    return sn_onnx_reader_name_in(r, r->arena, w, what, out);
}

sonde_status sn_onnx_reader_name_in(sn_onnx_reader *r, sn_arena *arena, const sn_wire *w,
                                    const char *what, const char **out)
{
    size_t n = sn_wire_bytes(w);
    *out = "";
    if (n == 0)
        return SONDE_OK;
    if (memchr(w->at, 0, n))
        return sn_fail(r->err, SONDE_INVALID_MODEL, "the name of %s ('%.*s') contains a zero byte",
                       what, SN_SHOW(*w));
    *out = sn_arena_strndup(arena, (const char *)w->at, n);
    return *out ? SONDE_OK : sn_fail_memory(r->err, n + 1);
}

sonde_status sn_onnx_reader_domain(sn_onnx_reader *r, sn_arena *arena, const sn_wire *w,
                                   const char **out)
{
    if (sn_wire_bytes(w) == 7 && memcmp(w->at, "ai.onnx", 7) == 0) {
        *out = "";
        return SONDE_OK;
    }
    return sn_onnx_reader_name_in(r, arena, w, "a domain", out);
}

sonde_status sn_read_opset(sn_onnx_reader *r, sn_wire w, sn_opset *out)
{
    sn_field f;
    sn_wire_status got;
    *out = (sn_opset){.domain = ""};
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(1))
            SN_TRY(sn_onnx_reader_domain(r, r->arena, &f.body, &out->domain));
        else if (f.tag == SN_INT(2))
            out->version = (int64_t)f.num;
    }
    if (got == SN_WIRE_BROKEN)
        return sn_onnx_reader_broken(r, "an operator set");
    if (out->version < 1 || out->version > INT32_MAX)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "operator set '%.200s' has version %lld",
                       out->domain, (long long)out->version);
    return SONDE_OK;
}

sonde_status sn_onnx_reader_memory(sn_onnx_reader *r, size_t bytes, void **data, sn_buffer **owner)
{
    *owner = NULL;
    if (bytes <= SN_READER_SMALL_BYTES) {
        *data = sn_arena_alloc(r->arena, bytes ? bytes : 1, SN_ALIGN);
        return *data ? SONDE_OK : sn_fail_memory(r->err, bytes);
    }
    sn_buffer *b = sn_buffer_new(r->alloc, bytes);
    if (!b)
        return sn_fail_memory(r->err, bytes);
    if (!sn_vec_push(&r->m->buffers.list, r->alloc, b)) {
        sn_buffer_unref(b);
        return sn_fail_memory(r->err, bytes);
    }
    *data = b->data;
    *owner = b;
    return SONDE_OK;
}
