/* SPDX-License-Identifier: Apache-2.0 */
/* External data: tensors in files beside the model. A model comes from anywhere, so it may only
 * name files inside its folder: absolute paths, "..", and links that lead out are refused. Each
 * file is opened once, whatever its spelling. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "onnx/reader.h"

static sonde_status refuse(sn_onnx_reader *r, const sn_tensor_source *s, const char *why)
{
    return sn_fail(r->err, SONDE_INVALID_MODEL, "initializer '%.*s' names external data '%.*s': %s",
                   SN_SHOW(s->name), SN_SHOW(s->location), why);
}

static bool has_dot_dot(const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n;
        p += *p == '/';
    }
    return false;
}

/* Resolves `dir`/`location`, links followed; the result is malloc's and lies inside the folder. */
static sonde_status resolve(sn_onnx_reader *r, const sn_tensor_source *s, const char *location,
                            char **out)
{
    if (!r->opt->dir)
        return refuse(r, s, "a model loaded from memory has no folder to look in");
    if (location[0] == '/')
        return refuse(r, s, "an absolute path");
    if (has_dot_dot(location))
        return refuse(r, s, "the path is outside the model's folder");
    if (!r->real_dir)
        r->real_dir = realpath(r->opt->dir[0] ? r->opt->dir : ".", NULL);
    if (!r->real_dir)
        return sn_fail(r->err, SONDE_IO, "cannot find the folder of external data '%s': %s",
                       r->opt->dir, strerror(errno));
    char *joined = sn_arena_printf(r->arena, "%s/%s", r->real_dir, location);
    if (!joined)
        return sn_fail_memory(r->err, strlen(location));
    char *real = realpath(joined, NULL);
    if (!real)
        return sn_fail(r->err, errno == ENOENT ? SONDE_NOT_FOUND : SONDE_IO,
                       "initializer '%.*s' is in '%s', which cannot be opened: %s",
                       SN_SHOW(s->name), joined, strerror(errno));
    size_t n = strlen(r->real_dir);
    bool inside = n == 1 || (strncmp(real, r->real_dir, n) == 0 && real[n] == '/');
    struct stat info;
    if (!inside || stat(real, &info) != 0 || !S_ISREG(info.st_mode)) {
        free(real);
        return refuse(
            r, s, inside ? "not a regular file" : "a link to a place outside the model's folder");
    }
    *out = real;
    return SONDE_OK;
}

/* The open file at the resolved path `real`. */
static sonde_status open_once(sn_onnx_reader *r, const char *real, sn_file **out)
{
    sn_file *f = sn_map_get(&r->by_path, real);
    if (!f) {
        const char *key = sn_arena_strdup(r->arena, real);
        f = SN_NEW(r->arena, sn_file);
        if (!key || !f)
            return sn_fail_memory(r->err, sizeof *f);
        SN_TRY(sn_file_open(f, real, !r->opt->no_mmap, r->alloc, r->err));
        if (!sn_vec_push(&r->m->files, r->alloc, f)) {
            sn_file_close(f);
            return sn_fail_memory(r->err, sizeof f);
        }
        r->m->file_bytes += f->bytes;
        if (!sn_map_put(&r->by_path, key, f, NULL))
            return sn_fail_memory(r->err, sizeof f);
    }
    *out = f;
    return SONDE_OK;
}

sonde_status sn_external_resolve(sn_onnx_reader *r, sn_tensor_source *s)
{
    const void *key = s->location.at;
    size_t key_bytes = sn_wire_bytes(&s->location);
    sn_file *f = sn_map_get_n(&r->by_location, key, key_bytes);
    if (!f) {
        const char *location;
        char *real = NULL;
        SN_TRY(sn_onnx_reader_name(r, &s->location, "an external location", &location));
        SN_TRY(resolve(r, s, location, &real));
        sonde_status st = open_once(r, real, &f);
        free(real);
        SN_TRY(st);
        if (!sn_map_put_n(&r->by_location, location, key_bytes, f, NULL))
            return sn_fail_memory(r->err, key_bytes);
    }
    if (s->offset > f->bytes || s->file_bytes > f->bytes - s->offset)
        return sn_fail(r->err, SONDE_INVALID_MODEL,
                       "initializer '%.*s' is at bytes %llu to %llu of '%.*s', which has only %zu",
                       SN_SHOW(s->name), (unsigned long long)s->offset,
                       (unsigned long long)s->offset + s->file_bytes, SN_SHOW(s->location),
                       f->bytes);
    s->raw = f->data + s->offset;
    return SONDE_OK;
}

void sn_external_free(sn_onnx_reader *r)
{
    free(r->real_dir);
    r->real_dir = NULL;
    sn_map_free(&r->by_location);
    sn_map_free(&r->by_path);
}
