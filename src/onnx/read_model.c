/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto, and the way in. The first walk over the top level decides whether this is an ONNX
 * model at all, so that a wrong file gets a plain sentence. */
#include <string.h>

#include "onnx/reader.h"

#define MIN_IR_VERSION 3
#define KNOWN_IR_VERSION                                                                           \
    14 /* all that files up to this one can hold is known, or refused by name */

static sonde_status add_opset(sn_onnx_reader *r, sn_wire w)
{
    sn_opset o;
    SN_TRY(sn_read_opset(r, w, &o));
    int64_t known = sn_model_opset(r->m, o.domain);
    if (known == o.version)
        return SONDE_OK;
    if (known > 0)
        return sn_fail(r->err, SONDE_INVALID_MODEL,
                       "operator set '%.200s' is imported twice, as version %lld and %lld",
                       o.domain, (long long)known, (long long)o.version);
    /* sn_model_opset looks through the list: keep that short. */
    if (r->m->opsets.n >= 1024)
        return sn_fail(r->err, SONDE_LIMIT, "more than 1024 operator sets are imported");
    return sn_vec_push(&r->m->opsets, r->alloc, o) ? SONDE_OK : sn_fail_memory(r->err, sizeof o);
}

static sonde_status add_metadata(sn_onnx_reader *r, sn_wire w)
{
    sn_field f;
    sn_wire_status got;
    sn_meta meta = {"", ""};
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(1))
            SN_TRY(sn_onnx_reader_name(r, &f.body, "a metadata key", &meta.key));
        else if (f.tag == SN_LEN(2))
            SN_TRY(sn_onnx_reader_name(r, &f.body, "a metadata value", &meta.value));
    }
    if (got == SN_WIRE_BROKEN)
        return sn_onnx_reader_broken(r, "a metadata entry");
    return sn_vec_push(&r->m->metadata, r->alloc, meta) ? SONDE_OK
                                                        : sn_fail_memory(r->err, sizeof meta);
}

static sonde_status not_a_model(sn_onnx_reader *r, const char *why)
{
    return sn_fail(r->err, SONDE_INVALID_FORMAT, "this is not an ONNX model: %s", why);
}

/* The first walk: the bytes are a message with an IR version we can read and a graph. */
static sonde_status find_graph(sn_onnx_reader *r, sn_wire w, sn_wire *graph)
{
    sn_wire at = w;
    sn_field f;
    sn_wire_status got;
    uint64_t ir_version = 0;
    bool has_graph = false;
    if (w.at == w.end)
        return not_a_model(r, "it is empty");
    while ((got = sn_wire_next(&at, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(1)) {
            ir_version = f.num;
        } else if (f.tag == SN_LEN(7)) {
            *graph = f.body;
            has_graph = true;
        }
    }
    if (got == SN_WIRE_BROKEN)
        return not_a_model(r, "it is truncated or not protobuf");
    if (ir_version == 0)
        return not_a_model(r, has_graph ? "it has no IR version"
                                        : "it has no IR version and no graph");
    if (ir_version < MIN_IR_VERSION || ir_version > INT32_MAX)
        return sn_fail(r->err, SONDE_UNSUPPORTED,
                       "the model has IR version %lld; the oldest supported version is %d",
                       (long long)ir_version, MIN_IR_VERSION);
    if (!has_graph)
        return not_a_model(r, "it has no graph");
    r->m->ir_version = (int64_t)ir_version;
    if (ir_version > KNOWN_IR_VERSION) {
        sn_log_write(&r->m->ctx->log, SN_LOG_WARN,
                     "the model has IR version %lld, which is newer than the supported versions 3 "
                     "to %d; it is read as the newest of these",
                     (long long)ir_version, KNOWN_IR_VERSION);
        sn_onnx_reader_tell_unknown(r, w);
    }
    return SONDE_OK;
}

static sonde_status add_function(sn_onnx_reader *r, sn_wire w)
{
    sn_function fn;
    /* Room first: a function that was read must find its owner. */
    if (!sn_vec_reserve(&r->m->functions, r->alloc, 1))
        return sn_fail_memory(r->err, sizeof fn);
    SN_TRY(sn_read_function(r, w, &fn));
    r->m->functions.data[r->m->functions.n++] = fn;
    return SONDE_OK;
}

static sonde_status read_model_field(sn_onnx_reader *r, const sn_field *f)
{
    sn_model *m = r->m;
    switch (f->tag) {
    case SN_LEN(2):
        return sn_onnx_reader_name(r, &f->body, "the producer", &m->producer_name);
    case SN_LEN(3):
        return sn_onnx_reader_name(r, &f->body, "the producer version", &m->producer_version);
    case SN_LEN(4):
        return sn_onnx_reader_name(r, &f->body, "the model domain", &m->domain);
    case SN_INT(5):
        m->model_version = (int64_t)f->num;
        return SONDE_OK;
    case SN_LEN(6):
        return sn_onnx_reader_name(r, &f->body, "the documentation", &m->doc);
    case SN_LEN(8):
        return add_opset(r, f->body);
    case SN_LEN(14):
        return add_metadata(r, f->body);
    case SN_LEN(25):
        return add_function(r, f->body);
    default:
        return SONDE_OK;
    }
}

static sonde_status read_model(sn_onnx_reader *r, sn_wire w)
{
    sn_model *m = r->m;
    sn_wire graph;
    sn_field f;
    SN_TRY(find_graph(r, w, &graph));
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD)
        SN_TRY(read_model_field(r, &f));
    if (m->opsets.n == 0)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "the model imports no operator set");
    SN_TRY(sn_read_graph(r, graph, m->graph, true));
    m->graph_name = m->graph->name;
    return SONDE_OK;
}

sonde_status sn_onnx_read(sn_model *m, const void *data, size_t bytes, const sn_onnx_options *opt,
                          sonde_error *err)
{
    sn_onnx_reader r = {.m = m,
                        .arena = &m->arena,
                        .alloc = m->ctx->alloc,
                        .opt = opt,
                        .read_body = sn_read_body,
                        .err = err};
    sn_map_init(&r.by_location, r.alloc);
    sn_map_init(&r.by_path, r.alloc);
    sn_map_init(&r.symbols, r.alloc);
    sn_arena_init(&r.scratch, r.alloc);
    sonde_status st = read_model(&r, sn_wire_of(data, bytes));
    sn_external_free(&r);
    sn_map_free(&r.symbols);
    sn_arena_free(&r.scratch);
    return st;
}
