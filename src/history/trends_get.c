/* SPDX-License-Identifier: Apache-2.0 */
/* Trends as numbers, and as pictures and pages. */
#include <strings.h>

#include "export/trend.h"
#include "history/trends.h"

size_t sonde_trends_count(const sonde_trends *trends)
{
    return trends ? trends->list.n : 0;
}

/* NULL: past the end. */
static const sn_series *series_at(const sonde_trends *trends, size_t index)
{
    return index < sonde_trends_count(trends) ? trends->list.data[index] : NULL;
}

sonde_status sonde_trends_get(const sonde_trends *trends, size_t index, sonde_trend *trend,
                              sonde_error *err)
{
    SN_REQUIRE(trend, err);
    const sn_series *s = series_at(trends, index);
    if (!s)
        return SONDE_NOT_FOUND;
    const sonde_trend own = {.struct_size = sizeof own,
                             .title = s->title,
                             .machine = s->machine,
                             .points = s->points.n,
                             .levels = s->levels.n,
                             .changes = s->levels.n - 1,
                             .across = s->across};
    return sn_api_copy_out(trend, &own, sizeof own, err);
}

sonde_status sonde_trends_point(const sonde_trends *trends, size_t trend, size_t index,
                                sonde_trend_point *point, sonde_error *err)
{
    SN_REQUIRE(point, err);
    const sn_series *s = series_at(trends, trend);
    if (!s || index >= s->points.n)
        return SONDE_NOT_FOUND;
    return sn_api_copy_out(point, &s->points.data[index].shown, sizeof *point, err);
}

sonde_status sonde_trends_level(const sonde_trends *trends, size_t trend, size_t index,
                                sonde_trend_level *level, sonde_error *err)
{
    SN_REQUIRE(level, err);
    const sn_series *s = series_at(trends, trend);
    if (!s || index >= s->levels.n)
        return SONDE_NOT_FOUND;
    return sn_api_copy_out(level, &s->levels.data[index], sizeof *level, err);
}

/* ------------------------------------------------------------------ saving */

static double ms(double ns)
{
    return ns / 1e6;
}

/* In the arena of a copy that lives as long as the writing. */
static sonde_status shown_of(const sonde_trends *all, size_t index, sn_arena *arena,
                             const sn_trend **out, sonde_error *err)
{
    const sn_series *s = all->list.data[index];
    sn_trend *t = SN_NEW(arena, sn_trend);
    sn_trend_point *points = SN_NEW_N(arena, sn_trend_point, s->points.n + 1);
    sn_trend_level *levels = SN_NEW_N(arena, sn_trend_level, s->levels.n + 1);
    if (!t || !points || !levels)
        return sn_fail_memory(err, 0);
    for (size_t i = 0; i < s->points.n; i++) {
        const sonde_trend_point *p = &s->points.data[i].shown;
        points[i] = (sn_trend_point){.id = p->id,
                                     .value = ms(p->ns),
                                     .low = ms(p->low_ns),
                                     .high = ms(p->high_ns),
                                     .at_unix_ms = p->at_ms,
                                     .commit = p->commit,
                                     .note = p->note,
                                     .which = p->which,
                                     .ratio = 1};
    }
    for (size_t i = 0; i < s->levels.n; i++) {
        const sonde_trend_level *l = &s->levels.data[i];
        levels[i] = (sn_trend_level){l->from, l->to, ms(l->ns)};
        points[l->from].change = i > 0;
        points[l->from].ratio = l->ratio;
    }
    *t = (sn_trend){.title = s->title,
                    .machine = s->machine,
                    .across = s->across,
                    .db = all->db,
                    .points = points,
                    .n_points = s->points.n,
                    .levels = levels,
                    .n_levels = s->levels.n};
    *out = t;
    return SONDE_OK;
}

static bool write_file(sn_sink *sink, const void *data, size_t bytes)
{
    return sn_file_writer_put(sink->user, data, bytes);
}

/* `page`: the suffix of one of the forms of the report page; NULL: a picture. */
static sonde_status write_to(const sn_trend *const *shown, size_t n, const char *path,
                             const char *page, sn_allocator *alloc, sonde_error *err)
{
    sn_file_writer *w = sn_alloc(alloc, sizeof *w);
    if (!w)
        return sn_fail_memory(err, sizeof *w);
    sonde_status st = sn_file_writer_open(w, path, SN_WRITE_WHOLE, err);
    if (st == SONDE_OK) {
        sn_sink sink = {.write = write_file, .user = w};
        sonde_error why = {.status = SONDE_OK};
        st = page ? sn_trend_write(shown, n, page, alloc, &sink, &why)
                  : sn_trend_write_svg(shown, n, &sink, &why);
        if (st == SONDE_OK || sink.failed) /* finishing says why a file was not written */
            st = sn_file_writer_finish(w, false, err);
        else
            (void)sn_fail(err, st, "%s", why.message);
        sn_file_writer_abandon(w);
    }
    sn_free(alloc, w, sizeof *w);
    return st;
}

static bool ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), k = strlen(suffix);
    return n >= k && strcasecmp(path + n - k, suffix) == 0;
}

sonde_status sonde_trends_save(const sonde_trends *trends, const char *path, sonde_error *err)
{
    SN_REQUIRE(trends, err);
    SN_REQUIRE(path, err);
    const char *page = ends_with(path, ".html")      ? ".html"
                       : ends_with(path, ".page.gz") ? ".page.gz"
                                                     : NULL;
    if (!page && !ends_with(path, ".svg"))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "unknown format of '%s'; trends are saved as .svg, .html or .page.gz", path);
    sn_arena arena;
    sonde_status st = SONDE_OK;
    sn_arena_init(&arena, &trends->context->alloc);
    const sn_trend **shown = SN_NEW_N(&arena, const sn_trend *, trends->list.n + 1);
    if (!shown)
        st = sn_fail_memory(err, 0);
    for (size_t i = 0; i < trends->list.n && st == SONDE_OK; i++)
        st = shown_of(trends, i, &arena, &shown[i], err);
    if (st == SONDE_OK)
        st = write_to(shown, trends->list.n, path, page, &trends->context->alloc, err);
    sn_arena_free(&arena);
    return st;
}
