/* SPDX-License-Identifier: Apache-2.0 */
/* Lists. A page of entries is read at once and no statement stays open between two calls: readers
 * hold up nobody, and many threads may read at once. The next page begins behind the last entry of
 * this one. */
#include "history/history.h"

enum { PAGE = 256 };

struct sonde_history_cursor {
    sonde_history *history;
    sn_arena own;  /* the filter's texts and the statement's */
    sn_arena page; /* texts of the entries */
    sonde_history_filter filter;
    const char *text; /* of the statement */
    sonde_history_entry entries[PAGE];
    size_t n, next;
    uint64_t left;          /* entries that may still be read */
    int64_t newest, at, id; /* what came later does not count; where the next page begins */
    bool ended;
};

static sonde_status copy_filter(sonde_history_cursor *c, sonde_error *err)
{
    sonde_history_filter *f = &c->filter;
    const char **const texts[] = {&f->model,   &f->kind, &f->runtime, &f->commit,
                                  &f->machine, &f->note, &f->options};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (*texts[i] && !(*texts[i] = sn_arena_strdup(&c->own, *texts[i])))
            return sn_fail_memory(err, 0);
    return SONDE_OK;
}

static sonde_status prepare(sonde_history_cursor *c, sonde_error *err)
{
    const char *where;
    SN_TRY(copy_filter(c, err));
    SN_TRY(sn_filter_text(&c->filter, &c->own, &where, err));
    c->text = sn_arena_printf(&c->own,
                              "%s%s%s AND e.id <= ? AND (e.at, e.id) < (?, ?)"
                              " ORDER BY e.at DESC, e.id DESC LIMIT ?",
                              sn_entry_columns, sn_entry_from, where);
    if (!c->text)
        return sn_fail_memory(err, 0);
    c->at = c->id = INT64_MAX;
    c->left = c->filter.limit ? c->filter.limit : UINT64_MAX;
    return sn_sql_number(&c->history->sql, "SELECT max(id) FROM entry", &c->newest, err);
}

sonde_status sonde_history_list(sonde_history *history, const sonde_history_filter *filter,
                                sonde_history_cursor **cursor, sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_REQUIRE(cursor, err);
    *cursor = NULL;
    sonde_history_filter own;
    SN_TRY(sn_filter_take(filter, &own, err));
    sn_allocator *alloc = &history->context->alloc;
    sonde_history_cursor *c = sn_alloc_zero(alloc, sizeof *c);
    if (!c)
        return sn_fail_memory(err, sizeof *c);
    c->history = history;
    c->filter = own;
    sn_arena_init(&c->own, alloc);
    sn_arena_init(&c->page, alloc);
    sonde_status st = sn_history_enter(history, err);
    if (st == SONDE_OK) {
        st = prepare(c, err);
        sn_history_leave(history);
    }
    if (st)
        sonde_history_cursor_release(c);
    else
        *cursor = c;
    return st;
}

static sonde_status read_rows(sonde_history_cursor *c, sn_sql_statement *s, size_t most,
                              sonde_error *err)
{
    bool row = true;
    SN_TRY(sn_filter_bind(&c->filter, s, &c->page, err));
    sn_sql_bind_int(s, c->newest);
    sn_sql_bind_int(s, c->at);
    sn_sql_bind_int(s, c->id);
    sn_sql_bind_int(s, (int64_t)most);
    while (c->n < most) {
        SN_TRY(sn_sql_step(s, &row, err));
        if (!row)
            break;
        c->entries[c->n].struct_size = sizeof c->entries[c->n];
        SN_TRY(sn_entry_read(s, &c->page, &c->entries[c->n], err));
        c->n++;
    }
    return SONDE_OK;
}

static sonde_status read_page(sonde_history_cursor *c, sonde_error *err)
{
    sn_sql_statement s;
    const size_t most = c->left < PAGE ? (size_t)c->left : PAGE;
    sn_arena_reset(&c->page);
    c->n = c->next = 0;
    SN_TRY(sn_history_enter(c->history, err));
    sonde_status st = sn_sql_prepare(&s, &c->history->sql, c->text, err);
    if (st == SONDE_OK)
        st = read_rows(c, &s, most, err);
    sn_sql_end(&s);
    sn_history_leave(c->history);
    SN_TRY(st);
    c->ended = c->n < PAGE;
    c->left -= c->n;
    if (c->n) {
        c->at = c->entries[c->n - 1].at_ms;
        c->id = c->entries[c->n - 1].id;
    }
    return SONDE_OK;
}

sonde_status sonde_history_next(sonde_history_cursor *cursor, sonde_history_entry *entry,
                                sonde_error *err)
{
    SN_REQUIRE(cursor, err);
    SN_REQUIRE(entry, err);
    if (cursor->next == cursor->n && !cursor->ended && cursor->left)
        SN_TRY(read_page(cursor, err));
    if (cursor->next == cursor->n)
        return SONDE_NOT_FOUND;
    return sn_api_copy_out(entry, &cursor->entries[cursor->next++], sizeof *entry, err);
}

void sonde_history_cursor_release(sonde_history_cursor *cursor)
{
    if (!cursor)
        return;
    sn_arena_free(&cursor->own);
    sn_arena_free(&cursor->page);
    sn_free(&cursor->history->context->alloc, cursor, sizeof *cursor);
}
