/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: model_readers.inc as an array, the choice by content, and the way from a path or
 * from bytes to a finished model and back. */
#include "model_readers/model_readers.h"

#include <stdio.h>
#include <string.h>

#include "base/list_text.h"
#include "model_readers/foreign.h"

static const sn_model_reader *const rows[] = {
#define SN_MODEL_READER(symbol) &symbol,
#include "model_readers/model_readers.inc"
#undef SN_MODEL_READER
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

const sn_model_reader *sn_model_reader_row(size_t k)
{
    return k < N_ROWS ? rows[k] : NULL;
}

/* ---- the choice ---- */

static bool ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

/* `looks` (may be NULL): what the bytes look like. */
static sonde_status unknown(const sn_model_reader *const *list, size_t n, const char *looks,
                            sonde_error *err)
{
    if (n == 1 && looks)
        return sn_fail(err, SONDE_INVALID_FORMAT, "this is not an %s model: %s", list[0]->name,
                       looks);
    sn_list_text names = {0};
    for (size_t k = 0; k < n; k++)
        sn_list_add(&names, "%s", list[k]->name);
    return sn_fail(err, SONDE_INVALID_FORMAT,
                   "the format of this file is unknown%s%s; supported formats: %s",
                   looks ? ": " : "", looks ? looks : "", sn_list_end(&names));
}

sonde_status sn_model_reader_choose(const sn_model_reader *const *list, size_t n,
                                    const sn_model_source *src, const sn_model_reader **row,
                                    sonde_error *err)
{
    for (size_t k = 0; k < n; k++)
        if (list[k]->sniff(src)) {
            *row = list[k];
            return SONDE_OK;
        }
    const char *looks = sn_foreign_text(src->data, src->bytes);
    for (size_t k = 0; k < n && !looks; k++)
        if (n == 1 || (src->path && ends_with(src->path, list[k]->suffix))) {
            *row = list[k];
            return SONDE_OK;
        }
    return unknown(list, n, looks, err);
}

/* ---- loading ---- */

/* Reads the bytes into a model that already owns them, and finishes it. */
static sonde_status load(sn_model *m, const sn_model_source *src, sonde_error *err)
{
    const sn_model_reader *row;
    uint64_t t = sn_span_begin(m->ctx->trace);
    sonde_status st = sn_model_reader_choose(rows, N_ROWS, src, &row, err);
    if (st == SONDE_OK)
        st = row->read(src, m, err);
    sn_span_end(m->ctx->trace, t, "parse", NULL);
    SN_TRY(st);
    t = sn_span_begin(m->ctx->trace);
    st = sn_model_finish(m, err);
    sn_span_end(m->ctx->trace, t, "finish", NULL);
    return st;
}

static const sn_model_options defaults;

/* The folder part of a path, in the model's arena: "" for none, "/" kept. */
static const char *folder_of(sn_model *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return "";
    return sn_arena_strndup(&m->arena, path, slash == path ? 1 : (size_t)(slash - path));
}

sonde_status sn_model_load_file(sn_context *ctx, const char *path, const sn_model_options *opt,
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
    const sn_model_source src = {.data = file->data,
                                 .bytes = file->bytes,
                                 .path = path,
                                 .dir = opt->external_dir ? opt->external_dir : dir,
                                 .no_mmap = opt->no_mmap};
    st = load(m, &src, err);
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

sonde_status sn_model_load_memory(sn_context *ctx, const void *data, size_t bytes, sn_buffer *owner,
                                  const sn_model_options *opt, sn_model **out, sonde_error *err)
{
    sn_model *m;
    opt = opt ? opt : &defaults;
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
    const sn_model_source src = {.data = bytes ? data : "",
                                 .bytes = bytes,
                                 .dir = opt->external_dir,
                                 .no_mmap = opt->no_mmap};
    if (st == SONDE_OK)
        st = load(m, &src, err);
    if (st == SONDE_OK)
        *out = m;
    else
        sn_model_unref(m);
    return st;
}
