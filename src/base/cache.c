/* SPDX-License-Identifier: Apache-2.0 */
/* Everything is asked of open descriptors, never of paths: what was checked is what is used. The
 * checksum of a text finds damage; against people stand the owner and the mode. */
#include "base/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"

enum {
    MAX_PATH = 4096,
    LAST_LINE = sizeof "checksum 0123456789abcdef\n" - 1,
};

static sonde_status refuse(sonde_error *err, const char *what, const char *path, const char *why)
{
    return sn_fail(err, SONDE_IO, "the %s '%s' is not used: %s", what, path, why);
}

static sonde_status check_owner(const struct stat *s, const char *what, const char *path,
                                sonde_error *err)
{
    if (s->st_uid != geteuid() && s->st_uid != 0)
        return refuse(err, what, path, "it belongs to another user");
    if (s->st_mode & (S_IWGRP | S_IWOTH))
        return refuse(err, what, path, "other users can write to it; run 'chmod go-w' on it");
    return SONDE_OK;
}

/* ------------------------------------------------------------------ folders */

/* Makes what is missing of the folders in `path`; whether that worked shows when it is opened. */
static void make_folders(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            (void)mkdir(path, 0700);
            *p = '/';
        }
    (void)mkdir(path, 0700);
}

sonde_status sn_cache_open(sn_cache *c, const char *path, bool make, sonde_error *err)
{
    char own[MAX_PATH];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--; /* "link/" would be followed */
    if (!n || n >= sizeof own)
        return sn_fail(err, SONDE_IO, "the path of a cache folder is %s", n ? "too long" : "empty");
    memcpy(own, path, n);
    own[n] = 0;
    if (make)
        make_folders(own);
    struct stat s;
    const int fd = open(own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        const int cause = errno;
        if (cause == ENOENT)
            return sn_fail(err, SONDE_NOT_FOUND, "the cache folder '%s' does not exist", own);
        if (lstat(own, &s) == 0 && S_ISLNK(s.st_mode))
            return refuse(err, "cache folder", own, "it is a symbolic link");
        return refuse(err, "cache folder", own, strerror(cause));
    }
    sonde_status st = fstat(fd, &s) == 0 ? check_owner(&s, "cache folder", own, err)
                                         : refuse(err, "cache folder", own, strerror(errno));
    if (st) {
        close(fd);
        return st;
    }
    *c = (sn_cache){fd, path};
    return SONDE_OK;
}

void sn_cache_close(sn_cache *c)
{
    close(c->fd);
    c->fd = -1;
}

/* A lock without a deadline could wait for ever: a child that was forked while its parent had the
 * lock keeps it when the parent is killed. */
bool sn_cache_lock(const sn_cache *c, uint32_t most_ms)
{
    enum { STEP_MS = 5 };
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    if (faccessat(c->fd, ".", W_OK, AT_EACCESS) != 0)
        return false;
    for (uint32_t waited_ms = 0;; waited_ms += STEP_MS) {
        if (flock(c->fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited_ms >= most_ms)
            return false;
        (void)nanosleep(&step, NULL);
    }
}

void sn_cache_unlock(const sn_cache *c)
{
    (void)flock(c->fd, LOCK_UN);
}

/* ------------------------------------------------------------------ files */

sonde_status sn_cache_read(const sn_cache *c, const char *name, size_t most, bool map,
                           sn_allocator *alloc, sn_file *f, sonde_error *err)
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", c->path, name);
    struct stat s;
    /* Not to wait for somebody to open the other end of a pipe. */
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int fd = openat(c->fd, name, flags);
    if (fd < 0) {
        if (errno == ENOENT)
            return sn_fail(err, SONDE_NOT_FOUND, "'%s' does not exist", path);
        return refuse(err, "file", path,
                      errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    }
    sonde_status st = SONDE_OK;
    if (fstat(fd, &s) != 0)
        st = refuse(err, "file", path, strerror(errno));
    else if (!S_ISREG(s.st_mode))
        st = refuse(err, "file", path, "it is not a regular file");
    else if (s.st_size < 0 || (uintmax_t)s.st_size > most)
        st = refuse(err, "file", path, "it is too large");
    else
        st = check_owner(&s, "file", path, err);
    if (st) {
        close(fd);
        return st;
    }
    return sn_file_take(f, fd, path, map, alloc, err);
}

static sonde_status write_file(const sn_cache *c, const char *name, const void *data, size_t bytes,
                               bool sync, sonde_error *err)
{
    sonde_error inner = {.status = SONDE_OK};
    const sonde_status st = sn_file_write_private(c->fd, name, data, bytes, sync, &inner);
    return st ? sn_fail(err, st, "in '%s': %s", c->path, inner.message) : SONDE_OK;
}

sonde_status sn_cache_write(const sn_cache *c, const char *name, const void *data, size_t bytes,
                            sonde_error *err)
{
    return write_file(c, name, data, bytes, true, err);
}

/* ------------------------------------------------------------------ text */

static void last_line(const void *text, size_t bytes, char *line)
{
    snprintf(line, LAST_LINE + 1, "checksum %016llx\n",
             (unsigned long long)sn_hash(text, bytes, 0));
}

sonde_status sn_cache_read_text(const sn_cache *c, const char *name, const char *first_line,
                                size_t most, sn_allocator *alloc, sn_file *f, sonde_error *err)
{
    SN_TRY(sn_cache_read(c, name, most, false, alloc, f, err));
    const size_t head = strlen(first_line);
    sonde_status st = SONDE_OK;
    char line[LAST_LINE + 1];
    if (f->bytes <= head || memcmp(f->data, first_line, head) != 0 || f->data[head] != '\n') {
        st = sn_fail(err, SONDE_NOT_FOUND, "'%s/%s' was written by another version", c->path, name);
    } else {
        const size_t bytes = f->bytes > LAST_LINE ? f->bytes - LAST_LINE : 0;
        last_line(f->data, bytes, line);
        if (!bytes || memcmp(f->data + bytes, line, LAST_LINE) != 0)
            st = sn_fail(err, SONDE_IO,
                         "the file '%s/%s' is not used: its content does not match its checksum",
                         c->path, name);
        f->bytes = bytes; /* of a copy: what is freed is its cap */
    }
    if (st)
        sn_file_close(f);
    return st;
}

sonde_status sn_cache_write_text(const sn_cache *c, const char *name, const char *text,
                                 size_t bytes, sn_allocator *alloc, sonde_error *err)
{
    char *whole = sn_alloc(alloc, bytes + LAST_LINE + 1);
    if (!whole)
        return sn_fail_memory(err, bytes + LAST_LINE + 1);
    memcpy(whole, text, bytes);
    last_line(text, bytes, whole + bytes);
    const sonde_status st = write_file(c, name, whole, bytes + LAST_LINE, false, err);
    sn_free(alloc, whole, bytes + LAST_LINE + 1);
    return st;
}
