/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of many processes: opened, as a table on the terminal, as JSON. */
#include "fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ opening */
static void tell_skipped(const sonde_fleet *fleet, const common_options *o, size_t *left_out)
{
    sonde_fleet_skipped s = SONDE_INIT(sonde_fleet_skipped);
    sonde_error err;
    for (size_t i = 0; sonde_fleet_skipped_get(fleet, i, &s, &err) == SONDE_OK; i++) {
        *left_out += !s.duplicate;
        /* Most reasons begin with the file. */
        char *raw =
            strstr(s.why, s.path) ? text_of("%s", s.why) : text_of("'%s': %s", s.path, s.why);
        char *said = printable(raw);
        if (!s.duplicate || o->verbose)
            warn("%s: %s", s.duplicate ? "counted once" : "left out", said);
        free(said);
        free(raw);
    }
}

static void tell_notes(const sonde_fleet *fleet)
{
    sonde_fleet_trace t = SONDE_INIT(sonde_fleet_trace);
    sonde_error err;
    for (size_t i = 0; sonde_fleet_trace_get(fleet, i, &t, &err) == SONDE_OK; i++) {
        char *path = printable(t.path), *note = printable(t.note);
        if (*note)
            warn("%s: %s", path, note);
        free(path);
        free(note);
    }
}

int fleet_open(const common_options *o, int64_t max_memory, const list *paths, const char *output,
               sonde_fleet **fleet, size_t *left_out)
{
    sonde_fleet_options how = SONDE_INIT(sonde_fleet_options);
    sonde_context *context = reading_context(max_memory);
    sonde_error err;
    *left_out = 0;
    if (!context)
        return EXIT_ERROR;
    how.no_mmap = 1; /* workers may still be writing */
    how.output = output;
    const sonde_status st = sonde_fleet_open(context, paths->items, paths->n, &how, fleet, &err);
    sonde_context_release(context); /* the fleet keeps it */
    if (st)
        return fail("%s", err.message);
    tell_skipped(*fleet, o, left_out);
    if (!o->quiet)
        tell_notes(*fleet);
    return EXIT_OK;
}

int fleet_end(size_t left_out)
{
    if (!left_out)
        return EXIT_OK;
    return fail("%zu file%s could not be read; the result is of the others", left_out,
                left_out == 1 ? "" : "s");
}

/* ------------------------------------------------------------------ the table */
static const char *const ways[] = {"host", "worker", "version", NULL};

bool fleet_by_named(const char *name, sonde_fleet_by *by)
{
    int k = 0;
    while (ways[k] && strcmp(ways[k], name) != 0)
        k++;
    *by = (sonde_fleet_by)k;
    return ways[k] != NULL;
}

/* "resnet 3", "host / worker": what a row is called, from malloc. */
static char *pair(const char *a, const char *b, const char *between)
{
    char *raw = text_of("%s%s%s", a, *a && *b ? between : "", b);
    char *shown = printable(*raw ? raw : "(not known)");
    free(raw);
    return shown;
}

static char *label_of(const sonde_fleet_row *r, sonde_fleet_by by)
{
    return by == SONDE_FLEET_BY_HOST     ? pair(r->host, "", "")
           : by == SONDE_FLEET_BY_WORKER ? pair(r->host, r->worker, " / ")
                                         : pair(r->model, r->version, ", version ");
}

typedef struct table {
    sonde_fleet_row *rows;
    char **labels;
    size_t n;
    int width;
} table;

static void table_free(table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->labels[i]);
    free(t->labels);
    free(t->rows);
}

/* Rows hold texts of the fleet. */
static int table_of(sonde_fleet *fleet, sonde_fleet_by by, table *t)
{
    sonde_fleet_rows *rows = NULL;
    sonde_error err;
    *t = (table){.width = 7};
    if (sonde_fleet_rows_get(fleet, by, &rows, &err))
        return fail("%s", err.message);
    t->n = sonde_fleet_rows_count(rows);
    t->rows = need(calloc(t->n + 1, sizeof *t->rows));
    t->labels = need(calloc(t->n + 1, sizeof *t->labels));
    for (size_t i = 0; i < t->n; i++) {
        t->rows[i].struct_size = sizeof t->rows[i];
        (void)sonde_fleet_rows_row(rows, i, &t->rows[i], NULL); /* there is one */
        t->labels[i] = label_of(&t->rows[i], by);
        const int width = display_width(t->labels[i]);
        t->width = width > t->width ? width : t->width;
    }
    sonde_fleet_rows_release(rows);
    return EXIT_OK;
}

static void print_time(double ns, const shown_unit *u)
{
    printf("  %9.*f", u->decimals, ns / 1e6 / u->divisor);
}

static int print_rows(sonde_fleet *fleet, sonde_fleet_by by)
{
    table t;
    const int code = table_of(fleet, by, &t);
    if (code)
        return code;
    double longest = 0;
    bool incomplete = false, dropped = false;
    for (size_t i = 0; i < t.n; i++) {
        longest = fmax(longest, t.rows[i].p50_ns);
        incomplete |= t.rows[i].incomplete != 0;
        dropped |= t.rows[i].dropped != 0;
    }
    const shown_unit u = unit_of_ms(longest / 1e6);
    const int pad = u.divisor == 1e-3; /* µ takes two bytes */
    t.width = column_width(t.width, 86);
    char *title = text_of("p50 (%s)", u.name);
    char *first = cell(ways[by], t.width);
    printf("%s  %6s  %9s  %9s  %*s  %9s  %9s  %13s  %6s%s%s\n", first, "traces", "runs", "runs/s",
           9 + pad, title, "p95", "p99", "operators (s)", "share", incomplete ? "  cut" : "",
           dropped ? "  dropped" : "");
    free(first);
    free(title);
    for (size_t i = 0; i < t.n; i++) {
        const sonde_fleet_row *r = &t.rows[i];
        char *name = cell(t.labels[i], t.width);
        printf("%s  %6llu  %9llu  %9.1f", name, (unsigned long long)r->traces,
               (unsigned long long)r->runs, r->runs_per_s);
        print_time(r->p50_ns, &u);
        print_time(r->p95_ns, &u);
        print_time(r->p99_ns, &u);
        printf("  %13.6f  %4.1f %%", (double)r->operator_ns / 1e9, r->share * 100);
        if (incomplete)
            printf("  %3llu", (unsigned long long)r->incomplete);
        if (dropped)
            printf("  %7llu", (unsigned long long)r->dropped);
        printf("\n");
        free(name);
    }
    table_free(&t);
    return EXIT_OK;
}

/* ------------------------------------------------------------------ stragglers */
static void print_straggler(const sonde_straggler *s)
{
    char *who = pair(s->host, s->worker, " / "), *what = pair(s->model, s->version, ", version ");
    char *op = printable(s->op);
    printf("%s is a straggler: median %s, usual %s (%.2f times; %zu workers run %s)", who,
           time_text(s->p50_ns / 1e6), time_text(s->usual_ns / 1e6), s->p50_ns / s->usual_ns,
           s->peers, what);
    if (*op)
        printf("; mostly %s: %s per run, usual %s", op, time_text(s->op_ns / 1e6),
               time_text(s->op_usual_ns / 1e6));
    printf("\n");
    free(who);
    free(what);
    free(op);
}

static int print_stragglers(sonde_fleet *fleet)
{
    size_t n, uncompared;
    sonde_error err;
    sonde_straggler s = SONDE_INIT(sonde_straggler);
    if (sonde_fleet_straggler_count(fleet, &n, &uncompared, &err))
        return fail("%s", err.message);
    printf("\n");
    for (size_t i = 0; i < n; i++) {
        if (sonde_fleet_straggler_get(fleet, i, &s, &err))
            return fail("%s", err.message);
        print_straggler(&s);
    }
    if (!n)
        printf("no stragglers\n");
    if (uncompared)
        printf(
            "not compared: %zu worker%s with fewer than 5 runs, or with fewer than 2 others that "
            "run the same model\n",
            uncompared, uncompared == 1 ? "" : "s");
    return EXIT_OK;
}

int fleet_print(sonde_fleet *fleet, sonde_fleet_by by)
{
    const int code = print_rows(fleet, by);
    return code ? code : print_stragglers(fleet);
}

/* ------------------------------------------------------------------ JSON */
static void add_text(text *t, const char *key, const char *value)
{
    text_add(t, ", \"%s\": ", key);
    text_json(t, value);
}

static void add_number(text *t, const char *key, double v)
{
    text_add(t, ", \"%s\": %.9g", key, isfinite(v) ? v : 0);
}

static void add_count(text *t, const char *key, uint64_t v)
{
    text_add(t, ", \"%s\": %llu", key, (unsigned long long)v);
}

static int add_rows(text *t, sonde_fleet *fleet, sonde_fleet_by by)
{
    table rows;
    const int code = table_of(fleet, by, &rows);
    if (code)
        return code;
    text_add(t, ",\n \"%ss\": [", ways[by]);
    for (size_t i = 0; i < rows.n; i++) {
        const sonde_fleet_row *r = &rows.rows[i];
        text_add(t, "%s\n  {\"host\": ", i ? "," : "");
        text_json(t, r->host);
        add_text(t, "worker", r->worker);
        add_text(t, "model", r->model);
        add_text(t, "version", r->version);
        add_count(t, "traces", r->traces);
        add_count(t, "incomplete", r->incomplete);
        add_count(t, "runs", r->runs);
        add_count(t, "warmups", r->warmups);
        add_count(t, "dropped", r->dropped);
        add_count(t, "operators", r->operators);
        add_count(t, "operator_ns", r->operator_ns);
        add_number(t, "runs_per_s", r->runs_per_s);
        add_number(t, "share", r->share);
        add_number(t, "mean_ns", r->mean_ns);
        add_number(t, "min_ns", r->min_ns);
        add_number(t, "p50_ns", r->p50_ns);
        add_number(t, "p95_ns", r->p95_ns);
        add_number(t, "p99_ns", r->p99_ns);
        add_number(t, "max_ns", r->max_ns);
        text_add(t, "}");
    }
    text_add(t, "]");
    table_free(&rows);
    return EXIT_OK;
}

static int add_stragglers(text *t, sonde_fleet *fleet)
{
    size_t n, uncompared;
    sonde_error err;
    sonde_straggler s = SONDE_INIT(sonde_straggler);
    if (sonde_fleet_straggler_count(fleet, &n, &uncompared, &err))
        return fail("%s", err.message);
    text_add(t, ",\n \"not_compared\": %zu,\n \"stragglers\": [", uncompared);
    for (size_t i = 0; i < n; i++) {
        if (sonde_fleet_straggler_get(fleet, i, &s, &err))
            return fail("%s", err.message);
        text_add(t, "%s\n  {\"host\": ", i ? "," : "");
        text_json(t, s.host);
        add_text(t, "worker", s.worker);
        add_text(t, "model", s.model);
        add_text(t, "version", s.version);
        add_number(t, "p50_ns", s.p50_ns);
        add_number(t, "usual_ns", s.usual_ns);
        add_count(t, "peers", s.peers);
        add_text(t, "op", s.op);
        add_number(t, "op_ns", s.op_ns);
        add_number(t, "op_usual_ns", s.op_usual_ns);
        text_add(t, "}");
    }
    text_add(t, "]");
    return EXIT_OK;
}

static void add_clocks(text *t, const sonde_fleet *fleet)
{
    sonde_fleet_clocks c = SONDE_INIT(sonde_fleet_clocks);
    if (sonde_fleet_clocks_get(fleet, &c, NULL))
        return;
    text_add(t, ",\n \"clocks\": {\"boots\": %zu, \"loose\": %zu", c.boots, c.loose);
    if (c.error_ns)
        add_count(t, "error_ns", c.error_ns);
    else
        text_add(t, ", \"error_ns\": null");
    add_count(t, "moved_ns", c.moved_ns);
    text_add(t, "}");
}

static void add_traces(text *t, const sonde_fleet *fleet)
{
    sonde_fleet_trace s = SONDE_INIT(sonde_fleet_trace);
    sonde_fleet_skipped k = SONDE_INIT(sonde_fleet_skipped);
    text_add(t, ",\n \"files\": [");
    for (size_t i = 0; sonde_fleet_trace_get(fleet, i, &s, NULL) == SONDE_OK; i++) {
        text_add(t, "%s\n  {\"path\": ", i ? "," : "");
        text_json(t, s.path);
        add_text(t, "host", s.host);
        add_text(t, "worker", s.worker);
        add_text(t, "model", s.model);
        add_text(t, "version", s.version);
        text_add(t, ", \"pid\": %lld", (long long)s.pid);
        add_count(t, "start_unix_ns", s.start_wall_ns);
        text_add(t, ", \"moved_ns\": %lld", (long long)s.moved_ns);
        add_text(t, "note", s.note);
        text_add(t, "}");
    }
    text_add(t, "],\n \"left_out\": [");
    bool any = false;
    for (size_t i = 0; sonde_fleet_skipped_get(fleet, i, &k, NULL) == SONDE_OK; i++) {
        text_add(t, "%s\n  {\"path\": ", any ? "," : "");
        text_json(t, k.path);
        add_text(t, "why", k.why);
        text_add(t, ", \"duplicate\": %s}", k.duplicate ? "true" : "false");
        any = true;
    }
    text_add(t, "]");
}

int fleet_save_json(sonde_fleet *fleet, const char *path)
{
    text t = {.n = 0};
    text_add(&t, "{\"schema\": \"sonde.fleet/1\"");
    add_clocks(&t, fleet);
    int code = EXIT_OK;
    for (int by = 0; ways[by] && !code; by++)
        code = add_rows(&t, fleet, (sonde_fleet_by)by);
    if (!code)
        code = add_stragglers(&t, fleet);
    add_traces(&t, fleet);
    text_add(&t, "}\n");
    if (!code)
        code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}
