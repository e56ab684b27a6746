/* SPDX-License-Identifier: Apache-2.0 */
/* Series of entries with what was found in them: between finding and saving. */
#ifndef SN_HISTORY_TRENDS_H
#define SN_HISTORY_TRENDS_H

#include "history/history.h"

/* What entries that are alike have in common. Series that are joined have several. */
typedef struct sn_trend_origin {
    uint64_t number; /* of the series in the database */
    const char *model, *form, *host, *cpu, *cpu_level, *options;
    int cores;
    const char *which; /* as of sonde_trend_point; sn_trend_origins_name sets it */
    struct sn_series *series;
    struct sn_trend_origin *next; /* of the same series */
} sn_trend_origin;

typedef struct sn_series_point {
    sonde_trend_point shown;
    const char *hash; /* of the model */
    const sn_trend_origin *origin;
} sn_series_point;

typedef struct sn_series {
    const char *title, *machine, *across;
    SN_VEC(sn_series_point) points; /* oldest first */
    SN_VEC(sonde_trend_level) levels;
    sn_trend_origin *origins;
} sn_series;

struct sonde_trends {
    sonde_context *context;
    sn_arena arena; /* texts, and the series themselves */
    SN_VEC(sn_series *) list;
    const char *db; /* see sn_history_said */
};

/* ---- origins.c ---- */
/* Finds what the origins of the series differ in, and names each by that. */
sonde_status sn_trend_origins_name(sn_series *s, sn_arena *arena, sonde_error *err);

#endif
