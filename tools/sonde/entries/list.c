/* SPDX-License-Identifier: Apache-2.0 */
/* The list of entries, as a table and as JSON. Both are written while entries are read. */
#include <stdlib.h>
#include <string.h>

#include "entries/parts.h"

enum { MODEL_WIDTH = 26, KEPT_TITLES = 4096 };

/* What entries of a series have in common, in words: most have the same. */
typedef struct title {
    char *kind, *model, *end; /* cells, and options and host */
    uint64_t series;
} title;

static void free_title(title *t)
{
    free(t->kind);
    free(t->model);
    free(t->end);
}

static const title *title_of(title *titles, const sonde_history_entry *e)
{
    title *t = &titles[e->series % KEPT_TITLES];
    if (t->end && t->series == e->series)
        return t;
    free_title(t);
    char *options = entry_options(e->options), *host = printable(e->host);
    const bool own = strcmp(e->runtime, "sonde") == 0;
    char *runtime = own ? NULL : printable(e->runtime);
    *t = (title){.kind = cell(e->kind, 7),
                 .model = cell(e->model, MODEL_WIDTH),
                 .end = text_of("%s%s%s%s%s", own ? "" : runtime, own || !*options ? "" : ", ",
                                options, *host ? "; " : "", host),
                 .series = e->series};
    free(runtime);
    free(options);
    free(host);
    return t;
}

static void print_entry(const sonde_history_entry *e, title *titles)
{
    const title *t = title_of(titles, e);
    char *date = entry_date(e->at_ms);
    char *commit = short_commit(e->commit), *note = printable(e->note);
    const double half = e->median_ns > 0 ? (e->high_ns - e->low_ns) / 2 / e->median_ns : 0;
    char spread[32] = "";
    if (e->high_ns > e->low_ns && half < 10)
        snprintf(spread, sizeof spread, "± %.1f %%", half * 100);
    const char *time = time_text(e->median_ns / 1e6);
    printf("%6lld  %s  %s  %s  %*s%s %-*s  %-8s  %s%s%s%s\n", (long long)e->id, date, t->kind,
           t->model, 10 - display_width(time), "", time, *spread ? 10 : 9, spread, commit, t->end,
           *note ? "; \"" : "", note, *note ? "\"" : "");
    free(date);
    free(commit);
    free(note);
}

static int print_table(sonde_history_cursor *c)
{
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_error err;
    sonde_status st;
    title *titles = need(calloc(KEPT_TITLES, sizeof *titles));
    bool first = true;
    while ((st = sonde_history_next(c, &e, &err)) == SONDE_OK && !interrupted()) {
        if (first)
            printf("%6s  %-16s  %-7s  %-*s  %10s %-9s  %-8s  %s\n", "id", "date", "kind",
                   MODEL_WIDTH, "model", "median", "", "commit", "options; machine");
        first = false;
        print_entry(&e, titles);
    }
    for (size_t i = 0; i < KEPT_TITLES; i++)
        free_title(&titles[i]);
    free(titles);
    if (st && st != SONDE_NOT_FOUND)
        return fail("%s", err.message);
    if (first)
        fprintf(stderr, "sonde: no such entry\n");
    return EXIT_OK;
}

/* A list on standard output goes there piece by piece. */
static int write_json(sonde_history_cursor *c, const char *path)
{
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_error err;
    sonde_status st;
    text t = {.n = 0};
    const bool stream = strcmp(path, "-") == 0;
    text_add(&t, "{\"schema\": \"sonde.history/1\", \"entries\": [");
    bool first = true;
    int code = EXIT_OK;
    while (!code && (st = sonde_history_next(c, &e, &err)) == SONDE_OK) {
        text_add(&t, first ? "\n " : ",\n ");
        first = false;
        entry_json(&t, &e);
        text_add(&t, "}");
        if (stream && t.n > 1 << 16) {
            code = write_text(path, t.data, t.n);
            t.n = 0;
        }
    }
    if (!code && st != SONDE_NOT_FOUND)
        code = fail("%s", err.message);
    text_add(&t, "]}\n");
    if (!code)
        code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}

int history_list(history_options *o, sonde_history *h)
{
    sonde_history_cursor *c;
    sonde_error err;
    if (o->table.outputs.n)
        return fail_usage("list saves no files; --json FILE saves the entries");
    o->filter.limit = o->all ? 0 : o->count >= 0 ? (size_t)o->count : 20;
    if (o->count == 0)
        return fail_usage("-n 0: nothing would be listed");
    if (sonde_history_list(h, &o->filter, &c, &err))
        return fail("%s", err.message);
    const int code = o->table.json ? write_json(c, o->table.json) : print_table(c);
    sonde_history_cursor_release(c);
    return code;
}
