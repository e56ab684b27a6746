/* SPDX-License-Identifier: Apache-2.0 */
/* A profile into a file, or to standard output. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/list_text.h"
#include "export/limit.h"
#include "export/units.h"

static bool write_stdout(sn_sink *sink, const void *data, size_t bytes)
{
    (void)sink;
    return fwrite(data, 1, bytes, stdout) == bytes;
}

static bool write_writer(sn_sink *sink, const void *data, size_t bytes)
{
    return sn_file_writer_put(sink->user, data, bytes);
}

static sonde_status write_limited(const sn_profile *p, const sn_exporter *format,
                                  const sn_export_options *opt, size_t runs, size_t all,
                                  sn_sink *sink, sonde_error *err)
{
    sn_prof_limited few;
    char limit[SN_BYTES_TEXT];
    SN_TRY(sn_profile_limit(p, runs, &few, err));
    if (opt->log)
        sn_log_write(opt->log, SN_LOG_WARN,
                     "the %s file has the spans of %zu of %zu runs, as its size is limited to %s; "
                     "figures are those of all runs",
                     format->suffix, all + p->left.wall_ns.n - few.shown.left.wall_ns.n,
                     all + p->left.wall_ns.n, sn_bytes_text(limit, opt->limit));
    const sonde_status st = sn_export_call(format, &few.shown, opt, sink, err);
    sn_profile_limited_free(&few);
    return st;
}

/* A joined profile is made of files that had a limit. */
static sonde_status write_format(const sn_profile *p, const sn_exporter *format,
                                 const sn_export_options *opt, sn_sink *sink, sonde_error *err)
{
    size_t runs = 0, all = 0;
    sn_profile shown = *p;
    if (opt && opt->categories)
        shown.categories = opt->categories;
    if (opt && opt->limit && format->lists_spans && !p->workers.n)
        SN_TRY(sn_export_runs_that_fit(format, &shown, opt, &runs, &all, err));
    return runs < all ? write_limited(&shown, format, opt, runs, all, sink, err)
                      : sn_export_call(format, &shown, opt, sink, err);
}

static sonde_status to_stdout(sn_export_fn write, void *user, sonde_error *err)
{
    sn_sink sink = {.write = write_stdout};
    errno = 0;
    sonde_status st = write(user, &sink, err);
    if (fflush(stdout) != 0)
        sink.failed = true;
    if (sink.failed)
        st = sn_fail(err, SONDE_IO, "cannot write 'standard output': %s",
                     errno ? strerror(errno) : "the write failed");
    return st;
}

static sonde_status to_file(const char *path, sn_export_fn write, void *user, sonde_error *err)
{
    sn_file_writer w;
    SN_TRY(sn_file_writer_open(&w, path, SN_WRITE_WHOLE, err));
    sn_sink sink = {.write = write_writer, .user = &w};
    sonde_status st = write(user, &sink, err);
    if (st == SONDE_OK || w.cause) /* finishing says what became of the file */
        st = sn_file_writer_finish(&w, false, err);
    else
        sn_file_writer_abandon(&w);
    return st;
}

/* A profile in a format. */
typedef struct shown {
    const sn_profile *p;
    const sn_exporter *format;
    const sn_export_options *opt;
} shown;

static sonde_status write_shown(void *user, sn_sink *sink, sonde_error *err)
{
    const shown *s = user;
    return write_format(s->p, s->format, s->opt, sink, err);
}

/* "-", "-.json", "-.summary.json" … */
static bool is_stdout(const char *path, const sn_exporter *format)
{
    return path[0] == '-' &&
           (path[1] == 0 || (format && strlen(path + 1) == strlen(format->suffix)));
}

static sonde_status no_format(const char *path, sonde_error *err)
{
    sn_list_text known = {0};
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++)
        sn_list_add(&known, "%s", row->suffix);
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "unknown format of '%.300s'; the suffix must be one of %s", path,
                   sn_list_end(&known));
}

sonde_status sn_export_file(const sn_profile *p, const char *path, sonde_error *err)
{
    return sn_export_file_with(p, path, NULL, err);
}

sonde_status sn_export_file_by(const char *path, sn_export_fn write, void *user, sonde_error *err)
{
    return is_stdout(path, sn_exporter_for_path(path)) ? to_stdout(write, user, err)
                                                       : to_file(path, write, user, err);
}

sonde_status sn_export_file_with(const sn_profile *p, const char *path,
                                 const sn_export_options *opt, sonde_error *err)
{
    const sn_exporter *format = sn_exporter_for_path(opt && opt->format ? opt->format : path);
    const bool standard = is_stdout(path, format);
    if (!format && !standard)
        return no_format(opt && opt->format ? opt->format : path, err);
    shown s = {p, format ? format : sn_exporter_row(0), opt};
    return standard ? to_stdout(write_shown, &s, err) : to_file(path, write_shown, &s, err);
}

sonde_status sn_export_sink(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                            sonde_error *err)
{
    const sn_exporter *format =
        opt && opt->format ? sn_exporter_for_path(opt->format) : sn_exporter_row(0);
    return format ? write_format(p, format, opt, sink, err) : no_format(opt->format, err);
}
