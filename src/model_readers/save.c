/* SPDX-License-Identifier: Apache-2.0 */
/* Saving models. A model may consist of two files, itself and its weights (external data), and the
 * old ones may be mapped by the model that is written. So both are written beside their places, and
 * put there when both are whole: the weights first, because a model without them is broken, while
 * weights that no model names do no harm. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "model_readers/model_readers.h"

typedef struct saving {
    sn_file_writer model, data;
    sn_write_how how;
    const char *data_path;
    bool data_open;
    sonde_status status; /* of opening the second file */
    sonde_error error;
    const sn_model *source; /* whose files are not to be destroyed */
} saving;

static bool ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

/* NULL: no format that can be written is called so. */
static const sn_model_reader *row_to_save_as(const char *path)
{
    const sn_model_reader *row;
    for (size_t k = 0; (row = sn_model_reader_row(k)) != NULL; k++)
        if (row->write && ends_with(path, row->suffix))
            return row;
    return NULL;
}

bool sn_model_can_save_as(const char *path)
{
    return row_to_save_as(path) != NULL;
}

/* ---- the second file ---- */

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Models find their data in their own folder, and nowhere else. */
static sonde_status check_name(const char *name, const char *path, sonde_error *err)
{
    if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the name of external data, '%s', must be the name of a file in the folder "
                       "of the model, without '/'",
                       name);
    if (strcmp(name, path + folder_length(path)) == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "'%s' cannot be both the model and its external data", path);
    return SONDE_OK;
}

/* A model must not be written over the weights that it was read from: they belong to a file that
 * stays. */
static sonde_status check_path(const sn_model *m, const char *path, sonde_error *err)
{
    for (size_t k = 1; k < m->files.n; k++)
        if (sn_file_is_at(m->files.data[k], path))
            return sn_fail(
                err, SONDE_INVALID_ARGUMENT,
                "cannot write '%s': it contains weights of the model that is being saved", path);
    return SONDE_OK;
}

/* The same for external data, unless the model that names them is replaced, too. */
static sonde_status check_data_path(const sn_model *m, const char *path, const char *data_path,
                                    sonde_error *err)
{
    const bool replaces = m->files.n && sn_file_is_at(m->files.data[0], path);
    for (size_t k = 0; k < m->files.n; k++) {
        const bool is_data = sn_file_is_at(m->files.data[k], data_path);
        if (is_data && (k == 0 || !replaces))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "external data cannot be written to '%s': the model that is being "
                           "saved was read from it",
                           data_path);
    }
    return SONDE_OK;
}

static sonde_status check_place(const char *path, sonde_error *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the model needs external data, a second file in its folder, and '%s' is no "
                       "regular file",
                       path);
    return SONDE_OK;
}

static sonde_status open_data(const sn_model *m, saving *s)
{
    sonde_error *err = &s->error;
    SN_TRY(check_place(s->model.path, err));
    SN_TRY(check_data_path(m, s->model.path, s->data_path, err));
    return sn_file_writer_open(&s->data, s->data_path, s->how, err);
}

/* ---- writing ---- */

static bool write_to_model(void *user, const void *data, size_t bytes)
{
    saving *s = user;
    return sn_file_writer_put(&s->model, data, bytes);
}

static bool write_to_data(void *user, const void *data, size_t bytes)
{
    saving *s = user;
    if (!s->data_open && s->status == SONDE_OK) {
        s->status = open_data(s->source, s);
        s->data_open = s->status == SONDE_OK;
    }
    return s->data_open && sn_file_writer_put(&s->data, data, bytes);
}

/* Nothing is put in its place before all bytes of both have reached their files. */
static sonde_status finish(saving *s, sonde_error *err)
{
    if (!s->data_open)
        return sn_file_writer_finish(&s->model, false, err);
    if (sn_file_writer_flush(&s->model))
        SN_TRY(sn_file_writer_finish(&s->data, false, err));
    return sn_file_writer_finish(&s->model, false, err); /* says why it could not be written */
}

static sonde_status save(const sn_model *m, const sn_graph *g, const sn_model_reader *row,
                         const char *data_name, const sn_model_save_options *opt, saving *s,
                         sonde_error *err)
{
    const sn_model_sink sink = {
        .write = write_to_model, .write_data = write_to_data, .user = s, .data_name = data_name};
    sonde_status st = row->write(m, g, &sink, opt, err);
    if (s->status != SONDE_OK)
        return sn_fail(err, s->status, "%s", s->error.message);
    if (st == SONDE_OK)
        return finish(s, err);
    if (s->data_open && s->data.cause) /* finishing says what became of a file */
        st = sn_file_writer_finish(&s->data, false, err);
    else if (s->model.cause)
        st = sn_file_writer_finish(&s->model, false, err);
    return st;
}

/* The model being written may be mapped from the very file it replaces. */
static bool is_mapped(const sn_model *m)
{
    for (size_t k = 0; k < m->files.n; k++)
        if (m->files.data[k]->mapped)
            return true;
    return false;
}

static const sn_model_save_options defaults;

sonde_status sn_model_save_file(const sn_model *m, const sn_graph *g, const char *path,
                                const sn_model_save_options *opt, sonde_error *err)
{
    const sn_model_reader *row = row_to_save_as(path);
    sn_arena arena;
    opt = opt ? opt : &defaults;
    const sn_model *source = opt->source ? opt->source : m;
    sn_arena_init(&arena, m->ctx->alloc);
    saving *s = SN_NEW(&arena, saving); /* too large for small stacks */
    if (!s) {
        sn_arena_free(&arena);
        return sn_fail_memory(err, sizeof *s);
    }
    s->how = is_mapped(source) ? SN_WRITE_REPLACE : SN_WRITE_WHOLE;
    s->status = SONDE_OK;
    const char *base = path + folder_length(path);
    const char *name =
        opt->external_name ? opt->external_name : sn_arena_printf(&arena, "%s.data", base);
    s->data_path =
        name ? sn_arena_printf(&arena, "%.*s%s", (int)folder_length(path), path, name) : NULL;
    sonde_status st = s->data_path ? SONDE_OK : sn_fail_memory(err, strlen(path));
    if (st == SONDE_OK && opt->external_name)
        st = check_name(name, path, err);
    if (st == SONDE_OK)
        st = check_path(source, path, err);
    if (st == SONDE_OK)
        st = sn_file_writer_open(&s->model, path, s->how, err);
    if (st == SONDE_OK) {
        s->source = source;
        st = save(m, g, row ? row : &sn_model_reader_onnx, name, opt, s, err);
        sn_file_writer_abandon(&s->model);
        if (s->data_open)
            sn_file_writer_abandon(&s->data);
    }
    sn_arena_free(&arena);
    return st;
}
