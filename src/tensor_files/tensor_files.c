/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: tensor_formats.inc as an array, the choice by suffix, and the way from a path and
 * to one. Test data of ONNX (.pb files and folders of them) and images are no rows: a folder is no
 * file, and an image is read for the input it belongs to. */
#include "tensor_files/tensor_files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/list_text.h"
#include "tensor_files/formats.h"

static const sn_tensor_format *const formats[] = {
#define SN_TENSOR_FORMAT(symbol) &symbol,
#include "tensor_files/tensor_formats.inc"
#undef SN_TENSOR_FORMAT
};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static const sn_tensor_format *find_format(const char *path)
{
    for (size_t k = 0; k < N_FORMATS; k++)
        if (sn_has_suffix(path, formats[k]->suffix))
            return formats[k];
    return NULL;
}

/* ".npy, .npz, .safetensors" */
static const char *suffixes(sn_list_text *known)
{
    *known = (sn_list_text){0};
    for (size_t k = 0; k < N_FORMATS; k++)
        sn_list_add(known, "%s", formats[k]->suffix);
    return sn_list_end(known);
}

sonde_status sn_tensor_file_read(const char *path, const sn_type *as, sn_named_list *out,
                                 sonde_error *err)
{
    const sn_tensor_format *format = find_format(path);
    struct stat info;
    sn_list_text known;
    sn_file f;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return sn_pb_read_folder(path, out, err);
    if (sn_has_suffix(path, ".pb"))
        return sn_pb_read(path, "", as, out, err);
    if (sn_is_image_path(path))
        return sn_image_read(path, as, out, err);
    if (!format)
        return sn_fail(
            err, SONDE_UNSUPPORTED,
            "unknown format of '%.300s'; supported suffixes are %s, .pb, .jpg, .png and .ppm", path,
            suffixes(&known));
    SN_TRY(sn_file_open(&f, path, !out->no_mmap, out->alloc, err));
    sonde_status st = format->read(f.data, f.bytes, as, out, err);
    sn_file_close(&f);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(err, "'%.300s'", path);
    return st;
}

static bool is_folder_path(const char *path)
{
    const size_t n = strlen(path);
    return n && path[n - 1] == '/';
}

sonde_status sn_tensor_file_can_write(const char *path, sonde_error *err)
{
    sn_list_text known;
    if (is_folder_path(path) || find_format(path))
        return SONDE_OK;
    return sn_fail(err, SONDE_UNSUPPORTED,
                   "cannot write '%.300s': the suffix must be %s, or the name must end in / "
                   "for a folder of .pb files",
                   path, suffixes(&known));
}

sonde_status sn_tensor_file_write(const char *path, const sn_named_list *l, sonde_error *err)
{
    const sn_tensor_format *format = find_format(path);
    SN_TRY(sn_tensor_file_can_write(path, err));
    if (is_folder_path(path))
        return sn_pb_write_folder(path, l, err);
    sn_bytes b = {.alloc = l->alloc};
    sonde_status st = format->write(l, &b, err);
    if (st == SONDE_OK && b.failed)
        st = sn_fail_memory(err, b.v.n);
    if (st == SONDE_OK)
        st = sn_file_write(path, b.v.data ? (const void *)b.v.data : "", b.v.n, err);
    sn_bytes_free(&b);
    return st;
}
