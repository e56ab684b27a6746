/* SPDX-License-Identifier: Apache-2.0 */
/* Removing entries. */
#include "history/history.h"

static sonde_status changeable(const sonde_history *h, sonde_error *err)
{
    return h->read_only ? sn_fail(err, SONDE_INVALID_ARGUMENT,
                                  "the history '%s' was opened to be read only", h->path)
                        : SONDE_OK;
}

static sonde_status run_with(sn_sql *sql, const char *text, int64_t id, sonde_error *err)
{
    sn_sql_statement s;
    sonde_status st = sn_sql_prepare(&s, sql, text, err);
    if (st == SONDE_OK) {
        sn_sql_bind_int(&s, id);
        st = sn_sql_do(&s, err);
    }
    sn_sql_end(&s);
    return st;
}

static sonde_status remove_parts(sn_sql *sql, int64_t id, sonde_error *err)
{
    SN_TRY(run_with(sql, "DELETE FROM large WHERE entry = ?", id, err));
    SN_TRY(run_with(sql, "DELETE FROM operator WHERE entry = ?", id, err));
    return run_with(sql, "DELETE FROM entry WHERE id = ?", id, err);
}

static sonde_status remove_profile(sn_sql *sql, int64_t id, sonde_error *err)
{
    SN_TRY(run_with(sql, "DELETE FROM large WHERE entry = ? AND what = 'profile'", id, err));
    return run_with(sql, "UPDATE entry SET profile = 0 WHERE id = ?", id, err);
}

/* Free pages are used again. Where they are most of the file it is written anew without them; that
 * this does not work just now is no failure. */
static void shrink(sn_sql *sql)
{
    int64_t pages, empty;
    sonde_error no_matter;
    if (sn_sql_number(sql, "PRAGMA page_count", &pages, &no_matter) == SONDE_OK &&
        sn_sql_number(sql, "PRAGMA freelist_count", &empty, &no_matter) == SONDE_OK &&
        empty > pages / 2)
        (void)sn_sql_run(sql, "VACUUM", &no_matter);
}

sonde_status sonde_history_remove(sonde_history *history, int64_t id, sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_TRY(changeable(history, err));
    SN_TRY(sn_history_enter(history, err));
    sn_sql *sql = &history->sql;
    sonde_status st = sn_sql_begin(sql, err);
    if (st == SONDE_OK) {
        st = remove_parts(sql, id, err);
        if (st == SONDE_OK && sn_sql_changes(sql) == 0)
            st = sn_fail(err, SONDE_NOT_FOUND, "the history '%s' has no entry #%lld", history->path,
                         (long long)id);
        if (st)
            sn_sql_undo(sql);
        else
            st = sn_sql_commit(sql, err);
    }
    sn_history_leave(history);
    return st;
}

/* ------------------------------------------------------------------ many */

typedef SN_VEC(int64_t) numbers;

/* Entries behind the newest `keep` of their series, of those that the filter leaves. */
static sonde_status choose(sonde_history *h, const sonde_history_filter *f,
                           const sonde_history_prune_options *o, sn_arena *arena, numbers *out,
                           sonde_error *err)
{
    sn_sql_statement s;
    const char *where;
    bool row = true;
    SN_TRY(sn_filter_text(f, arena, &where, err));
    const char *text =
        sn_arena_printf(arena,
                        "SELECT id FROM (SELECT e.id AS id, e.profile AS profile, row_number() OVER"
                        " (PARTITION BY e.series ORDER BY e.at DESC, e.id DESC) AS place%s%s)"
                        " WHERE place > ?%s",
                        sn_entry_from, where, o->only_profiles ? " AND profile > 0" : "");
    if (!text)
        return sn_fail_memory(err, 0);
    sonde_status st = sn_sql_prepare(&s, &h->sql, text, err);
    if (st == SONDE_OK) {
        st = sn_filter_bind(f, &s, arena, err);
        sn_sql_bind_int(&s, o->keep < INT64_MAX ? (int64_t)o->keep : INT64_MAX);
    }
    while (st == SONDE_OK && (st = sn_sql_step(&s, &row, err)) == SONDE_OK && row)
        if (!sn_vec_push(out, arena->alloc, sn_sql_int(&s, 0)))
            st = sn_fail_memory(err, sizeof(int64_t));
    sn_sql_end(&s);
    return st;
}

static sonde_status prune(sonde_history *h, const sonde_history_filter *f,
                          const sonde_history_prune_options *o, numbers *chosen, sonde_error *err)
{
    sn_arena arena;
    sn_arena_init(&arena, &h->context->alloc);
    SN_TRY(sn_sql_begin(&h->sql, err));
    sonde_status st = choose(h, f, o, &arena, chosen, err);
    for (size_t i = 0; i < chosen->n && st == SONDE_OK; i++)
        st = o->only_profiles ? remove_profile(&h->sql, chosen->data[i], err)
                              : remove_parts(&h->sql, chosen->data[i], err);
    sn_arena_free(&arena);
    if (st) {
        sn_sql_undo(&h->sql);
        return st;
    }
    SN_TRY(sn_sql_commit(&h->sql, err));
    shrink(&h->sql);
    return SONDE_OK;
}

sonde_status sonde_history_prune(sonde_history *history, const sonde_history_filter *filter,
                                 const sonde_history_prune_options *options, uint64_t *removed,
                                 sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_TRY(changeable(history, err));
    sonde_history_filter f;
    sonde_history_prune_options o;
    numbers chosen = {0};
    SN_TRY(sn_filter_take(filter, &f, err));
    SN_OPTIONS(o, options, err);
    SN_TRY(sn_history_enter(history, err));
    const sonde_status st = prune(history, &f, &o, &chosen, err);
    sn_history_leave(history);
    if (st == SONDE_OK && removed)
        *removed = chosen.n;
    sn_vec_free(&chosen, &history->context->alloc);
    return st;
}
