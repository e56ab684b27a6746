/* SPDX-License-Identifier: Apache-2.0 */
/* How a benchmark developed over time, as a picture and as a page. Whoever keeps the measurements
 * fills these structs; the writers know nothing of where they come from. Texts may have any bytes;
 * values that are not finite or below 0 are left out of pictures. */
#ifndef SN_EXPORT_TREND_H
#define SN_EXPORT_TREND_H

#include "export/export.h"

typedef struct sn_trend_point {
    int64_t id;              /* of the entry in the history */
    double value, low, high; /* median in ms and its 95 % interval; low = high = value: not known */
    int64_t at_unix_ms;      /* 0: not known */
    const char *commit, *note; /* "" or NULL where not known */
    const char *which;         /* of those that differ: "resnet-v2"; "" or NULL: all are alike */
    bool change;               /* a change begins here */
    double ratio;              /* of the change: after / before */
} sn_trend_point;

typedef struct sn_trend_level { /* between changes, of points [from, to) */
    size_t from, to;
    double value; /* its median in ms */
} sn_trend_level;

struct sn_trend {                 /* typedef in export.h */
    const char *title, *machine;  /* "regnet_x_400mf, 1 thread", the processor */
    const char *across;           /* what points differ in: "model"; "" or NULL: they are alike */
    const char *db;               /* the history they are from; "" or NULL: the usual one */
    const sn_trend_point *points; /* the oldest first */
    size_t n_points;
    const sn_trend_level *levels; /* none: points alone are drawn */
    size_t n_levels;
};

/* One picture below the other, 800 pixels wide. */
sonde_status sn_trend_write_svg(const sn_trend *const *trends, size_t n, sn_sink *sink,
                                sonde_error *err);
/* The report page with trends and no profile in it (`format` ".html"; SONDE_UNSUPPORTED where this
 * build has none), or its data alone (".page.gz"). To have trends beside a profile, give them to
 * the exporter of the page in its options. */
sonde_status sn_trend_write(const sn_trend *const *trends, size_t n, const char *format,
                            sn_allocator *alloc, sn_sink *sink, sonde_error *err);

#endif
