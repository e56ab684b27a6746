/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of what is kept between runs: packed weights, tuned choices, measured peaks. What comes
 * from there is computed with, so nobody else may put it there: the folder and its files have to
 * belong to the user (or to root) and be writable to nobody else. No link is followed, neither the
 * folder's own name nor a file's; folders above may be links. Files are for their owner only. */
#ifndef SN_BASE_CACHE_H
#define SN_BASE_CACHE_H

#include "base/file.h"

typedef struct sn_cache {
    int fd; /* the folder, opened and checked once */
    const char *path;
} sn_cache;

/* The user's cache folder for this library, $XDG_CACHE_HOME/sonde or ~/.cache/sonde; it need not
 * exist. Returns its length, 0 when there is none or it is too long. */
size_t sn_cache_user_folder(char *path, size_t bytes);

/* `path` has to outlive the cache. With `make`, what is missing of it is made, for the owner only.
 * SONDE_NOT_FOUND: there is no such folder. SONDE_IO: it cannot be opened or is refused; the
 * message says why. Close only what was opened. */
sonde_status sn_cache_open(sn_cache *c, const char *path, bool make, sonde_error *err);
void sn_cache_close(sn_cache *c);

/* Waits at most so long until no other process, and no other opening of this one, has the folder
 * locked, so that several that miss the same file make it once. The lock ends with the process that
 * has it. False: not locked, because it took too long, because nothing can be written there anyway,
 * or because the file system has no locks; go on without. Unlock only what was locked. */
bool sn_cache_lock(const sn_cache *c, uint32_t most_ms);
void sn_cache_unlock(const sn_cache *c);

/* A regular file of at most `most` bytes. SONDE_NOT_FOUND: there is none. SONDE_IO: it cannot be
 * read or is refused. */
sonde_status sn_cache_read(const sn_cache *c, const char *name, size_t most, bool map,
                           sn_allocator *alloc, sn_file *f, sonde_error *err);
/* Replaces the file as a whole, synced to disk. */
sonde_status sn_cache_write(const sn_cache *c, const char *name, const void *data, size_t bytes,
                            sonde_error *err);

/* Text whose first line says what it is and whose last line, which only these two see, is a
 * checksum of the rest. Text with another first line is none (SONDE_NOT_FOUND): another version
 * wrote it. SONDE_IO: it is damaged, or as above. */
sonde_status sn_cache_read_text(const sn_cache *c, const char *name, const char *first_line,
                                size_t most, sn_allocator *alloc, sn_file *f, sonde_error *err);
sonde_status sn_cache_write_text(const sn_cache *c, const char *name, const char *text,
                                 size_t bytes, sn_allocator *alloc, sonde_error *err);

#endif
