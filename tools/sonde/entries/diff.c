/* SPDX-License-Identifier: Apache-2.0 */
/* Two entries side by side, as `diff` shows two profiles; of entries without profiles, the total
 * alone. */
#include <stdlib.h>
#include <string.h>

#include "comparison.h"
#include "entries/parts.h"

typedef struct pair {
    sonde_history_record *records[2];
    sonde_history_entry entries[2];
    sonde_profile *profiles[2]; /* both or none */
    char *titles[2];
    sonde_comparison *rows;
    comparison shown;
} pair;

/* Where the old one is told in words, it is one like the new one. */
static int find_old(sonde_history *h, const history_options *o, const char *reference, pair *p)
{
    sonde_history_filter like = o->filter;
    like.series = p->entries[1].series;
    const bool relative = reference[0] == '@';
    int64_t id;
    const bool alike = relative || sonde_history_find(h, reference, &like, &id, NULL) == SONDE_OK;
    return entry_get(h, reference, alike ? &like : &o->filter, &p->records[0], &p->entries[0]);
}

static int find(sonde_history *h, const history_options *o, const char *old_one,
                const char *new_one, pair *p)
{
    int code = entry_get(h, new_one, &o->filter, &p->records[1], &p->entries[1]);
    if (!code)
        code = find_old(h, o, old_one, p);
    for (int k = 0; k < 2 && !code; k++) {
        const sonde_history_entry *e = &p->entries[k];
        char *date = entry_date(e->at_ms), *commit = short_commit(e->commit);
        p->titles[k] =
            text_of("#%lld of %s%s%s", (long long)e->id, date, *commit ? ", " : "", commit);
        free(commit);
        free(date);
    }
    return code;
}

static int compare(pair *p)
{
    sonde_error err;
    if (!p->entries[0].profile_bytes || !p->entries[1].profile_bytes) {
        p->shown.total.struct_size = sizeof p->shown.total;
        return sonde_history_record_compare(p->records[0], p->records[1], &p->shown.total, &err)
                   ? fail("%s", err.message)
                   : EXIT_OK;
    }
    for (int k = 0; k < 2; k++)
        if (sonde_history_record_profile(p->records[k], &p->profiles[k], &err))
            return fail("%s", err.message);
    if (sonde_profile_compare(p->profiles[0], p->profiles[1], p->shown.by, &p->rows, &err))
        return fail("%s", err.message);
    return comparison_make(&p->shown, p->rows);
}

static void print_heading(const pair *p)
{
    static const char *const which[] = {"old", "new"};
    for (int k = 0; k < 2; k++) {
        const sonde_history_entry *e = &p->entries[k];
        char *model = printable(e->model), *note = printable(e->note);
        printf("%s: %s, %llu runs, median %s, %s%s%s%s\n", which[k], p->titles[k],
               (unsigned long long)e->runs, time_text(e->median_ns / 1e6), model,
               *note ? ", \"" : "", note, *note ? "\"" : "");
        free(model);
        free(note);
    }
    printf("\n");
}

static int save_json(const pair *p, const char *path)
{
    static const char *const which[] = {"old", "new"}, *const ways[] = {"op", "node", "shape"};
    text t = {.n = 0};
    text_add(&t, "{\"schema\": \"sonde.history.diff/1\", \"by\": \"%s\"", ways[p->shown.by]);
    for (int k = 0; k < 2; k++) {
        text_add(&t, ",\n \"%s\": ", which[k]);
        entry_json(&t, &p->entries[k]);
        text_add(&t, "}");
    }
    int code = comparison_json(&p->shown, &t);
    text_add(&t, "}\n");
    if (!code)
        code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}

static int save_pages(const pair *p, const list *outputs)
{
    sonde_export_options how = SONDE_INIT(sonde_export_options);
    sonde_error err;
    int code = EXIT_OK;
    if (outputs->n && !p->rows)
        return fail("the entries have no profiles that a page could show");
    how.before = p->profiles[0];
    how.before_title = p->titles[0];
    how.title = p->titles[1];
    for (size_t i = 0; i < outputs->n; i++) /* one that cannot be written costs no other */
        if (sonde_profile_save_with(p->profiles[1], outputs->items[i], &how, &err))
            code = fail("%s", err.message);
    return code;
}

static int show(pair *p, const history_options *o)
{
    char unlike[1000];
    const char *json = o->table.json;
    const bool quiet = o->common.quiet || (json && strcmp(json, "-") == 0);
    sonde_history_record_unlike(p->records[0], p->records[1], unlike, sizeof unlike);
    if (*unlike && !o->common.quiet) {
        char *words = printable(unlike);
        warn("the entries are not alike: %s", words);
        free(words);
    }
    if (!quiet)
        print_heading(p);
    int code = quiet ? EXIT_OK : comparison_print(&p->shown);
    if (!code && p->shown.limit >= 0)
        code = comparison_judge(&p->shown);
    if (!code && json)
        code = save_json(p, json);
    if (!code)
        code = save_pages(p, &o->table.outputs);
    return !code && p->shown.failures ? EXIT_MISMATCH : code;
}

int history_diff(history_options *o, sonde_history *h, const char *old_one, const char *new_one)
{
    pair p = {.shown = {.by = SONDE_BY_OP, .limit = o->limit}};
    for (size_t i = 0; i < o->table.outputs.n; i++)
        if (!has_suffix(o->table.outputs.items[i], ".html"))
            return fail_usage("unknown format of '%s'; diff saves a report page, whose suffix is "
                              ".html; --json saves the figures",
                              o->table.outputs.items[i]);
    int code = o->by ? comparison_by(o->by, &p.shown.by) : -1;
    if (code < 0)
        code = find(h, o, old_one, new_one, &p);
    if (!code)
        code = compare(&p);
    if (!code)
        code = show(&p, o);
    sonde_comparison_release(p.rows);
    for (int k = 0; k < 2; k++) {
        sonde_profile_release(p.profiles[k]);
        sonde_history_record_release(p.records[k]);
        free(p.titles[k]);
    }
    return code;
}
