/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files; writing them is in file_write.c. A size told by the file system is a hint
 * only: pipes and /proc tell 0, and a file may grow or shrink while it is read, so reading goes on
 * until the end. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/map.h"

/* Where `data` of an empty file points. */
static const uint8_t nothing[1];

static sonde_status fail_errno(sonde_error *err, const char *verb, const char *path, int cause)
{
    return sn_fail(err, cause == ENOENT ? SONDE_NOT_FOUND : SONDE_IO, "cannot %s '%s': %s", verb,
                   path, strerror(cause));
}

static int open_retry(const char *path)
{
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static ssize_t read_retry(int fd, void *buf, size_t bytes)
{
    ssize_t n;
    do {
        n = read(fd, buf, bytes);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Terminals and the like; some (/dev/zero) have no end. */
#define MOST_OF_A_DEVICE ((size_t)256 << 20)

/* A pipe may have no end: where nobody set a limit, the machine's memory is one. */
static bool may_grow(const sn_allocator *alloc, size_t bytes)
{
    const size_t small = (size_t)64 << 20;
    return alloc->limit_bytes || bytes <= small || (double)bytes < sn_usable_memory();
}

static sonde_status too_long(const sn_file *f, const char *path, size_t n, sonde_error *err)
{
    const size_t limit = f->alloc->limit_bytes;
    if (limit)
        return sn_fail(err, SONDE_OUT_OF_MEMORY,
                       "cannot read '%s': it has more than %zu bytes, and the memory limit is %zu",
                       path, n, limit);
    return sn_fail(err, SONDE_OUT_OF_MEMORY,
                   "cannot read '%s': it has more than %zu bytes, and there is no memory for more",
                   path, n);
}

/* Reads to the end of fd, starting with room for `hint` bytes and one more that proves the end. */
static sonde_status read_all(sn_file *f, int fd, const char *path, size_t hint, size_t most,
                             sonde_error *err)
{
    size_t cap, n = 0;
    if (!sn_size_add(hint < 4096 ? 4096 : hint, 1, &cap))
        return sn_fail_memory(err, hint);
    uint8_t *buf = sn_alloc(f->alloc, cap);
    if (!buf)
        return sn_fail_memory(err, cap);
    for (;;) {
        if (n == cap) {
            size_t more;
            uint8_t *bigger = sn_size_mul(cap, 2, &more) && may_grow(f->alloc, cap + more)
                                  ? sn_realloc(f->alloc, buf, cap, more)
                                  : NULL;
            if (!bigger) {
                sn_free(f->alloc, buf, cap);
                return too_long(f, path, n, err);
            }
            buf = bigger;
            cap = more;
        }
        ssize_t got = read_retry(fd, buf + n, cap - n);
        if (got < 0) {
            int cause = errno;
            sn_free(f->alloc, buf, cap);
            return fail_errno(err, "read", path, cause);
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > most) {
            sn_free(f->alloc, buf, cap);
            return sn_fail(err, SONDE_LIMIT,
                           "cannot read '%s': it has more than the %zu bytes such a file may have",
                           path, most);
        }
    }
    f->data = buf;
    f->bytes = n;
    f->cap = cap;
    return SONDE_OK;
}

static uint64_t identity_of(const struct stat *s)
{
    const uint64_t parts[] = {(uint64_t)s->st_dev,          (uint64_t)s->st_ino,
                              (uint64_t)s->st_size,         (uint64_t)s->st_mtim.tv_sec,
                              (uint64_t)s->st_mtim.tv_nsec, (uint64_t)s->st_ctim.tv_sec,
                              (uint64_t)s->st_ctim.tv_nsec};
    const uint64_t hash = sn_hash(parts, sizeof parts, 0);
    return hash ? hash : 1;
}

/* Closes the descriptor. */
static sonde_status take(sn_file *f, int fd, const char *path, bool map, size_t most,
                         sn_allocator *alloc, sonde_error *err)
{
    *f = (sn_file){.data = nothing, .alloc = alloc};
    struct stat info;
    sonde_status st = SONDE_OK;
    if (fstat(fd, &info) != 0) {
        st = fail_errno(err, "open", path, errno);
    } else if (S_ISDIR(info.st_mode)) {
        st = sn_fail(err, SONDE_IO, "cannot open '%s': it is a directory", path);
    } else {
        f->identity = S_ISREG(info.st_mode) ? identity_of(&info) : 0;
        size_t size = S_ISREG(info.st_mode) && info.st_size > 0 ? (size_t)info.st_size : 0;
        void *p = map && size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        if (p != MAP_FAILED) {
            f->data = p;
            f->bytes = size;
            f->mapped = true;
        } else {
            if (S_ISCHR(info.st_mode) && most > MOST_OF_A_DEVICE)
                most = MOST_OF_A_DEVICE;
            st = read_all(f, fd, path, size < most ? size : most, most, err);
        }
    }
    close(fd);
    return st;
}

static sonde_status open_file(sn_file *f, const char *path, bool map, size_t most,
                              sn_allocator *alloc, sonde_error *err)
{
    *f = (sn_file){.data = nothing, .alloc = alloc};
    const int fd = open_retry(path);
    return fd < 0 ? fail_errno(err, "open", path, errno) : take(f, fd, path, map, most, alloc, err);
}

sonde_status sn_file_take(sn_file *f, int fd, const char *path, bool map, sn_allocator *alloc,
                          sonde_error *err)
{
    return take(f, fd, path, map, SIZE_MAX, alloc, err);
}

sonde_status sn_file_open(sn_file *f, const char *path, bool map, sn_allocator *alloc,
                          sonde_error *err)
{
    return open_file(f, path, map, SIZE_MAX, alloc, err);
}

sonde_status sn_file_read(sn_file *f, const char *path, size_t most, sn_allocator *alloc,
                          sonde_error *err)
{
    return open_file(f, path, false, most, alloc, err);
}

void sn_file_close(sn_file *f)
{
    if (f->mapped)
        munmap((void *)(uintptr_t)f->data, f->bytes);
    else if (f->cap)
        sn_free(f->alloc, (void *)(uintptr_t)f->data, f->cap);
    *f = (sn_file){0};
}

bool sn_file_is_at(const sn_file *f, const char *path)
{
    struct stat info;
    return f->identity && stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           identity_of(&info) == f->identity;
}

void sn_file_release(const sn_file *f, const void *start, size_t bytes)
{
    if (!f->mapped)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)start, to = from + bytes;
    uintptr_t begin = (uintptr_t)f->data, end = begin + f->bytes;
    if (from < begin || to > end || to < from)
        return;
    from = (from + page - 1) / page * page;
    /* The file's last page counts as whole: nothing lies behind it. */
    if (to != end)
        to = to / page * page;
    if (from < to)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}
