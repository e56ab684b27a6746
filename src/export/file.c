/* SPDX-License-Identifier: Apache-2.0 */
/* A profile into a file. The bytes go to a temporary file beside the target, which is renamed when
 * complete: whoever looks finds the old file or the new one, never half of it. Targets that are not
 * plain files (devices, pipes, links) and folders that refuse a new file are written in place. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/export.h"

static bool write_stdio(sn_sink *sink, const void *data, size_t bytes)
{
    return fwrite(data, 1, bytes, sink->user) == bytes;
}

/* A new file beside `path`; its name into temp. NULL: none could be made. */
static FILE *open_beside(const char *path, char *temp, size_t cap)
{
    struct stat info;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return NULL;
    for (int k = 0; k < 100; k++) {
        int n = snprintf(temp, cap, "%s.%ld.%d.tmp", path, (long)getpid(), k);
        if (n < 0 || (size_t)n >= cap)
            return NULL;
        int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            FILE *f = fdopen(fd, "wb");
            if (!f) {
                close(fd);
                unlink(temp);
            }
            return f;
        }
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

static sonde_status write_format(const sn_profile *p, const sn_exporter *format,
                                 const sn_export_options *opt, sn_sink *sink, sonde_error *err)
{
    sn_profile shown = *p;
    if (opt && opt->categories)
        shown.categories = opt->categories;
    return opt && format->write_with ? format->write_with(&shown, opt, sink, err)
                                     : format->write(&shown, sink, err);
}

static sonde_status export_to(const sn_profile *p, const sn_exporter *format,
                              const sn_export_options *opt, FILE *f, const char *path,
                              sonde_error *err)
{
    sn_sink sink = {.write = write_stdio, .user = f};
    errno = 0;
    sonde_status st = write_format(p, format, opt, &sink, err);
    if (fflush(f) != 0)
        sink.failed = true;
    if (sink.failed)
        st = sn_fail(err, SONDE_IO, "cannot write '%s': %s", path,
                     errno ? strerror(errno) : "the write was refused");
    return st;
}

/* "-", "-.json", "-.summary.json" … */
static bool is_stdout(const char *path, const sn_exporter *format)
{
    return path[0] == '-' &&
           (path[1] == 0 || (format && strlen(path + 1) == strlen(format->suffix)));
}

static sonde_status no_format(const char *path, sonde_error *err)
{
    char known[256] = "";
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : "", row->suffix);
    }
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "no format is known for '%s': the suffix picks it, one of %s", path, known);
}

sonde_status sn_export_file(const sn_profile *p, const char *path, sonde_error *err)
{
    return sn_export_file_with(p, path, NULL, err);
}

sonde_status sn_export_file_with(const sn_profile *p, const char *path,
                                 const sn_export_options *opt, sonde_error *err)
{
    const sn_exporter *format = sn_exporter_for_path(opt && opt->format ? opt->format : path);
    if (is_stdout(path, format))
        return export_to(p, format ? format : sn_exporter_row(0), opt, stdout, "standard output",
                         err);
    if (!format)
        return no_format(opt && opt->format ? opt->format : path, err);
    char temp[PATH_MAX];
    FILE *f = open_beside(path, temp, sizeof temp);
    bool beside = f != NULL;
    if (!beside)
        f = fopen(path, "wbe");
    if (!f)
        return sn_fail(err, SONDE_IO, "cannot write '%s': %s", path, strerror(errno));
    sonde_status st = export_to(p, format, opt, f, path, err);
    if (fclose(f) != 0 && st == SONDE_OK)
        st = sn_fail(err, SONDE_IO, "cannot write '%s': %s", path, strerror(errno));
    if (beside && st == SONDE_OK && rename(temp, path) != 0)
        st = sn_fail(err, SONDE_IO, "cannot rename '%s' to '%s': %s", temp, path, strerror(errno));
    if (beside && st != SONDE_OK)
        unlink(temp);
    return st;
}

sonde_status sn_export_sink(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                            sonde_error *err)
{
    const sn_exporter *format =
        opt && opt->format ? sn_exporter_for_path(opt->format) : sn_exporter_row(0);
    return format ? write_format(p, format, opt, sink, err) : no_format(opt->format, err);
}
