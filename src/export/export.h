/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters: profile ► bytes. One file each, one row in exporters.inc; the file suffix picks one.
 */
#ifndef SN_EXPORT_EXPORT_H
#define SN_EXPORT_EXPORT_H

#include "base/log.h"
#include "profile/profile.h"

/* Where bytes go; returns false to stop (full disk). */
typedef struct sn_sink {
    bool (*write)(struct sn_sink *sink, const void *data, size_t bytes);
    void *user;
    bool failed;
} sn_sink;
bool sn_sink_write(sn_sink *s, const void *data, size_t bytes);
bool sn_sink_text(sn_sink *s, const char *text);
bool sn_sink_printf(sn_sink *s, const char *fmt, ...) SONDE_PRINTF(2, 3);

typedef struct sn_table_options { /* the timing table */
    bool sort_by_name, by_shape, by_node;
    const char *filter_op; /* comma-separated operator types, NULL = all */
    int width; /* terminal columns: extra columns are shown as far as they fit; 0 = the plain table
                */
    bool color;
} sn_table_options;

/* Parses "sort=name by-shape=1 …" (SONDE_TIMING) into `out`, which is reset first. Never fails:
 * problems are told to `warn` (may be NULL). Strings kept by `out` live in `arena`. */
void sn_table_options_parse(const char *text, sn_table_options *out, sn_arena *arena,
                            void (*warn)(void *user, const char *message), void *user);

sonde_status sn_export_table(const sn_profile *p, const sn_table_options *opt, sn_sink *sink,
                             sonde_error *err);

typedef struct sn_trend sn_trend; /* export/trend.h */

#define SN_TRACE_LIMIT ((uint64_t)256 << 20) /* bytes of a trace where nobody says otherwise */

/* The rows and what-if columns of .csv and .xlsx, 0 = the default in brackets; what traces show. */
typedef struct sn_export_options {
    double ratio_90, ratio_80, ratio_70, ratio_others; /* latency now / then [4, 2.5, 2, 1] */
    double aim;                                        /* percent of zeros aimed at [90] */
    uint32_t categories; /* a set (profile.h) for .json and .pftrace; 0: the profile's own */
    const char *format;  /* ".summary.json": whatever the path's suffix; NULL: that picks it */
    bool folded_nodes;   /* .csv and .xlsx: also a row, at zero, for each node that never runs */
    const sonde_sparse_ratio *measured; /* by weight shape: they count before those above */
    size_t n_measured;
    const char *measured_about; /* when and where they were; NULL: not said */
    /* The report page, see sonde_export_options. */
    const sn_profile *before;
    const char *before_title, *title;
    const sonde_finding *findings;
    size_t n_findings;
    const sonde_scenario_time *scenarios;
    size_t n_scenarios;
    bool live;
    uint64_t limit; /* bytes of a format that lists spans: the spans of further runs are left out,
                       which `log` is told; 0: none */
    const sn_log *log;             /* may be NULL */
    const sn_trend *const *trends; /* shown beside the profile */
    size_t n_trends;
} sn_export_options;

typedef struct sn_exporter {
    const char *suffix; /* ".json" */
    const char *name;   /* "chrome" */
    const char *summary;
    bool lists_spans; /* its size grows with the number of runs */
    sonde_status (*write)(const sn_profile *p, sn_sink *sink, sonde_error *err);
    /* The same with options; NULL: the format has none. */
    sonde_status (*write_with)(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                               sonde_error *err);
} sn_exporter;
#define SN_EXPORTER(symbol) extern const sn_exporter symbol;
#include "export/exporters.inc"
#undef SN_EXPORTER

const sn_exporter *sn_exporter_row(size_t k);              /* NULL past the end */
const sn_exporter *sn_exporter_for_path(const char *path); /* longest suffix wins; NULL: none */
/* To a file, written beside it first and then renamed. "-" is the Chrome trace on stdout, "-.md"
 * and the like another format there. Errors name the path and the cause. */
sonde_status sn_export_file(const sn_profile *p, const char *path, sonde_error *err);
sonde_status sn_export_file_with(const sn_profile *p, const char *path,
                                 const sn_export_options *opt, sonde_error *err);
/* The same of bytes that somebody else writes: to a file, or for "-" and "-.suffix" to stdout. */
typedef sonde_status (*sn_export_fn)(void *user, sn_sink *sink, sonde_error *err);
sonde_status sn_export_file_by(const char *path, sn_export_fn write, void *user, sonde_error *err);
/* The format that opt->format names (NULL: the Chrome trace), wherever its bytes go. */
sonde_status sn_export_sink(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                            sonde_error *err);

#endif
