/* SPDX-License-Identifier: Apache-2.0 */
/* sonde history: what `profile --save` and `bench --save` kept. */
#include <string.h>

#include "entries/parts.h"

static const char details[] =
    "\n"
    "'sonde profile --save' and 'sonde bench --save' add entries to a SQLite database.\n"
    "\n"
    "  sonde history [list]              the newest entries\n"
    "  sonde history show REF            one entry and its profile; -o saves it in any format\n"
    "  sonde history trend [MODEL]       medians over time, and where they changed for good\n"
    "  sonde history diff [OLD [NEW]]    two entries operator by operator (default: @-1 @0)\n"
    "  sonde history export REF -o FILE  the profile of an entry in the format of the suffix\n"
    "  sonde history rm REF...           remove entries\n"
    "  sonde history prune --keep N      remove all but the newest N of each series\n"
    "\n"
    "REF is the number of an entry, the beginning of a commit, @0 for the newest entry, or\n"
    "@-1 and so on for those before it. Entries are alike, and make a series, if kind,\n"
    "runtime, model, machine and options are the same; @-1 and trends keep to entries that\n"
    "are alike.\n"
    "\n"
    "  sonde profile model.onnx --save\n"
    "  sonde history trend model.onnx -o trend.html --fail-on-regression\n"
    "  sonde history --model 'zoo:*' --since 7d --options threads=1\n";

enum { LIST, SHOW, TREND, DIFF, EXPORT, RM, PRUNE };

typedef struct sub_verb {
    const char *name;
    size_t least, most; /* words behind it */
    bool writes;
    const char *words;
} sub_verb;

static const sub_verb sub_verbs[] = {[LIST] = {"list", 0, 1, false, "at most a MODEL"},
                                     [SHOW] = {"show", 1, 1, false, "one entry"},
                                     [TREND] = {"trend", 0, 1, false, "at most a MODEL"},
                                     [DIFF] = {"diff", 0, 2, false, "at most two entries"},
                                     [EXPORT] = {"export", 1, 1, false, "one entry"},
                                     [RM] = {"rm", 1, SIZE_MAX, true, "entries"},
                                     [PRUNE] = {"prune", 0, 0, true, "no words"}};
enum { SUB_VERBS = sizeof sub_verbs / sizeof sub_verbs[0] };

static int pick(const list *rest, size_t *which)
{
    const char *names[SUB_VERBS + 1] = {NULL};
    *which = LIST;
    if (!rest->n)
        return -1;
    for (*which = 0; *which < SUB_VERBS; ++*which) {
        const sub_verb *v = &sub_verbs[*which];
        names[*which] = v->name;
        if (strcmp(v->name, rest->items[0]) != 0)
            continue;
        if (rest->n - 1 >= v->least && rest->n - 1 <= v->most)
            return -1;
        return fail_usage("history %s takes %s; see 'sonde history --help'", v->name, v->words);
    }
    const char *near = closest(rest->items[0], names);
    if (near)
        return fail_usage("unknown argument '%s'; did you mean '%s'?", rest->items[0], near);
    return fail_usage("unknown argument '%s'; history takes list, show, trend, diff, export, rm or "
                      "prune",
                      rest->items[0]);
}

/* Options that the verb would not look at. */
static int check_fit(const history_options *o, size_t which)
{
    const struct {
        const char *option;
        bool given;
        size_t a, b; /* the verbs that take it */
    } rows[] = {{"-n", o->count >= 0, LIST, LIST},
                {"--all", o->all, LIST, LIST},
                {"--across", o->across != NULL, TREND, TREND},
                {"--op", o->op != NULL, TREND, TREND},
                {"--by", o->by != NULL, DIFF, DIFF},
                {"--fail-on-regression", o->fail != NULL, TREND, DIFF},
                {"--keep", o->keep >= 0, PRUNE, PRUNE},
                {"--only-profiles", o->only_profiles, PRUNE, PRUNE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].given && which != rows[i].a && which != rows[i].b)
            return fail_usage("%s is an option of 'history %s'%s%s%s, not of 'history %s'",
                              rows[i].option, sub_verbs[rows[i].a].name,
                              rows[i].a != rows[i].b ? " and '" : "",
                              rows[i].a != rows[i].b ? sub_verbs[rows[i].b].name : "",
                              rows[i].a != rows[i].b ? "'" : "", sub_verbs[which].name);
    return -1;
}

/* Only what changes entries opens it for writing, and what finds an older schema. */
static int open_history(const history_options *o, sonde_context *c, bool writes, sonde_history **h)
{
    sonde_history_options how = SONDE_INIT(sonde_history_options);
    sonde_error err;
    how.read_only = 1;
    sonde_status st = sonde_history_open(c, o->db, &how, h, &err);
    if (st == SONDE_NOT_FOUND)
        return fail("%s; --save of 'sonde profile' and 'sonde bench' makes one", err.message);
    how.read_only = 0;
    if (st == SONDE_UNSUPPORTED && sonde_history_available())
        st = sonde_history_open(c, o->db, &how, h, &err);
    else if (!st && writes) {
        sonde_history_close(*h);
        *h = NULL;
        st = sonde_history_open(c, o->db, &how, h, &err);
    }
    return st ? fail("%s", err.message) : EXIT_OK;
}

/* What the program adds is of two kinds; programs that use the library may have their own. */
static int check_kind(const history_options *o, sonde_history *h)
{
    sonde_history_filter f = SONDE_INIT(sonde_history_filter);
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_history_cursor *c = NULL;
    sonde_error err;
    if (!o->kind || strcmp(o->kind, "profile") == 0 || strcmp(o->kind, "bench") == 0)
        return -1;
    f.kind = o->kind;
    f.limit = 1;
    sonde_status st = *o->kind ? sonde_history_list(h, &f, &c, &err) : SONDE_NOT_FOUND;
    if (!st)
        st = sonde_history_next(c, &e, &err);
    sonde_history_cursor_release(c);
    return !st                     ? -1
           : st != SONDE_NOT_FOUND ? fail("%s", err.message)
                                   : fail_usage("--kind is 'profile', 'bench' or another kind that "
                                                "entries of the history have, not '%s'",
                                                o->kind);
}

static int run(history_options *o, size_t which, sonde_history *h)
{
    const list *rest = &o->common.rest;
    const char *const *words = rest->n ? rest->items + 1 : NULL;
    const size_t n = rest->n ? rest->n - 1 : 0;
    switch (which) {
    case SHOW:
        return history_show(o, h, words[0], false);
    case EXPORT:
        if (!o->table.outputs.n)
            return fail_usage("history export needs -o FILE, whose suffix picks the format");
        return history_show(o, h, words[0], true);
    case TREND:
        o->filter.model = n ? words[0] : o->filter.model;
        return history_trend(o, h);
    case DIFF:
        return history_diff(o, h, n ? words[0] : "@-1", n > 1 ? words[1] : "@0");
    case RM:
        return history_remove(o, h, words, n);
    case PRUNE:
        return history_prune(o, h);
    default:
        o->filter.model = n ? words[0] : o->filter.model;
        return history_list(o, h);
    }
}

static int open_and_run(history_options *o, size_t which)
{
    sonde_history *h = NULL;
    sonde_context *c = reading_context(0);
    int code = c ? open_history(o, c, sub_verbs[which].writes, &h) : EXIT_ERROR;
    if (!code)
        code = check_kind(o, h);
    if (code < 0)
        code = run(o, which, h);
    sonde_history_close(h);
    sonde_context_release(c);
    return code;
}

int cmd_history(int argc, char **argv)
{
    static const verb_options verb = {"history", details, history_groups, help_formats};
    history_options o = {.count = -1, .keep = -1};
    size_t which = LIST;
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0)
        code = pick(&o.common.rest, &which);
    if (code < 0)
        code = check_fit(&o, which);
    if (code < 0)
        code = history_options_check(&o);
    if (code < 0)
        code = open_and_run(&o, which);
    options_free(&verb, &o.common);
    return code;
}
