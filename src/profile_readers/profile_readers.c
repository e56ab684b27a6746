/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: profile_readers.inc as an array, the choice by content, and the way from a path. */
#include "profile_readers/profile_readers.h"
#include "profile/left.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/list_text.h"
#include "profile_readers/parts.h"

static const sn_profile_reader *const rows[] = {
#define SN_PROFILE_READER(symbol) &symbol,
#include "profile_readers/profile_readers.inc"
#undef SN_PROFILE_READER
};

const sn_profile_reader *sn_profile_reader_row(size_t k)
{
    return k < sizeof rows / sizeof rows[0] ? rows[k] : NULL;
}

static sonde_status unknown(const void *data, size_t bytes, const char *name, sonde_error *err)
{
    if (bytes > 2 && memcmp(data, "\x1F\x8B", 2) == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "'%s' is compressed: unpack it (gunzip) first. A .page.gz is for other "
                       "programs: sonde reads .pftrace and .json",
                       name);
    sn_list_text known = {0};
    const sn_profile_reader *row;
    for (size_t k = 0; (row = sn_profile_reader_row(k)) != NULL; k++)
        sn_list_add(&known, "%s", row->name);
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "'%.300s' is not a profile in a supported format (%s)", name,
                   sn_list_end(&known));
}

sonde_status sn_profile_read_with(const sn_profile_reader *row, const void *data, size_t bytes,
                                  sn_allocator *alloc, sn_profile **profile, sonde_error *err)
{
    *profile = NULL;
    sn_profile *p = NULL;
    if (row->read_part)
        return sn_profile_parts_join(row, data, bytes, alloc, profile, err);
    SN_TRY(sn_profile_new(&p, alloc, err));
    sonde_status st = row->read(data, bytes, p, err);
    if (st == SONDE_OK)
        st = sn_profile_check(p, err);
    if (st == SONDE_OK)
        st = sn_left_tell(p, err);
    if (st != SONDE_OK) {
        sn_profile_free(p);
        return st;
    }
    *profile = p;
    return SONDE_OK;
}

const sn_profile_reader *sn_profile_reader_of(const void *data, size_t bytes, const char *name,
                                              sonde_error *err)
{
    const sn_profile_reader *row;
    for (size_t k = 0; (row = sn_profile_reader_row(k)) != NULL; k++)
        if (row->sniff(data, bytes < SN_PROFILE_READER_HEAD ? bytes : SN_PROFILE_READER_HEAD))
            return row;
    (void)unknown(data, bytes, name, err);
    return NULL;
}

sonde_status sn_profile_read_bytes(const void *data, size_t bytes, const char *name,
                                   sn_allocator *alloc, sn_profile **profile, sonde_error *err)
{
    *profile = NULL;
    const sn_profile_reader *row = sn_profile_reader_of(data, bytes, name, err);
    if (!row)
        return SONDE_INVALID_ARGUMENT;
    const sonde_status st = sn_profile_read_with(row, data, bytes, alloc, profile, err);
    if (st != SONDE_OK)
        sn_error_prefix(err, "cannot read '%s' as %s", name, row->name);
    return st;
}

sonde_status sn_profile_read_file(const char *path, bool map, sn_allocator *alloc,
                                  sn_profile **profile, sonde_error *err)
{
    *profile = NULL;
    sn_file file;
    SN_TRY(sn_file_open(&file, path, map, alloc, err));
    sonde_status st = sn_profile_read_bytes(file.data, file.bytes, path, alloc, profile, err);
    sn_file_close(&file);
    SN_TRY(st);
    const char *slash = strrchr(path, '/');
    const char *name = sn_arena_strdup(&(*profile)->arena, slash ? slash + 1 : path);
    if (!name) {
        sn_profile_free(*profile);
        *profile = NULL;
        return sn_fail_memory(err, strlen(path));
    }
    (*profile)->file_name = name;
    return SONDE_OK;
}
