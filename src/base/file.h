/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped read-only, or read whole where mapping is refused or unwanted; written whole or not
 * at all. */
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
 * pipes and other unmappable files are read whole, as far as the allocator's limit or the machine's
 * memory goes. A mapped file that someone cuts short is a trap: reading behind its new end raises
 * SIGBUS. */
sonde_status sn_file_open(sn_file *f, const char *path, bool map, sn_allocator *alloc,
                          sonde_error *err);
/* The same of an open descriptor, which it closes; `path` is for messages. */
sonde_status sn_file_take(sn_file *f, int fd, const char *path, bool map, sn_allocator *alloc,
                          sonde_error *err);
/* Read, not mapped; one of more than `most` bytes is refused with SONDE_LIMIT. */
sonde_status sn_file_read(sn_file *f, const char *path, size_t most, sn_allocator *alloc,
                          sonde_error *err);
void sn_file_close(sn_file *f);
/* Whether the path leads to the very file that was opened, unchanged since. */
bool sn_file_is_at(const sn_file *f, const char *path);
/* Tells the kernel that this byte range is not needed any more (whole pages inside it). */
void sn_file_release(const sn_file *f, const void *start, size_t bytes);

/* Writing (file_write.c), for every file this project makes:
 *  - A regular file, or one that is not there yet, is written beside its place and renamed onto it
 *    when it is whole: readers see the old or the new content, a failure leaves the old, and a
 *    program that dies meanwhile leaves nothing behind where the file system can do that.
 *  - A link is followed, also one that leads nowhere yet: it stays a link.
 *  - Pipes, terminals and devices are written to as they are.
 *  - Mode, owner and group of the old file are kept; a new one has 0666 less the umask. A file
 *    whose mode forbids writing is not written. Further hard links to the old content keep it.
 *  - Where the folder takes no new file, or the new one cannot be given the old one's owner, group
 *    and mode, the old file is written where it lies: then a failure costs its content. */
typedef enum sn_write_how {
    SN_WRITE_WHOLE,   /* as said */
    SN_WRITE_REPLACE, /* a regular file in no other way than by renaming: someone may map it */
    SN_WRITE_VISIBLE  /* where it lies from the first byte on: what is there counts at any time */
} sn_write_how;

enum { SN_PATH_BYTES = 4096 }; /* the system takes no longer ones */

typedef struct sn_file_writer {
    const char *path; /* as given, for messages: the caller's, must live as long */
    int dir;          /* folder that relative names begin in, as openat takes it */
    int fd;           /* -1: none */
    int cause;        /* errno of the first failure, 0: none */
    bool renames, named;
    char target[SN_PATH_BYTES], temp[SN_PATH_BYTES + 64];
    size_t n;                /* bytes in the buffer */
    uint8_t buffer[1 << 13]; /* small: it may be on the stack of a thread that has little */
} sn_file_writer;

/* Errors are SONDE_IO and name the path as given and the cause. After a failure here nothing needs
 * to be ended. */
sonde_status sn_file_writer_open(sn_file_writer *w, const char *path, sn_write_how how,
                                 sonde_error *err);
/* False: it could not be written; finishing says why. */
bool sn_file_writer_put(sn_file_writer *w, const void *data, size_t bytes);
bool sn_file_writer_flush(sn_file_writer *w); /* what was put is in the file */
/* The file is whole: puts it in its place. `synced`: a crash of the machine leaves the old or the
 * new content, too. */
sonde_status sn_file_writer_finish(sn_file_writer *w, bool synced, sonde_error *err);
/* It will not become whole: the old content stays. Does nothing after finishing. */
void sn_file_writer_abandon(sn_file_writer *w);

/* All at once. */
sonde_status sn_file_write(const char *path, const void *data, size_t bytes, sonde_error *err);
/* A file of the folder that `dir` is open on, for its owner's eyes only. Atomic as above, with
 * `sync` also when the machine crashes; whatever had the name, a link included, is replaced and not
 * followed. */
sonde_status sn_file_write_private(int dir, const char *name, const void *data, size_t bytes,
                                   bool sync, sonde_error *err);

#endif
