/* SPDX-License-Identifier: Apache-2.0 */
/* A result as a file. CSV is one table, so that every reader takes it: a row per scenario, then a
 * row per operator, told apart by their first column, and each leaves the other's columns empty.
 * JSON has both and the groups by shape. */
#include <math.h>

#include "base/file.h"
#include "export/writer.h"
#include "whatif/save.h"

/* ------------------------------------------------------------------ CSV */
static void put_ms(sn_writer *w, double ns)
{
    if (isfinite(ns))
        sn_put_fixed(w, ns / 1e6, 6);
}

static void put_plain(sn_writer *w, double v, int decimals)
{
    if (isfinite(v))
        sn_put_fixed(w, v, decimals);
}

/* Columns of a table row: those of operators, those of scenarios, then a time for each scenario. */
static const char *const operator_titles[] = {"operator type", "node", "input shape",
                                              "weight shape", "fastest"};
enum { OPERATOR_TITLES = sizeof operator_titles / sizeof *operator_titles };

static void put_cells(sn_writer *w, const char *const *texts, int n)
{
    for (int k = 0; k < n; k++) {
        sn_put(w, ",");
        sn_put_csv(w, texts[k]);
    }
}

static void put_empty(sn_writer *w, size_t n)
{
    for (size_t k = 0; k < n; k++)
        sn_put(w, ",");
}

static void put_scenario(sn_writer *w, const sonde_whatif_scenario *s)
{
    sn_put(w, ",");
    put_ms(w, s->total_ns);
    const double ratios[] = {s->speedup, s->low, s->high};
    for (int k = 0; k < 3; k++) {
        sn_put(w, ",");
        put_plain(w, ratios[k], 4);
    }
    const uint64_t numbers[] = {s->weight_bytes, s->peak_bytes, (uint64_t)s->changed,
                                (uint64_t)s->threads, (uint64_t)s->batch};
    for (int k = 0; k < 5; k++) {
        sn_put(w, ",");
        sn_put_u64(w, numbers[k]);
    }
    put_cells(w, &s->precision, 1);
    sn_put(w, ",");
    sn_put_u64(w, s->runs);
    const char *const texts[] = {s->measured, s->machine, s->reason};
    put_cells(w, texts, 3);
}

static void write_csv(const sonde_whatif *r, sn_writer *w)
{
    const sn_whatif_rows *rows = &r->rows[SONDE_BY_NODE];
    sn_put(w, "kind,name");
    put_cells(w, operator_titles, OPERATOR_TITLES);
    put_cells(w, sn_scenario_titles, SN_SCENARIO_TITLES);
    for (size_t i = 0; i < r->answers.n; i++) {
        put_cells(w, &r->answers.data[i].shown.name, 1);
        sn_put(w, " (ms)");
    }
    sn_put(w, "\r\n");
    for (size_t i = 0; i < r->answers.n; i++) {
        sn_put(w, "scenario");
        put_cells(w, &r->answers.data[i].shown.name, 1);
        put_empty(w, OPERATOR_TITLES);
        put_scenario(w, &r->answers.data[i].shown);
        put_empty(w, r->answers.n);
        sn_put(w, "\r\n");
    }
    for (size_t i = 0; i < rows->n; i++) {
        const sonde_whatif_row *row = &rows->data[i];
        const char *const texts[] = {
            row->name,   row->op_type, row->node,
            row->shapes, row->weight,  row->bracket ? "" : r->answers.data[row->best].shown.name};
        sn_put(w, "operator");
        put_cells(w, texts, 1 + OPERATOR_TITLES);
        put_empty(w, SN_SCENARIO_TITLES);
        for (size_t k = 0; k < r->answers.n; k++) {
            sn_put(w, ",");
            put_ms(w, row->times_ns[k]);
        }
        sn_put(w, "\r\n");
    }
}

/* ------------------------------------------------------------------ JSON */
static void put_number(sn_writer *w, const char *key, double v, int decimals)
{
    sn_put(w, ", \"");
    sn_put(w, key);
    sn_put(w, "\": ");
    sn_put_fixed(w, v, decimals); /* null where it is not finite */
}

static void put_text(sn_writer *w, const char *key, const char *text)
{
    sn_put(w, ", \"");
    sn_put(w, key);
    sn_put(w, "\": ");
    sn_put_json(w, text);
}

static void put_rows(const sonde_whatif *r, sonde_by by, sn_writer *w)
{
    const sn_whatif_rows *rows = &r->rows[by];
    for (size_t i = 0; i < rows->n; i++) {
        const sonde_whatif_row *row = &rows->data[i];
        sn_put(w, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
        sn_put_json(w, row->name);
        put_text(w, "op", row->op_type);
        put_text(w, "node", row->node);
        put_text(w, "shapes", row->shapes);
        put_text(w, "weight", row->weight);
        put_number(w, "count", (double)row->count, 0);
        sn_put(w, row->bracket ? ", \"bracket\": true" : ", \"bracket\": false");
        put_text(w, "fastest", row->bracket ? "" : r->answers.data[row->best].shown.name);
        sn_put(w, ", \"ms\": {");
        for (size_t k = 0; k < r->answers.n; k++) {
            sn_put(w, k ? ", " : "");
            sn_put_json(w, r->answers.data[k].shown.name);
            sn_put(w, ": ");
            sn_put_fixed(w, row->times_ns[k] / 1e6, 6);
        }
        sn_put(w, "}}");
    }
}

static void write_json(const sonde_whatif *r, sn_writer *w)
{
    sn_put(w, "{\"schema\": \"sonde.whatif/1\"");
    put_text(w, "model", r->model);
    put_text(w, "cpu", r->cpu);
    sn_put(w, ",\n \"scenarios\": [");
    for (size_t i = 0; i < r->answers.n; i++) {
        const sonde_whatif_scenario *s = &r->answers.data[i].shown;
        sn_put(w, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
        sn_put_json(w, s->name);
        put_text(w, "reason", s->reason);
        put_number(w, "total_ms", s->total_ns / 1e6, 6);
        put_number(w, "speedup", s->speedup, 4);
        put_number(w, "low", s->low, 4);
        put_number(w, "high", s->high, 4);
        put_number(w, "weight_bytes", (double)s->weight_bytes, 0);
        put_number(w, "peak_bytes", (double)s->peak_bytes, 0);
        put_number(w, "changed", (double)s->changed, 0);
        put_number(w, "threads", s->threads, 0);
        put_number(w, "batch", (double)s->batch, 0);
        put_text(w, "precision", s->precision);
        put_number(w, "runs", (double)s->runs, 0);
        put_text(w, "measured", s->measured);
        put_text(w, "machine", s->machine);
        sn_put(w, s->cached ? ", \"cached\": true}" : ", \"cached\": false}");
    }
    sn_put(w, "],\n \"operators\": [");
    put_rows(r, SONDE_BY_NODE, w);
    sn_put(w, "],\n \"groups\": [");
    put_rows(r, SONDE_BY_SHAPE, w);
    sn_put(w, "]}\n");
}

/* ------------------------------------------------------------------ where it goes */
static const struct format {
    const char *suffix;
    void (*write)(const sonde_whatif *r, sn_writer *w); /* NULL: a workbook */
} formats[] = {{".csv", write_csv}, {".json", write_json}, {".xlsx", NULL}};
enum { FORMATS = sizeof formats / sizeof *formats };

static const struct format *format_of(const char *path)
{
    const size_t n = strlen(path);
    for (int k = 0; k < FORMATS; k++) {
        const size_t s = strlen(formats[k].suffix);
        if (n >= s && strcmp(path + n - s, formats[k].suffix) == 0)
            return &formats[k];
    }
    return NULL;
}

static sonde_status write_to(const sonde_whatif *r, const struct format *f, sn_sink *sink,
                             sonde_error *err)
{
    sn_writer w;
    if (!f->write)
        return sn_whatif_write_xlsx(r, sink, err);
    sn_writer_init(&w, sink);
    f->write(r, &w);
    return sn_writer_finish(&w, err);
}

static sonde_status no_format(const char *path, sonde_error *err)
{
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "'%.300s': a what-if result is saved as .csv, .xlsx or .json", path);
}

static bool put_file(sn_sink *sink, const void *data, size_t bytes)
{
    return sn_file_writer_put(sink->user, data, bytes);
}

sonde_status sonde_whatif_save(const sonde_whatif *result, const char *path, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(path, err);
    const struct format *f = format_of(path);
    sn_file_writer file;
    if (!f)
        return no_format(path, err);
    SN_TRY(sn_file_writer_open(&file, path, SN_WRITE_WHOLE, err));
    sn_sink sink = {.write = put_file, .user = &file};
    const sonde_status st = write_to(result, f, &sink, err);
    if (st && !file.cause) {
        sn_file_writer_abandon(&file);
        return st;
    }
    return sn_file_writer_finish(&file, false, err); /* which says what could not be written */
}

typedef struct callback {
    void (*write)(void *user, const char *data, size_t size);
    void *user;
} callback;

static bool put_callback(sn_sink *sink, const void *data, size_t bytes)
{
    const callback *c = sink->user;
    c->write(c->user, data, bytes);
    return true;
}

sonde_status sonde_whatif_write(const sonde_whatif *result, const char *format,
                                void (*write)(void *user, const char *data, size_t size),
                                void *user, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(format, err);
    SN_REQUIRE(write, err);
    const struct format *f = format_of(format);
    callback c = {write, user};
    sn_sink sink = {.write = put_callback, .user = &c};
    return f ? write_to(result, f, &sink, err) : no_format(format, err);
}
