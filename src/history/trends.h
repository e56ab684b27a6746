/* SPDX-License-Identifier: Apache-2.0 */
/* Series of entries with what was found in them: between finding and saving. */
#ifndef SN_HISTORY_TRENDS_H
#define SN_HISTORY_TRENDS_H

#include "history/history.h"

typedef struct sn_series {
    const char *title, *machine;
    SN_VEC(sonde_trend_point) points; /* oldest first */
    SN_VEC(const char *) hashes;      /* of the points' models */
    SN_VEC(sonde_trend_level) levels;
} sn_series;

struct sonde_trends {
    sonde_context *context;
    sn_arena arena; /* texts, and the series themselves */
    SN_VEC(sn_series *) list;
};

#endif
