/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto, and the way in: open the file, read it, finish the model. The first walk over the top
 * level decides whether this is an ONNX model at all, so that a wrong file gets a plain sentence.
 */
#include <string.h>

#include "onnx/reader.h"

#define MIN_IR_VERSION 3
#define KNOWN_IR_VERSION                                                                           \
    14 /* all that files up to this one can hold is known, or refused by name */

static sonde_status add_opset(sn_reader *r, sn_wire w)
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

static sonde_status add_metadata(sn_reader *r, sn_wire w)
{
    sn_field f;
    sn_wire_status got;
    sn_meta meta = {"", ""};
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(1))
            SN_TRY(sn_reader_name(r, &f.body, "a metadata key", &meta.key));
        else if (f.tag == SN_LEN(2))
            SN_TRY(sn_reader_name(r, &f.body, "a metadata value", &meta.value));
    }
    if (got == SN_WIRE_BROKEN)
        return sn_reader_broken(r, "a metadata entry");
    return sn_vec_push(&r->m->metadata, r->alloc, meta) ? SONDE_OK
                                                        : sn_fail_memory(r->err, sizeof meta);
}

static sonde_status not_a_model(sn_reader *r, const char *why)
{
    return sn_fail(r->err, SONDE_INVALID_MODEL, "this is not an ONNX model: %s", why);
}

/* What a file that is no protobuf at all most likely is. */
static sonde_status not_protobuf(sn_reader *r, const sn_wire *w)
{
    static const struct {
        const char *start, *why;
    } known[] = {
        {"version https://git-lfs", "it is a Git LFS pointer; the model itself was not downloaded"},
        {"PK\x03\x04", "it is a zip archive"},
        {"\x89HDF", "it is an HDF5 file"},
        {"\x1f\x8b", "it is compressed with gzip"},
        {"<", "it is a text or web page"},
        {"{", "it is JSON text"},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        size_t n = strlen(known[k].start);
        if (sn_wire_bytes(w) >= n && memcmp(w->at, known[k].start, n) == 0)
            return not_a_model(r, known[k].why);
    }
    return not_a_model(r, "its bytes end early or are not protobuf");
}

/* The first walk: the bytes are a message with an IR version we can read and a graph. */
static sonde_status find_graph(sn_reader *r, sn_wire w, sn_wire *graph)
{
    sn_wire at = w;
    sn_field f;
    sn_wire_status got;
    uint64_t ir_version = 0;
    bool has_graph = false;
    if (w.at == w.end)
        return not_a_model(r, "there are no bytes in it");
    while ((got = sn_wire_next(&at, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(1)) {
            ir_version = f.num;
        } else if (f.tag == SN_LEN(7)) {
            *graph = f.body;
            has_graph = true;
        }
    }
    if (got == SN_WIRE_BROKEN)
        return not_protobuf(r, &w);
    if (ir_version == 0)
        return not_a_model(r, has_graph ? "it states no IR version"
                                        : "it states no IR version and has no graph");
    if (ir_version < MIN_IR_VERSION || ir_version > INT32_MAX)
        return sn_fail(r->err, SONDE_UNSUPPORTED,
                       "the model has IR version %lld; versions from %d on can be read",
                       (long long)ir_version, MIN_IR_VERSION);
    if (!has_graph)
        return not_a_model(r, "it has no graph");
    r->m->ir_version = (int64_t)ir_version;
    if (ir_version > KNOWN_IR_VERSION) {
        sn_log_write(
            &r->m->ctx->log, SN_LOG_WARN,
            "the model has IR version %lld; this version knows 3 to %d and reads it as such",
            (long long)ir_version, KNOWN_IR_VERSION);
        sn_reader_tell_unknown(r, w);
    }
    return SONDE_OK;
}

static sonde_status add_function(sn_reader *r, sn_wire w)
{
    sn_function fn;
    /* Room first: a function that was read must find its owner. */
    if (!sn_vec_reserve(&r->m->functions, r->alloc, 1))
        return sn_fail_memory(r->err, sizeof fn);
    SN_TRY(sn_read_function(r, w, &fn));
    r->m->functions.data[r->m->functions.n++] = fn;
    return SONDE_OK;
}

static sonde_status read_model_field(sn_reader *r, const sn_field *f)
{
    sn_model *m = r->m;
    switch (f->tag) {
    case SN_LEN(2):
        return sn_reader_name(r, &f->body, "the producer", &m->producer_name);
    case SN_LEN(3):
        return sn_reader_name(r, &f->body, "the producer version", &m->producer_version);
    case SN_LEN(4):
        return sn_reader_name(r, &f->body, "the model domain", &m->domain);
    case SN_INT(5):
        m->model_version = (int64_t)f->num;
        return SONDE_OK;
    case SN_LEN(6):
        return sn_reader_name(r, &f->body, "the documentation", &m->doc);
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

sonde_status sn_read_model(sn_reader *r, sn_wire w)
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

/* Reads `w` into a model that already owns the bytes, and finishes it. */
static sonde_status load(sn_model *m, sn_wire w, const char *dir, const sn_onnx_options *opt,
                         sonde_error *err)
{
    sn_reader r = {.m = m,
                   .arena = &m->arena,
                   .alloc = m->ctx->alloc,
                   .opt = opt,
                   .read_body = sn_read_body,
                   .err = err};
    r.dir = opt->external_dir ? opt->external_dir : dir;
    sn_map_init(&r.by_location, r.alloc);
    sn_map_init(&r.by_path, r.alloc);
    sn_map_init(&r.symbols, r.alloc);
    sn_arena_init(&r.scratch, r.alloc);
    uint64_t t = sn_span_begin(m->ctx->trace);
    sonde_status st = sn_read_model(&r, w);
    sn_external_free(&r);
    sn_map_free(&r.symbols);
    sn_arena_free(&r.scratch);
    sn_span_end(m->ctx->trace, t, "parse", NULL);
    SN_TRY(st);
    t = sn_span_begin(m->ctx->trace);
    st = sn_model_finish(m, err);
    sn_span_end(m->ctx->trace, t, "finish", NULL);
    return st;
}

static const sn_onnx_options defaults;

/* The folder part of a path, in the model's arena: "" for none, "/" kept. */
static const char *folder_of(sn_model *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return "";
    return sn_arena_strndup(&m->arena, path, slash == path ? 1 : (size_t)(slash - path));
}

sonde_status sn_onnx_load_file(sn_context *ctx, const char *path, const sn_onnx_options *opt,
                               sn_model **out, sonde_error *err)
{
    sn_model *m;
    sonde_status st;
    opt = opt ? opt : &defaults;
    *out = NULL;
    SN_TRY(sn_model_new(&m, ctx, err));
    sn_file *file = SN_NEW(&m->arena, sn_file);
    const char *dir = folder_of(m, path);
    if (!file || !dir || !sn_vec_reserve(&m->files, ctx->alloc, 1)) {
        st = sn_fail_memory(err, sizeof *file);
        goto fail;
    }
    uint64_t t = sn_span_begin(ctx->trace);
    SN_TRY_GOTO(st, sn_file_open(file, path, !opt->no_mmap, ctx->alloc, err));
    sn_span_end(ctx->trace, t, "read", NULL);
    m->files.data[m->files.n++] = file;
    m->file_bytes = file->bytes;
    st = load(m, sn_wire_of(file->data, file->bytes), dir, opt, err);
    if (st == SONDE_OK) {
        *out = m;
        return SONDE_OK;
    }
    if (st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(err, "'%.300s'", path);
fail:
    sn_model_unref(m);
    return st;
}

sonde_status sn_onnx_load_memory(sn_context *ctx, const void *data, size_t bytes, sn_buffer *owner,
                                 const sn_onnx_options *opt, sn_model **out, sonde_error *err)
{
    sn_model *m;
    *out = NULL;
    SN_TRY(sn_model_new(&m, ctx, err));
    sonde_status st = SONDE_OK;
    if (owner) {
        if (sn_vec_push(&m->buffers.list, ctx->alloc, owner))
            sn_buffer_ref(owner);
        else
            st = sn_fail_memory(err, sizeof owner);
    }
    m->file_bytes = bytes;
    if (st == SONDE_OK)
        st = load(m, sn_wire_of(bytes ? data : "", bytes), NULL, opt ? opt : &defaults, err);
    if (st == SONDE_OK)
        *out = m;
    else
        sn_model_unref(m);
    return st;
}
