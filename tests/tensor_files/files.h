/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of tensor files share: a folder of their own, and lists of values. */
#ifndef SONDE_TESTS_TENSOR_FILES_FILES_H
#define SONDE_TESTS_TENSOR_FILES_FILES_H

#include "base/file.h"
#include "graph/same_tensor.h"
#include "temp_folder.h"
#include "tensor_files/formats.h"
#include "tensor_files/tensor_files.h"
#include "test.h"

typedef struct files {
    sn_allocator alloc;
    sonde_error err;
    char folder[TEMP_PATH];
    char path[256];
    sn_named_list list;
} files;

static inline void files_init(files *f)
{
    memset(f, 0, sizeof *f);
    sn_allocator_init_system(&f->alloc);
    sn_named_init(&f->list, &f->alloc);
    temp_make(f->folder);
}
static inline const char *files_path(files *f, const char *name)
{
    snprintf(f->path, sizeof f->path, "%s/%s", f->folder, name);
    return f->path;
}
static inline void files_put(files *f, const char *name, const void *data, size_t n)
{
    if (sn_file_write(files_path(f, name), n ? data : "", n, &f->err) != SONDE_OK)
        abort();
}
static inline void files_clear(files *f)
{
    sn_named_free(&f->list);
    sn_named_init(&f->list, &f->alloc);
}
/* True when no memory is left. */
static inline bool files_free(files *f)
{
    sn_named_free(&f->list);
    temp_remove(f->folder);
    return atomic_load(&f->alloc.live_bytes) == 0;
}

static inline void add_tensor(files *f, const char *name, sn_dtype dtype, int rank,
                              const int64_t *dims, const void *data)
{
    sn_slot s = {0};
    sonde_status st = dtype == SONDE_DTYPE_STRING
                          ? sn_slot_new_strings(&s, dims, rank, data, &f->alloc, &f->err)
                          : sn_slot_new_tensor(&s, dtype, dims, rank, &f->alloc, &f->err);
    if (st != SONDE_OK)
        abort();
    if (dtype != SONDE_DTYPE_STRING && s.t.bytes)
        memcpy(s.t.data, data, s.t.bytes);
    if (sn_named_add(&f->list, name, &s, &f->err) != SONDE_OK)
        abort();
}

typedef sonde_status (*read_fn)(const uint8_t *, size_t, const sn_type *, sn_named_list *,
                                sonde_error *);

/* Cuts the bytes at every place and flips every bit: reading must succeed or fail, and cost no more
 * memory than the file justifies. Returns how often it failed, -1 when a rule was broken. */
static inline long hurt(files *f, const uint8_t *data, size_t n, read_fn read)
{
    long failures = 0;
    for (size_t k = 0; k < n * 9; k++) {
        size_t bytes = k < n ? k : n;
        uint8_t *copy = malloc(bytes + 1);
        memcpy(copy, data, bytes);
        if (k >= n)
            copy[(k - n) / 8] ^= (uint8_t)(1u << (k - n) % 8);
        uint8_t *exact = malloc(bytes ? bytes : 1);
        memcpy(exact, copy, bytes);
        free(copy);
        f->err.message[0] = 0;
        sonde_status st = read(exact, bytes, NULL, &f->list, &f->err);
        failures += st != SONDE_OK;
        bool ok = (st == SONDE_OK || f->err.message[0]) &&
                  atomic_load(&f->alloc.peak_bytes) < (size_t)64 << 20;
        files_clear(f);
        free(exact);
        if (!ok)
            return -1;
    }
    return failures;
}

#endif
