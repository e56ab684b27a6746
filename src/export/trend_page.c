/* SPDX-License-Identifier: Apache-2.0 */
/* Trends for the report page: the member "trends" of its data (docs/profile-format.md). */
#include <math.h>

#include "export/page.h"
#include "export/trend.h"

static bool is_shown(double v)
{
    return v >= 0 && v < INFINITY;
}

/* JSON numbers of fixed decimals lose small times: nanoseconds of milliseconds are six. */
static void put_ms(sn_writer *w, bool *first, const char *key, double ms)
{
    if (!is_shown(ms))
        return;
    sn_put_key(w, first, key);
    sn_put_fixed(w, ms, 6);
}

static void put_point(sn_writer *w, const sn_trend_point *p)
{
    bool first = true;
    sn_put(w, "{");
    sn_put_key(w, &first, "id");
    sn_put_i64(w, p->id);
    sn_put_key(w, &first, "value_ms");
    sn_put_fixed(w, is_shown(p->value) ? p->value : NAN, 6);
    if (p->high > p->low) {
        put_ms(w, &first, "low_ms", p->low);
        put_ms(w, &first, "high_ms", p->high);
    }
    if (p->at_unix_ms > 0) {
        sn_put_key(w, &first, "at_unix_ms");
        sn_put_i64(w, p->at_unix_ms);
    }
    if (p->commit && *p->commit)
        sn_put_key_text(w, &first, "commit", p->commit);
    if (p->note && *p->note)
        sn_put_key_text(w, &first, "note", p->note);
    if (p->which && *p->which)
        sn_put_key_text(w, &first, "which", p->which);
    if (p->change) {
        sn_put_key(w, &first, "change");
        sn_put(w, "true");
        if (p->ratio > 0 && p->ratio < INFINITY)
            sn_put_key_number(w, &first, "ratio", p->ratio);
    }
    sn_put(w, "}");
}

static void put_trend(sn_writer *w, const sn_trend *t)
{
    bool first = true;
    sn_put(w, "{");
    sn_put_key_text(w, &first, "title", t->title);
    sn_put_key_text(w, &first, "machine", t->machine);
    if (t->across && *t->across)
        sn_put_key_text(w, &first, "across", t->across);
    if (t->db && *t->db)
        sn_put_key_text(w, &first, "db", t->db);
    sn_put_key(w, &first, "points");
    sn_put(w, "[");
    for (size_t i = 0; i < t->n_points; i++) {
        sn_put(w, i ? "," : "");
        put_point(w, &t->points[i]);
    }
    sn_put(w, "]");
    sn_put_key(w, &first, "levels");
    sn_put(w, "[");
    for (size_t i = 0, written = 0; i < t->n_levels; i++) {
        const sn_trend_level *level = &t->levels[i];
        bool own = true;
        if (level->from >= level->to || level->to > t->n_points || !is_shown(level->value))
            continue;
        sn_put(w, written++ ? ",{" : "{");
        sn_put_key_number(w, &own, "from", (double)level->from);
        sn_put_key_number(w, &own, "to", (double)level->to);
        put_ms(w, &own, "value_ms", level->value);
        sn_put(w, "}");
    }
    sn_put(w, "]}");
}

void sn_page_trends(sn_writer *w, const sn_trend *const *trends, size_t n)
{
    sn_put(w, "[");
    for (size_t i = 0; i < n; i++) {
        sn_put(w, i ? "," : "");
        put_trend(w, trends[i]);
    }
    sn_put(w, "]");
}
