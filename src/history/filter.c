/* SPDX-License-Identifier: Apache-2.0 */
/* A filter as a condition. The text is put together of fixed pieces; what people type is bound. */
#include "export/text.h"
#include "history/history.h"

#include <string.h>

sonde_status sn_filter_take(const sonde_history_filter *theirs, sonde_history_filter *own,
                            sonde_error *err)
{
    SN_OPTIONS(*own, theirs, err);
    const char *const patterns[] = {own->model, own->runtime, own->machine, own->note};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (patterns[i] && strlen(patterns[i]) > SN_SQL_LONGEST_PATTERN)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "a pattern of %zu bytes is too long; the longest has %d",
                           strlen(patterns[i]), SN_SQL_LONGEST_PATTERN);
    return SONDE_OK;
}

static bool given(const char *text)
{
    return text && *text;
}

/* Conditions on the small tables choose series first; entries are then asked for the number of
 * theirs. */
static void add_series(const sonde_history_filter *f, sn_text *t)
{
    if (given(f->kind))
        sn_text_add(t, " AND s.kind = ?");
    if (given(f->runtime))
        sn_text_add(t, " AND s.runtime GLOB ?");
    if (given(f->machine))
        sn_text_add(t, " AND (m.host GLOB ? OR m.cpu GLOB ?)");
    if (given(f->options))
        sn_text_add(t, " AND s.setting IN (SELECT id FROM setting WHERE options_say(options, ?))");
}

sonde_status sn_filter_text(const sonde_history_filter *f, sn_arena *arena, const char **where,
                            sonde_error *err)
{
    sn_text t;
    sn_text_init(&t, arena->alloc);
    sn_text_add(&t, " WHERE 1");
    if (f->series)
        sn_text_add(&t, " AND e.series = ?");
    if (f->since_ms)
        sn_text_add(&t, " AND e.at >= ?");
    if (f->until_ms)
        sn_text_add(&t, " AND e.at < ?");
    if (given(f->model))
        sn_text_add(&t, " AND (s.model = ? OR s.model GLOB ? OR e.hash GLOB ?)");
    if (given(f->commit))
        sn_text_add(&t, " AND e.code >= ? AND e.code < ?");
    if (given(f->note))
        sn_text_add(&t, " AND e.note GLOB ?");
    add_series(f, &t);
    *where = t.failed ? NULL : sn_arena_strdup(arena, sn_text_get(&t));
    sn_text_free(&t);
    return *where ? SONDE_OK : sn_fail_memory(err, 0);
}

/* Git writes hashes in small letters, whatever people type; names of versions stay as they are. */
static const char *as_commit(const char *text, sn_arena *arena, bool *fine)
{
    const size_t n = strlen(text);
    char *made = sn_arena_strdup(arena, text);
    *fine &= made != NULL;
    if (made && strspn(text, "0123456789abcdefABCDEF") == n)
        for (char *p = made; *p; p++)
            *p |= *p >= 'A' && *p <= 'F' ? 'a' - 'A' : 0;
    return made ? made : "";
}

/* The same with a character or two behind it. */
static const char *longer(const char *text, const char *end, sn_arena *arena, bool *fine)
{
    const char *made = sn_arena_printf(arena, "%s%s", text, end);
    *fine &= made != NULL;
    return made;
}

sonde_status sn_filter_bind(const sonde_history_filter *f, sn_sql_statement *s, sn_arena *arena,
                            sonde_error *err)
{
    bool fine = true;
    if (f->series)
        sn_sql_bind_int(s, (int64_t)f->series);
    if (f->since_ms)
        sn_sql_bind_int(s, f->since_ms);
    if (f->until_ms)
        sn_sql_bind_int(s, f->until_ms);
    if (given(f->model)) {
        /* A name may have characters that mean something in a pattern; a short word would be the
         * beginning of many a hash, and "-" is that of none. */
        const bool hash = strlen(f->model) >= 6 && !strpbrk(f->model, "*?[");
        sn_sql_bind_text(s, f->model);
        sn_sql_bind_text(s, f->model);
        sn_sql_bind_text(s, hash ? longer(f->model, "*", arena, &fine) : "-");
    }
    if (given(f->commit)) {
        const char *commit = as_commit(f->commit, arena, &fine);
        sn_sql_bind_text(s, commit);
        sn_sql_bind_text(s,
                         longer(commit, "\xF4\x8F\xBF\xBF", arena, &fine)); /* the last there is */
    }
    if (given(f->note))
        sn_sql_bind_text(s, f->note);
    if (given(f->kind))
        sn_sql_bind_text(s, f->kind);
    if (given(f->runtime))
        sn_sql_bind_text(s, f->runtime);
    if (given(f->machine)) {
        sn_sql_bind_text(s, f->machine);
        sn_sql_bind_text(s, f->machine);
    }
    if (given(f->options))
        sn_sql_bind_text(s, f->options);
    return fine ? SONDE_OK : sn_fail_memory(err, 0);
}
