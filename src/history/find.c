/* SPDX-License-Identifier: Apache-2.0 */
/* References: what people call an entry. */
#include <stdlib.h>

#include "history/history.h"

static sonde_status first_of(sonde_history *h, const sonde_history_filter *f, size_t skip,
                             int64_t *id, uint64_t *series, size_t *count, sonde_error *err)
{
    sonde_history_cursor *c;
    sonde_history_entry e = {.struct_size = sizeof e};
    sonde_history_filter own = *f;
    own.limit = skip + 1;
    SN_TRY(sonde_history_list(h, &own, &c, err));
    sonde_status st = SONDE_OK;
    for (*count = 0; *count <= skip && st == SONDE_OK; ++*count) {
        st = sonde_history_next(c, &e, err);
        if (st)
            break;
    }
    *id = e.id;
    *series = e.series;
    sonde_history_cursor_release(c);
    return st;
}

static sonde_status none_left(const sonde_history *h, sonde_error *err)
{
    return sn_fail(err, SONDE_NOT_FOUND, "the history '%s' has no such entry", h->path);
}

static sonde_status find_back(sonde_history *h, const char *reference, size_t back,
                              const sonde_history_filter *f, int64_t *id, sonde_error *err)
{
    uint64_t series;
    size_t n;
    sonde_status st = first_of(h, f, 0, id, &series, &n, err);
    if (st == SONDE_NOT_FOUND)
        return none_left(h, err);
    SN_TRY(st);
    if (!back)
        return SONDE_OK;
    const int64_t newest = *id;
    sonde_history_filter like = *f;
    like.series = series;
    st = first_of(h, &like, back, id, &series, &n, err);
    if (st == SONDE_NOT_FOUND)
        return sn_fail(err, st,
                       "there is no %s: of entries like #%lld (same kind, model, machine and "
                       "options) there %s %zu",
                       reference, (long long)newest, n == 1 ? "is" : "are", n);
    return st;
}

static sonde_status find_number(sonde_history *h, int64_t number, bool *found, sonde_error *err)
{
    sn_sql_statement s;
    *found = false;
    SN_TRY(sn_history_enter(h, err));
    sonde_status st = sn_sql_prepare(&s, &h->sql, "SELECT 1 FROM entry WHERE id = ?", err);
    if (st == SONDE_OK) {
        sn_sql_bind_int(&s, number);
        st = sn_sql_step(&s, found, err);
    }
    sn_sql_end(&s);
    sn_history_leave(h);
    return st;
}

/* All of `text` as a number that is not negative; false: it is none. */
static bool number_of(const char *text, int64_t *number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoll(text, &end, 10);
    return !*end && *number < INT64_MAX;
}

/* A hash, or whatever else --commit said: the name of a version, say. */
static bool is_commit(const char *text)
{
    return text[0] != '@' && text[0] != '#' && strlen(text) >= 4;
}

static sonde_status find_commit(sonde_history *h, const char *commit, const sonde_history_filter *f,
                                int64_t *id, sonde_error *err)
{
    uint64_t series;
    size_t n;
    sonde_history_filter own = *f;
    own.commit = commit;
    const sonde_status st = first_of(h, &own, 0, id, &series, &n, err);
    return st == SONDE_NOT_FOUND
               ? sn_fail(err, st, "the history '%s' has no entry of commit %s", h->path, commit)
               : st;
}

sonde_status sonde_history_find(sonde_history *history, const char *reference,
                                const sonde_history_filter *filter, int64_t *id, sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_REQUIRE(reference, err);
    SN_REQUIRE(id, err);
    int64_t number;
    sonde_history_filter f;
    SN_TRY(sn_filter_take(filter, &f, err));
    if (reference[0] == '@') {
        const char *digits = reference + 1 + (reference[1] == '-');
        if (number_of(digits, &number) && (reference[1] == '-' || number == 0) &&
            number < INT32_MAX)
            return find_back(history, reference, (size_t)number, &f, id, err);
    } else if (number_of(reference + (reference[0] == '#'), &number)) {
        bool found;
        SN_TRY(find_number(history, number, &found, err));
        *id = number;
        if (found)
            return SONDE_OK;
        if (reference[0] == '#' || !is_commit(reference))
            return sn_fail(err, SONDE_NOT_FOUND, "the history '%s' has no entry #%lld",
                           history->path, (long long)number);
    }
    if (is_commit(reference))
        return find_commit(history, reference, &f, id, err);
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "'%s' is no reference to an entry: give @0 for the newest, @-1 for the one "
                   "before it, the number of an entry, or four or more characters of a commit",
                   reference);
}
