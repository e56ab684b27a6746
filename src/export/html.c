/* SPDX-License-Identifier: Apache-2.0 */
/* The report page with a profile in it, one file that needs nothing else; and the profile alone in
 * the form that page reads. */
#include "export/page.h"
#include "export/pressed.h"

#include <string.h>

typedef sonde_status (*part_fn)(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                                sonde_error *err);

static sonde_status press(part_fn part, const sn_profile *p, const sn_export_options *opt,
                          sn_sink *to, sonde_error *err)
{
    sn_pressed *z;
    SN_TRY(sn_pressed_open(&z, to, p->alloc, err));
    const sonde_status st = part(p, opt, sn_pressed_sink(z), err);
    const sonde_status end = sn_pressed_finish(z, st ? NULL : err);
    return st ? st : end;
}

static sonde_status write_data(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                               sonde_error *err)
{
    return press(sn_page_data, p, opt, sink, err);
}

static sonde_status write_data_plain(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return write_data(p, &(sn_export_options){0}, sink, err);
}

/* A title is a path, so it may be of any bytes: the page stays UTF-8. */
static sonde_status put_tag(const char *type, const char *title, sn_sink *sink, sonde_error *err)
{
    sn_writer w;
    sn_writer_init(&w, sink);
    sn_put(&w, "<script type=\"application/x-sonde-");
    sn_put(&w, type);
    sn_put(&w, "\" title=\"");
    for (const char *s = title ? title : ""; *s;) {
        const char *safe = *s == '&' ? "&amp;" : *s == '"' ? "&quot;" : *s == '<' ? "&lt;" : NULL;
        if (safe)
            sn_put(&w, safe);
        s += safe ? 1 : sn_put_char(&w, s);
    }
    sn_put(&w, "\">");
    return sn_writer_finish(&w, err);
}

/* A block that browsers keep as text: base64 has no character that could end it. */
static sonde_status put_block(part_fn part, const char *type, const char *title,
                              const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                              sonde_error *err)
{
    sn_base64 text;
    SN_TRY(put_tag(type, title, sink, err));
    sn_base64_init(&text, sink);
    SN_TRY(press(part, p, opt, &text.sink, err));
    sn_base64_finish(&text);
    sn_sink_text(sink, "</script>\n");
    return SONDE_OK;
}

static sonde_status compare(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                            sonde_error *err)
{
    return sn_page_comparison(opt->before, p, opt, sink, err);
}

/* Profiles of other programs do not say which model they are of: their file does, as a rule. */
static const char *title_of(const sn_profile *p, const char *title)
{
    return (title && *title) || *p->model_name ? title : p->file_name;
}

static sonde_status put_profiles(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                                 sonde_error *err)
{
    if (opt->before) {
        const sn_export_options none = {0}; /* findings are of what is now */
        SN_TRY(put_block(sn_page_data, "profile", title_of(opt->before, opt->before_title),
                         opt->before, &none, sink, err));
        SN_TRY(put_block(compare, "comparison", "", p, opt, sink, err));
    }
    return put_block(sn_page_data, "profile", title_of(p, opt->title), p, opt, sink, err);
}

/* The page up to `end`; one that may be live may ask the program that serves it. */
static void put_page(const char *from, const char *end, bool live, sn_sink *sink)
{
    static const char alone[] = "connect-src 'none'", root[] = "<html ";
    const char *at = live ? strstr(from, root) : NULL;
    if (at && at < end) {
        sn_sink_write(sink, from, (size_t)(at - from));
        sn_sink_text(sink, "<html data-live ");
        from = at + strlen(root);
    }
    at = live ? strstr(from, alone) : NULL;
    if (at && at < end) {
        sn_sink_write(sink, from, (size_t)(at - from));
        sn_sink_text(sink, "connect-src 'self'");
        from = at + strlen(alone);
    }
    sn_sink_write(sink, from, (size_t)(end - from));
}

static sonde_status write_page(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                               sonde_error *err)
{
    static const char mark[] = "<!--profile-->";
    const char *end = sn_report_page + sn_report_page_bytes;
    const char *at = sn_report_page_bytes ? strstr(sn_report_page, mark) : NULL;
    if (!at)
        return sn_fail(
            err, SONDE_UNSUPPORTED,
            "this build of sonde has no report page: Node.js and npm were not there when "
            "it was built; 'script/setup web' gets them, then build again");
    put_page(sn_report_page, at, opt->live, sink);
    SN_TRY(put_profiles(p, opt, sink, err));
    sn_sink_write(sink, at + strlen(mark), (size_t)(end - at) - strlen(mark));
    return sink->failed ? sn_fail(err, SONDE_IO, "the report page could not be written") : SONDE_OK;
}

static sonde_status write_page_plain(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return write_page(p, &(sn_export_options){0}, sink, err);
}

const sn_exporter sn_exporter_html = {
    .suffix = ".html",
    .name = "html",
    .summary = "Report page: one file for a browser, with timeline, graph, memory and more",
    .lists_spans = true,
    .write = write_page_plain,
    .write_with = write_page,
};

const sn_exporter sn_exporter_page_data = {
    .suffix = ".page.gz",
    .name = "page",
    .summary = "What the report page reads: JSON and columns (docs/profile-format.md)",
    .lists_spans = true,
    .write = write_data_plain,
    .write_with = write_data,
};
