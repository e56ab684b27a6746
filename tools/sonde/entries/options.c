/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `history`: which entries, and what of them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comparison.h"
#include "entries/parts.h"

#define AT(field) offsetof(history_options, field)

static const option_row choosing_rows[] = {
    {0, "db", OPT_TEXT, AT(db), "FILE",
     "the database (default: $SONDE_HISTORY, else sonde/history.db in $XDG_DATA_HOME or "
     "~/.local/share)"},
    {0, "model", OPT_TEXT, AT(model), "PATTERN",
     "entries of models of this name, or whose hash begins so"},
    {0, "kind", OPT_TEXT, AT(kind), "profile|bench", "entries of this kind"},
    {0, "runtime", OPT_TEXT, AT(runtime), "PATTERN", "entries of this runtime: sonde, onnxruntime"},
    {0, "commit", OPT_TEXT, AT(commit), "ID", "entries whose commit begins so"},
    {0, "machine", OPT_TEXT, AT(machine), "PATTERN", "entries of this host or processor"},
    {0, "note", OPT_TEXT, AT(note), "PATTERN", "entries with such a note"},
    {0, "options", OPT_TEXT, AT(options), "KEY=VALUE,...",
     "entries whose options say this: threads=1,precision=bf16"},
    {0, "since", OPT_TEXT, AT(since), "DATE",
     "entries from then on: 2026-01-31, '2026-01-31 12:00', 7d, 12h"},
    {0, "until", OPT_TEXT, AT(until), "DATE", "entries before then"},
    {'n', "number", OPT_INT, AT(count), "N", "list the newest N entries (default: 20)"},
    {0, "all", OPT_FLAG, AT(all), NULL, "list all entries"},
    {0}};

static const option_row trend_rows[] = {
    {0, "across", OPT_TEXT, AT(across), "A,B",
     "trend: one series for entries that differ in models, hosts, machines or options"},
    {0, "op", OPT_TEXT, AT(op), "TYPE", "trend: the mean time of an operator type, such as Conv"},
    {0, "by", OPT_TEXT, AT(by), "op|node|shape",
     "diff: what a row is: operator type, node, or type with input shapes (default: op)"},
    {0, "fail-on-regression", OPT_MAYBE, AT(fail), "PERCENT",
     "trend, diff: exit with status 3 if the newest entries are slower, by more than this "
     "(default: 0)"},
    {0}};

static const option_row removing_rows[] = {
    {0, "keep", OPT_INT, AT(keep), "N", "prune: the newest N entries of each series stay"},
    {0, "only-profiles", OPT_FLAG, AT(only_profiles), NULL,
     "prune: entries keep their figures and lose their profiles"},
    {0}};

const option_group history_groups[] = {{"Entries", choosing_rows, 0, NULL},
                                       {"Trends and changes", trend_rows, 0, NULL},
                                       {"Removing", removing_rows, 0, NULL},
                                       TABLE_OPTIONS(history_options, table),
                                       {0}};

/* ------------------------------------------------------------------ dates */
static int64_t now_in_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool history_date(const char *said, int64_t *ms)
{
    static const char units[] = "mhdw";
    static const int64_t minutes[] = {1, 60, 1440, 10080};
    char *end;
    const long long n = strtoll(said, &end, 10);
    const char *unit = *end && !end[1] ? strchr(units, *end) : NULL;
    if (unit && said[0] >= '0' && said[0] <= '9' && n < 10000000) {
        *ms = now_in_ms() - (int64_t)n * minutes[unit - units] * 60000;
        return true;
    }
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm t = {.tm_isdst = -1};
        const char *rest = strptime(said, forms[i], &t);
        if (rest && !*rest) {
            const int day = t.tm_mday;
            const time_t at = mktime(&t);
            *ms = (int64_t)at * 1000;
            return at != (time_t)-1 && t.tm_mday == day; /* no 30th of February */
        }
    }
    return false;
}

static int take_date(const char *option, const char *said, int64_t *ms)
{
    if (!said || history_date(said, ms))
        return -1;
    return fail_usage(
        "--%s takes a date such as 2026-01-31 or '2026-01-31 12:00', or how long ago, "
        "such as 7d or 12h, not '%s'",
        option, said);
}

/* ------------------------------------------------------------------ all of them */
static int take_across(const char *said, unsigned *set)
{
    static const char *const words[] = {"models", "hosts", "machines", "options"};
    for (const char *p = said; p && *p;) {
        const size_t n = strcspn(p, ",");
        size_t k = 0;
        while (k < 4 && (strlen(words[k]) != n || strncmp(words[k], p, n) != 0))
            k++;
        if (k == 4)
            return fail_usage("--across takes models, hosts, machines, options or several of them, "
                              "such as models,hosts, not '%s'",
                              said);
        *set |= 1u << k;
        p += n + (p[n] != 0);
    }
    return -1;
}

int history_options_check(history_options *o)
{
    sonde_history_filter *f = &o->filter;
    *f = (sonde_history_filter)SONDE_INIT(sonde_history_filter);
    f->model = o->model;
    f->kind = o->kind;
    f->runtime = o->runtime;
    f->commit = o->commit;
    f->machine = o->machine;
    f->note = o->note;
    f->options = o->options;
    o->limit = -1;
    int code = take_date("since", o->since, &f->since_ms);
    if (code < 0)
        code = take_date("until", o->until, &f->until_ms);
    if (code < 0)
        code = take_across(o->across, &o->across_set);
    if (code < 0 && o->fail && *o->fail)
        code = comparison_limit("fail-on-regression", o->fail, &o->limit);
    else if (o->fail)
        o->limit = 0;
    return code;
}
