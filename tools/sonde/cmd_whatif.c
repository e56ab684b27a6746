/* SPDX-License-Identifier: Apache-2.0 */
/* sonde whatif: what another form of a model would give on this machine, measured. One table of
 * scenarios, one of operators, whose columns go on below where a line has no more room. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/whatif.h"
#include "tool.h"

static const char details[] =
    "\n"
    "Builds the model in memory with made-up weights of another form, runs both in turns under\n"
    "the profiler, and shows for every operator and for the whole what that takes. A scenario\n"
    "is one of these parts, or several joined by '+':\n"
    "\n"
    "  sparse90       90 % of the weights of products are zeros, in blocks of 4x1\n"
    "  int8           what 'sonde quantize' makes: products in 8 bits, fixed scales\n"
    "  int8-dynamic   matrix products in 8 bits, scales computed in every run\n"
    "  int4           weights of matrix products in 4 bits\n"
    "  bf16, f16, f32 precision of the session\n"
    "  batch=4        per sample; shown as the time of as many samples as now\n"
    "  threads=2\n"
    "\n"
    "'best mix' is every operator in the form that is fastest for it, measured together. The\n"
    "figures say nothing about accuracy. Results are cached; 'sonde profile --what-if' puts\n"
    "the measured sparse ratios into its .csv and .xlsx.\n"
    "\n"
    "  sonde whatif zoo:bert_base\n"
    "  sonde whatif model.onnx --scenarios sparse90,int8,sparse90+int8 -t 1\n"
    "  sonde whatif model.onnx --scenarios int8 --only '/fc*' -o whatif.xlsx\n";

typedef struct whatif_options {
    run_setup setup;
    list outputs, only;
    const char *json, *scenarios, *by;
    int64_t runs, warmup; /* -1: not given */
    bool no_cache, no_mix;
} whatif_options;

#define AT(field) offsetof(whatif_options, field)

static const option_row rows[] = {
    {0, "scenarios", OPT_TEXT, AT(scenarios), "LIST",
     "what to measure, such as sparse90,int8,batch=4 (default: all that the text above names)"},
    {0, "only", OPT_LIST, AT(only), "NODES",
     "change only the weights of these nodes: names with commas between them; * and ? are "
     "wildcards, @FILE names a file of names"},
    {0, "by", OPT_TEXT, AT(by), "op|node|shape",
     "what a row is: operator type, node, or type with input shapes (default: shape)"},
    {'n', "iterations", OPT_INT, AT(runs), "N",
     "measured runs per scenario, and as many of the model as it is (default: half a second of "
     "both, at least 6)"},
    {'w', "warmup", OPT_INT, AT(warmup), "N", "warm-up runs per scenario (default: 3)"},
    {0, "no-cache", OPT_FLAG, AT(no_cache), NULL, "measure again, and do not keep the results"},
    {0, "no-mix", OPT_FLAG, AT(no_mix), NULL, "do not measure the best mix"},
    OUTPUT_ROW(whatif_options, outputs),
    JSON_ROW(whatif_options, json),
    {0}};

static const option_group groups[] = {{"What-if", rows, 0, NULL},
                                      INPUT_OPTIONS(whatif_options, setup.inputs),
                                      MODEL_OPTIONS(whatif_options, setup.model),
                                      {0}};

/* ------------------------------------------------------------------ scenarios */
static int name_width(const sonde_whatif *r)
{
    int width = 8;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    for (size_t i = 0; sonde_whatif_scenario_get(r, i, &s, NULL) == SONDE_OK; i++)
        width = display_width(s.name) > width ? display_width(s.name) : width;
    return width;
}

static void print_scenarios(const sonde_whatif *r, const shown_unit *u)
{
    const int width = name_width(r);
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario), now = s;
    if (sonde_whatif_scenario_get(r, 0, &now, NULL))
        return;
    printf("%-*s  %10s%s  %8s  %15s  %10s  %10s\n", width, "scenario", u->name,
           u->divisor == 1e-3 ? " " : "", "speed-up", "95 % interval", "weights", "saved");
    for (size_t i = 0; sonde_whatif_scenario_get(r, i, &s, NULL) == SONDE_OK; i++) {
        if (*s.reason) {
            char *reason = printable(s.reason);
            printf("%-*s  %10s  %s\n", width, s.name, "-", reason);
            free(reason);
            continue;
        }
        printf("%-*s  %10.*f", width, s.name, u->decimals, s.total_ns / 1e6 / u->divisor);
        printf("  %8.2f  %6.2f ... %4.2f", s.speedup, s.low, s.high);
        const int64_t saved = (int64_t)now.weight_bytes - (int64_t)s.weight_bytes;
        printf("  %10s  %s%s\n", bytes_text(s.weight_bytes), saved < 0 ? "-" : "",
               bytes_text((uint64_t)(saved < 0 ? -saved : saved)));
    }
}

/* ------------------------------------------------------------------ operators */
typedef struct columns {
    const sonde_whatif *r;
    sonde_by by;
    shown_unit u;
    int label;        /* width of the first column */
    size_t n;         /* scenarios with figures */
    size_t which[80]; /* their numbers */
} columns;

static char *label_of(const sonde_whatif_row *row, sonde_by by)
{
    char *raw = by == SONDE_BY_NODE && *row->node ? text_of("%s %s", row->name, row->node)
                : *row->shapes                    ? text_of("%s %s", row->name, row->shapes)
                                                  : text_of("%s", row->name);
    char *shown = printable(raw);
    free(raw);
    return shown;
}

static int widest(const columns *c)
{
    int width = 8;
    sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
    for (size_t i = 0; sonde_whatif_row_get(c->r, c->by, i, &row, NULL) == SONDE_OK; i++) {
        char *shown = label_of(&row, c->by);
        width = display_width(shown) > width ? display_width(shown) : width;
        free(shown);
    }
    return width < 60 ? width : 60;
}

static int title_width(const sonde_whatif_scenario *s)
{
    const int n = display_width(s->name);
    return n > 8 ? n : 8;
}

static void print_block(const columns *c, size_t from, size_t to, bool last)
{
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    sonde_whatif_row row = SONDE_INIT(sonde_whatif_row);
    char *title = text_of("operator (%s)", c->u.name), *head = cell(title, c->label);
    printf("\n%s  %5s", head, "count");
    free(head);
    free(title);
    for (size_t k = from; k < to; k++)
        if (!sonde_whatif_scenario_get(c->r, c->which[k], &s, NULL))
            printf("  %*s", title_width(&s), s.name);
    printf("%s\n", last ? "  fastest" : "");
    for (size_t i = 0; sonde_whatif_row_get(c->r, c->by, i, &row, NULL) == SONDE_OK; i++) {
        char *shown = label_of(&row, c->by), *name = cell(shown, c->label);
        printf("%s  %5zu", name, row.count);
        for (size_t k = from; k < to; k++)
            if (!sonde_whatif_scenario_get(c->r, c->which[k], &s, NULL))
                printf("  %*.3f", title_width(&s), row.times_ns[c->which[k]] / 1e6 / c->u.divisor);
        if (last && !row.bracket && !sonde_whatif_scenario_get(c->r, row.best, &s, NULL))
            printf("  %s", s.name);
        printf("\n");
        free(name);
        free(shown);
    }
    char *name = cell("total", c->label);
    printf("%s  %5s", name, "");
    free(name);
    for (size_t k = from; k < to; k++)
        if (!sonde_whatif_scenario_get(c->r, c->which[k], &s, NULL))
            printf("  %*.3f", title_width(&s), s.total_ns / 1e6 / c->u.divisor);
    printf("\n");
}

static void print_operators(columns *c)
{
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    const int wide = terminal_width();
    for (size_t i = 0; sonde_whatif_scenario_get(c->r, i, &s, NULL) == SONDE_OK; i++)
        if (!*s.reason && c->n < sizeof c->which / sizeof *c->which)
            c->which[c->n++] = i;
    c->label = column_width(widest(c), 40);
    for (size_t from = 0, to; from < c->n; from = to) {
        int used = c->label + 7;
        for (to = from; to < c->n; to++) {
            if (sonde_whatif_scenario_get(c->r, c->which[to], &s, NULL))
                break;
            used += title_width(&s) + 2;
            if (wide && used > wide && to > from)
                break;
        }
        print_block(c, from, to, to == c->n);
    }
}

/* When and where, from the oldest result to the newest. */
static void print_origin(const sonde_whatif *r)
{
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    const char *first = NULL, *last = NULL, *machine = "";
    size_t known = 0, cached = 0;
    for (size_t i = 0; sonde_whatif_scenario_get(r, i, &s, NULL) == SONDE_OK; i++) {
        if (!*s.measured)
            continue;
        known++;
        cached += s.cached != 0;
        first = first && strcmp(first, s.measured) <= 0 ? first : s.measured;
        last = last && strcmp(last, s.measured) >= 0 ? last : s.measured;
        machine = s.machine;
    }
    if (!known)
        return;
    char *where = printable(machine);
    printf("\nmeasured %s%s%s on %s", first, strcmp(first, last) ? " to " : "",
           strcmp(first, last) ? last : "", where);
    if (cached)
        printf("; %zu of %zu results are from the cache", cached, known);
    printf("\n");
    free(where);
}

/* ------------------------------------------------------------------ the verb */
typedef struct writing {
    text t;
} writing;

static void take(void *user, const char *data, size_t size)
{
    text_add(&((writing *)user)->t, "%.*s", (int)size, data);
}

static int save(const sonde_whatif *r, const whatif_options *o)
{
    sonde_error err;
    int code = EXIT_OK;
    for (size_t i = 0; i < o->outputs.n && !code; i++)
        if (sonde_whatif_save(r, o->outputs.items[i], &err))
            code = fail("%s", err.message);
    if (!code && o->json) {
        writing w = {.t = {.n = 0}};
        code = sonde_whatif_write(r, ".json", take, &w, &err)
                   ? fail("%s", err.message)
                   : write_text(o->json, w.t.data, w.t.n);
        text_free(&w.t);
    }
    return code;
}

static void show_progress(void *user, const char *scenario, double done)
{
    progress(user, scenario, done);
}

static int show(const sonde_whatif *r, const whatif_options *o, sonde_by by)
{
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    sonde_whatif_scenario now = SONDE_INIT(sonde_whatif_scenario);
    sonde_error err;
    if (sonde_whatif_scenario_get(r, 0, &now, &err))
        return fail("%s", err.message);
    if (!json_only && !o->setup.common.quiet) {
        columns c = {.r = r, .by = by, .u = unit_of_ms(now.total_ns / 1e6)};
        print_scenarios(r, &c.u);
        print_operators(&c);
        print_origin(r);
    }
    return save(r, o);
}

static int measure(const loaded *l, const feeds *f, whatif_options *o, sonde_by by)
{
    sonde_whatif_options how = SONDE_INIT(sonde_whatif_options);
    const sonde_session_options session = session_options(&o->setup.model);
    how.session = &session;
    how.precision = session.precision;
    how.scenarios = o->scenarios;
    how.only = o->only.items;
    how.only_count = o->only.n;
    how.input_names = f->names;
    how.values = f->values;
    how.value_count = f->n;
    how.runs = o->runs > 0 ? (int)o->runs : 0;
    how.warmup = o->warmup == 0 ? -1 : o->warmup > 0 ? (int)o->warmup : 0;
    how.no_cache = o->no_cache;
    how.no_mix = o->no_mix;
    how.progress = show_progress;
    how.progress_user = &o->setup.common;
    int code = interrupt_keep();
    if (code)
        return code;
    how.cancel = interrupt_token();
    sonde_whatif *r = NULL;
    sonde_error err;
    const sonde_status st = sonde_whatif_measure(l->model, &how, &r, &err);
    progress_end();
    const bool ended = st == SONDE_CANCELLED && interrupted();
    if (st && !ended)
        return fail_with_sizes(l, &o->setup, err.message);
    if (!r)
        return fail("interrupted before anything was measured");
    code = show(r, o, by);
    sonde_whatif_release(r);
    if (ended && !code)
        code = fail(o->no_cache ? "interrupted; these are the results so far"
                                : "interrupted; these are the results so far, and the same command "
                                  "goes on with the others");
    return code;
}

static int check(const whatif_options *o, sonde_by *by)
{
    static const char *const ways[] = {"op", "node", "shape"};
    const size_t n = o->setup.common.rest.n;
    *by = SONDE_BY_SHAPE;
    if (n != 1)
        return n ? fail_usage("whatif takes one MODEL, not %zu", n)
                 : fail_usage("whatif needs a MODEL; see 'sonde whatif --help'");
    if (o->runs == 0)
        return fail_usage("--iterations 0: nothing would be measured");
    if (o->runs > 1000000 || o->warmup > 1000000)
        return fail_usage("-n and -w take at most 1000000 runs");
    for (size_t i = 0; i < o->outputs.n; i++)
        if (!ends_with(o->outputs.items[i], ".csv") && !ends_with(o->outputs.items[i], ".xlsx") &&
            !ends_with(o->outputs.items[i], ".json"))
            return fail_usage("-o %s: a what-if result is saved as .csv, .xlsx or .json",
                              o->outputs.items[i]);
    for (int k = 0; o->by && k < 3; k++)
        if (strcmp(o->by, ways[k]) == 0) {
            *by = (sonde_by)k;
            return -1;
        }
    return o->by ? fail_usage("--by is 'op', 'node' or 'shape', not '%s'", o->by) : -1;
}

int cmd_whatif(int argc, char **argv)
{
    static const verb_options verb = {"whatif", details, groups, NULL};
    whatif_options o = {.setup = SETUP_DEFAULTS, .runs = -1, .warmup = -1};
    sonde_by by;
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0)
        code = check(&o, &by);
    if (code < 0) {
        loaded l;
        feeds f = {.n = 0};
        code = load(&l, &o.setup, o.setup.common.rest.items[0], LOAD_TO_KNOW_PORTS);
        if (!code && !l.session)
            code = fail("cannot measure a model that cannot run");
        if (!code)
            code = feeds_make_one(&f, &l, &o.setup);
        if (!code)
            code = measure(&l, &f, &o, by);
        feeds_free(&f);
        unload(&l);
    }
    options_free(&verb, &o.setup.common);
    return code;
}
