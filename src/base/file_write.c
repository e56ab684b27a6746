/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files: the one way in which anything here reaches a disk (the rules are in file.h). What
 * is not whole yet has no name, where the file system knows such files (O_TMPFILE): whatever ends
 * the process, nothing is left over. Elsewhere it has a hidden name beside its place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

static int open_retry(int dir, const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = openat(dir, path, flags | O_WRONLY | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static sonde_status fail_with(const char *path, int cause, sonde_error *err)
{
    return sn_fail(err, SONDE_IO, "cannot write '%s': %s", path, strerror(cause));
}

/* "No such file" is about a file that was to be made: what there is not is its folder. */
static sonde_status fail_to_open(const char *path, int cause, sonde_error *err)
{
    const char *slash = strrchr(path, '/');
    const int n = slash && slash > path ? (int)(slash - path) : 1;
    if (cause == ENOENT && slash)
        return sn_fail(err, SONDE_IO, "cannot write '%s': the folder '%.*s' does not exist", path,
                       n, path);
    return fail_with(path, cause, err);
}

static bool write_all(int fd, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    while (bytes) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* ------------------------------------------------------------------ where */

/* Length of the folder's part, the slash included: 0 = the current one. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Renaming onto a link would replace the link: go where it leads, also when nothing is there. */
static bool follow_links(const char *path, char *out, size_t cap)
{
    size_t n = strlen(path);
    if (n >= cap) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out, path, n + 1);
    for (int links = 0; links < 40; links++) {
        char link[SN_PATH_BYTES];
        const ssize_t got = readlink(out, link, sizeof link);
        if (got < 0)
            return errno == EINVAL || errno == ENOENT; /* no link, or nothing yet */
        const size_t keep = link[0] == '/' ? 0 : folder_length(out);
        if (keep + (size_t)got >= cap) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(out + keep, link, (size_t)got);
        out[keep + (size_t)got] = 0;
    }
    errno = ELOOP;
    return false;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A file that our own output goes to already (/dev/stdout, or the same name) is written on behind
 * what is there: a second beginning would overwrite the first. */
static int open_own_output(const struct stat *info)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat own;
        if (fstat(fd, &own) == 0 && is_same(info, &own))
            return fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    errno = ENOENT;
    return -1;
}

/* ------------------------------------------------------------------ beside */

/* A file without a name in the target's folder, which can be given one later. */
static int open_nameless(const sn_file_writer *w, mode_t mode)
{
    char place[SN_PATH_BYTES + 2], link[64];
    size_t n = folder_length(w->target);
    memcpy(place, w->target, n);
    memcpy(place + n, ".", 2);
    const int fd = open_retry(w->dir, place, O_TMPFILE, mode);
    if (fd < 0)
        return fd;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (faccessat(AT_FDCWD, link, F_OK, 0) == 0)
        return fd;
    close(fd); /* without /proc it would stay nameless */
    errno = EOPNOTSUPP;
    return -1;
}

/* A name beside the target that is short enough whatever the target is called. */
static void name_temp(sn_file_writer *w)
{
    snprintf(w->temp, sizeof w->temp, "%.*s.sonde.%ld.%llx.tmp", (int)folder_length(w->target),
             w->target, (long)getpid(), (unsigned long long)sn_ticks());
}

enum { ATTEMPTS = 100 };

static int open_named(sn_file_writer *w, mode_t mode)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        name_temp(w);
        const int fd = open_retry(w->dir, w->temp, O_CREAT | O_EXCL, mode);
        if (fd >= 0)
            w->named = true;
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* A new file beside the target, without a name where the file system knows such files. */
static int open_new(sn_file_writer *w, mode_t mode)
{
    const int fd = open_nameless(w, mode);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) /* not known here */
        return open_named(w, mode);
    return fd;
}

/* Whether the new file is whose the old one was, for whom it was. */
static bool take_after(int fd, const struct stat *old)
{
    struct stat own;
    if (fstat(fd, &own) != 0)
        return false;
    if ((own.st_uid != old->st_uid || own.st_gid != old->st_gid) &&
        fchown(fd, old->st_uid, old->st_gid) != 0)
        return false;
    return fchmod(fd, old->st_mode & 07777) == 0;
}

static int open_beside(sn_file_writer *w, const struct stat *old)
{
    const int fd = open_new(w, old ? 0600 : 0666);
    if (fd < 0 || !old || take_after(fd, old))
        return fd;
    close(fd);
    if (w->named)
        unlinkat(w->dir, w->temp, 0);
    w->named = false;
    errno = EPERM;
    return -1;
}

static int open_regular(sn_file_writer *w, const struct stat *old, sn_write_how how)
{
    struct stat there;
    if (!follow_links(w->path, w->target, sizeof w->target))
        return -1;
    /* Links of /proc lead to files that have no name, or another one, any more. */
    if (old && (stat(w->target, &there) != 0 || !is_same(old, &there)))
        return open_retry(AT_FDCWD, w->path, O_TRUNC, 0);
    if (old && faccessat(AT_FDCWD, w->target, W_OK, AT_EACCESS) != 0)
        return -1;
    const int fd = open_beside(w, old);
    w->renames = fd >= 0;
    if (fd >= 0 || !old || how == SN_WRITE_REPLACE ||
        (errno != EACCES && errno != EPERM && errno != EROFS))
        return fd;
    return open_retry(AT_FDCWD, w->target, O_TRUNC, 0);
}

/* ------------------------------------------------------------------ the writer */

static int open_any(sn_file_writer *w, sn_write_how how)
{
    struct stat info;
    const bool there = stat(w->path, &info) == 0;
    if (!there && errno != ENOENT)
        return -1;
    if (there && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (there && !S_ISREG(info.st_mode))
        return open_retry(AT_FDCWD, w->path, 0, 0);
    const int own = there ? open_own_output(&info) : -1;
    if (own >= 0)
        return own;
    if (how == SN_WRITE_VISIBLE)
        return open_retry(AT_FDCWD, w->path, O_CREAT | O_TRUNC, 0666);
    return open_regular(w, there ? &info : NULL, how);
}

static void begin(sn_file_writer *w, int dir, const char *path)
{
    w->path = path;
    w->dir = dir;
    w->cause = 0;
    w->renames = w->named = false;
    w->n = 0;
}

sonde_status sn_file_writer_open(sn_file_writer *w, const char *path, sn_write_how how,
                                 sonde_error *err)
{
    begin(w, AT_FDCWD, path);
    w->fd = open_any(w, how);
    return w->fd >= 0 ? SONDE_OK : fail_to_open(path, errno, err);
}

static bool write_on(sn_file_writer *w, const void *data, size_t bytes)
{
    if (!w->cause && !write_all(w->fd, data, bytes))
        w->cause = errno;
    return !w->cause;
}

bool sn_file_writer_flush(sn_file_writer *w)
{
    const size_t n = w->n;
    w->n = 0;
    return write_on(w, w->buffer, n);
}

bool sn_file_writer_put(sn_file_writer *w, const void *data, size_t bytes)
{
    if (bytes > sizeof w->buffer - w->n && !sn_file_writer_flush(w))
        return false;
    if (bytes > sizeof w->buffer)
        return write_on(w, data, bytes);
    if (bytes)
        memcpy(w->buffer + w->n, data, bytes);
    w->n += bytes;
    return !w->cause;
}

/* The nameless file gets a name, from which it is renamed: giving names replaces nothing. */
static bool give_name(sn_file_writer *w)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
    for (int attempt = 0; attempt < ATTEMPTS && !w->named; attempt++) {
        name_temp(w);
        w->named = linkat(AT_FDCWD, link, w->dir, w->temp, AT_SYMLINK_FOLLOW) == 0;
        if (!w->named && errno != EEXIST)
            return false;
    }
    return w->named;
}

static bool put_in_place(sn_file_writer *w, bool synced)
{
    if (!sn_file_writer_flush(w))
        return false;
    bool fine = !synced || fdatasync(w->fd) == 0 || errno == EINVAL; /* pipes know no disk */
    if (fine && w->renames)
        fine = give_name(w);
    int cause = errno;
    /* Some file systems tell only at close that the disk is full. */
    if (close(w->fd) != 0 && fine) {
        fine = false;
        cause = errno;
    }
    w->fd = -1;
    if (fine && w->renames && renameat(w->dir, w->temp, w->dir, w->target) != 0) {
        fine = false;
        cause = errno;
    }
    if (fine)
        w->named = false;
    else
        w->cause = cause;
    return fine;
}

sonde_status sn_file_writer_finish(sn_file_writer *w, bool synced, sonde_error *err)
{
    const bool fine = put_in_place(w, synced);
    sn_file_writer_abandon(w);
    return fine ? SONDE_OK : fail_with(w->path, w->cause, err);
}

void sn_file_writer_abandon(sn_file_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    if (w->named)
        unlinkat(w->dir, w->temp, 0);
    w->fd = -1;
    w->named = false;
}

sonde_status sn_file_write(const char *path, const void *data, size_t bytes, sonde_error *err)
{
    sn_file_writer w;
    SN_TRY(sn_file_writer_open(&w, path, SN_WRITE_WHOLE, err));
    (void)sn_file_writer_put(&w, data, bytes);
    return sn_file_writer_finish(&w, false, err);
}

sonde_status sn_file_write_private(int dir, const char *name, const void *data, size_t bytes,
                                   bool sync, sonde_error *err)
{
    sn_file_writer w;
    begin(&w, dir, name);
    const size_t n = strlen(name);
    if (n >= sizeof w.target)
        return fail_with(name, ENAMETOOLONG, err);
    memcpy(w.target, name, n + 1);
    w.renames = true;
    w.fd = open_new(&w, 0600);
    if (w.fd < 0)
        return fail_with(name, errno, err);
    (void)sn_file_writer_put(&w, data, bytes);
    return sn_file_writer_finish(&w, sync, err);
}
