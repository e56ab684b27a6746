/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped read-only, or read whole where mapping is refused or unwanted. */
#ifndef SN_BASE_FILE_H
#define SN_BASE_FILE_H

#include "base/alloc.h"

typedef struct sn_file {
    const uint8_t *data;
    size_t bytes;
    bool mapped;
    sn_allocator *alloc; /* of the copy when not mapped */
    size_t cap;          /* bytes of that copy's block, 0 = none */
    /* Of a regular file: device, inode, size and the times of its last changes, hashed. Another
     * number means that the content may be another. 0: not known. */
    uint64_t identity;
} sn_file;

/* Errors name the path and the cause; a path that does not exist is SONDE_NOT_FOUND, the rest
 * SONDE_IO. A zero-byte file is valid: data non-NULL, bytes 0. Directories are refused;
 * pipes and other unmappable files are read whole. */
sonde_status sn_file_open(sn_file *f, const char *path, bool map, sn_allocator *alloc,
                          sonde_error *err);
/* The same of an open descriptor, which it closes; `path` is for messages. */
sonde_status sn_file_take(sn_file *f, int fd, const char *path, bool map, sn_allocator *alloc,
                          sonde_error *err);
void sn_file_close(sn_file *f);
/* Tells the kernel that this byte range is not needed any more (whole pages inside it). */
void sn_file_release(const sn_file *f, const void *start, size_t bytes);

/* Writes atomically: a temporary file beside `path`, then a rename, so that readers see the old or
 * the new content and a failure leaves the old. Links are followed; pipes and devices are written
 * to as they are. */
sonde_status sn_file_write(const char *path, const void *data, size_t bytes, sonde_error *err);
/* A file of the folder that `dir` is open on, for its owner's eyes only. Atomic as above, with
 * `sync` also when the machine crashes; whatever had the name, a link included, is replaced and not
 * followed. */
sonde_status sn_file_write_private(int dir, const char *name, const void *data, size_t bytes,
                                   bool sync, sonde_error *err);

#endif
