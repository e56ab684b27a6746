/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a file: JSON for programs, "leave_in_float" for `sonde quantize` among them, and
 * CSV for spreadsheets. Figures that are not finite are null in JSON and "inf", "-inf" or empty in
 * CSV. */
#include <math.h>
#include <stdio.h>

#include "accuracy/pairs.h"
#include "base/file.h"
#include "export/writer.h"

/* ------------------------------------------------------------------ pieces */
/* Nine digits, with a point in every locale. */
static void put_real(sn_writer *w, double v)
{
    char text[48];
    (void)snprintf(text, sizeof text, "%.9g", v);
    for (char *c = text; *c; c++)
        if (!strchr("+-0123456789e", *c))
            *c = '.';
    sn_put(w, text);
}

static void put_json_real(sn_writer *w, bool *first, const char *key, double v)
{
    sn_put_key(w, first, key);
    if (isfinite(v))
        put_real(w, v);
    else
        sn_put(w, "null");
}

static void put_json_count(sn_writer *w, bool *first, const char *key, uint64_t v)
{
    sn_put_key(w, first, key);
    sn_put_u64(w, v);
}

static void put_json_text(sn_writer *w, bool *first, const char *key, const char *v)
{
    sn_put_key(w, first, key);
    sn_put_json(w, v);
}

static void put_json_bool(sn_writer *w, bool *first, const char *key, int v)
{
    sn_put_key(w, first, key);
    sn_put(w, v ? "true" : "false");
}

/* ------------------------------------------------------------------ JSON */
static void put_error(sn_writer *w, bool *first, const sonde_accuracy_error *e)
{
    put_json_real(w, first, "max_abs", e->max_abs);
    put_json_real(w, first, "mean_abs", e->mean_abs);
    put_json_real(w, first, "rms", e->rms);
    put_json_real(w, first, "relative", e->relative);
    put_json_real(w, first, "sqnr_db", e->sqnr_db);
    put_json_real(w, first, "cosine", e->cosine);
    put_json_count(w, first, "elements", e->elements);
    put_json_count(w, first, "mismatches", e->mismatches);
    put_json_count(w, first, "nan_a", e->nan_a);
    put_json_count(w, first, "nan_b", e->nan_b);
    put_json_count(w, first, "inf_a", e->inf_a);
    put_json_count(w, first, "inf_b", e->inf_b);
    put_json_count(w, first, "not_finite", e->not_finite);
}

static void put_tensor(sn_writer *w, const sonde_accuracy_tensor *t)
{
    bool first = true;
    sn_put(w, "{");
    put_json_text(w, &first, "name", t->name);
    put_json_text(w, &first, "name_b", t->name_b);
    put_json_text(w, &first, "node", t->node);
    put_json_text(w, &first, "op", t->op_type);
    put_json_text(w, &first, "layer", t->layer);
    put_json_text(w, &first, "type_a", t->type_a);
    put_json_text(w, &first, "type_b", t->type_b);
    put_json_bool(w, &first, "output", t->output);
    put_json_bool(w, &first, "control_flow", t->control_flow);
    put_json_text(w, &first, "inside", t->inside);
    put_json_bool(w, &first, "quantized", t->quantized);
    put_json_bool(w, &first, "exact", t->exact);
    put_json_bool(w, &first, "different", t->different);
    put_json_bool(w, &first, "missing", t->missing);
    put_json_bool(w, &first, "over", t->over);
    put_json_count(w, &first, "samples", t->samples);
    put_error(w, &first, &t->error);
    put_json_real(w, &first, "added", t->added);
    put_json_real(w, &first, "at_outputs", t->at_outputs);
    sn_put_key(w, &first, "local");
    if (t->local_known) {
        bool inner = true;
        sn_put(w, "{");
        put_error(w, &inner, &t->local);
        sn_put(w, "}");
    } else {
        sn_put(w, "null");
    }
    sn_put(w, "}");
}

static void put_bound(sn_writer *w, const sonde_accuracy_bound *b)
{
    bool first = true;
    sn_put(w, "{");
    if (b->sqnr_db > 0)
        put_json_real(w, &first, "sqnr_db", b->sqnr_db);
    if (b->max_abs > 0)
        put_json_real(w, &first, "max_abs", b->max_abs);
    if (b->relative > 0)
        put_json_real(w, &first, "relative", b->relative);
    sn_put(w, "}");
}

static sonde_status put_names(sn_writer *w, const sonde_accuracy *acc, const char *key,
                              int64_t (*which)(const sonde_accuracy *, size_t), sonde_error *err)
{
    bool first = false;
    sn_put_key(w, &first, key);
    sn_put(w, "[");
    for (size_t k = 0; which(acc, k) >= 0; k++) {
        sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
        SN_TRY(sonde_accuracy_tensor_get(acc, (size_t)which(acc, k), &t, err));
        sn_put(w, k ? ", " : "");
        sn_put_json(w, t.layer);
    }
    sn_put(w, "]");
    return SONDE_OK;
}

static sonde_status put_tensor_name(sn_writer *w, const sonde_accuracy *acc, const char *key,
                                    int64_t index, sonde_error *err)
{
    bool first = false;
    sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
    sn_put_key(w, &first, key);
    if (index < 0) {
        sn_put(w, "null");
        return SONDE_OK;
    }
    SN_TRY(sonde_accuracy_tensor_get(acc, (size_t)index, &t, err));
    bool inner = true;
    sn_put(w, "{");
    put_json_text(w, &inner, "tensor", t.name);
    put_json_text(w, &inner, "node", t.node);
    put_json_text(w, &inner, "op", t.op_type);
    sn_put(w, "}");
    return SONDE_OK;
}

static sonde_status put_weights(sn_writer *w, const sonde_accuracy *acc, sonde_error *err)
{
    bool first = false;
    sn_put_key(w, &first, "weights");
    sn_put(w, "[");
    for (size_t i = 0; i < acc->n_weights; i++) {
        sonde_accuracy_weight t = SONDE_INIT(sonde_accuracy_weight);
        SN_TRY(sonde_accuracy_weight_get(acc, i, &t, err));
        bool inner = true;
        sn_put(w, i ? ",\n{" : "\n{");
        put_json_text(w, &inner, "name", t.name);
        put_json_text(w, &inner, "node", t.node);
        put_json_text(w, &inner, "op", t.op_type);
        put_json_text(w, &inner, "type", t.type);
        put_json_bool(w, &inner, "exact", t.exact);
        put_error(w, &inner, &t.error);
        sn_put(w, "}");
    }
    sn_put(w, "]");
    return SONDE_OK;
}

static sonde_status write_json(const sonde_accuracy *acc, sn_writer *w, sonde_error *err)
{
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    SN_TRY(sonde_accuracy_summary_get(acc, &s, err));
    bool first = true;
    sn_put(w, "{");
    put_json_text(w, &first, "schema", "sonde.compare/1");
    put_json_text(w, &first, "a", s.label_a);
    put_json_text(w, &first, "b", s.label_b);
    put_json_count(w, &first, "samples", s.samples);
    sn_put_key(w, &first, "bound");
    put_bound(w, &s.bound);
    put_json_count(w, &first, "shared", s.shared);
    put_json_count(w, &first, "only_a", s.only_a);
    put_json_bool(w, &first, "quantized", s.quantized);
    put_json_bool(w, &first, "complete", s.complete);
    put_json_count(w, &first, "compared", s.compared);
    put_json_bool(w, &first, "agree", s.agree);
    put_json_text(w, &first, "note", s.note);
    SN_TRY(put_tensor_name(w, acc, "first_over", s.first, err));
    SN_TRY(put_tensor_name(w, acc, "worst_output", s.worst, err));
    SN_TRY(put_names(w, acc, "worst", sonde_accuracy_worst, err));
    SN_TRY(put_names(w, acc, "leave_in_float", sonde_accuracy_leave_in_float, err));
    SN_TRY(put_weights(w, acc, err));
    sn_put_key(w, &first, "tensors");
    sn_put(w, "[");
    for (size_t i = 0; i < s.shared; i++) {
        sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
        SN_TRY(sonde_accuracy_tensor_get(acc, i, &t, err));
        sn_put(w, i ? ",\n" : "\n");
        put_tensor(w, &t);
    }
    sn_put(w, "]}\n");
    return SONDE_OK;
}

/* ------------------------------------------------------------------ CSV */
static void put_cell(sn_writer *w, const char *text)
{
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    sn_put(w, quoted ? "\"" : "");
    if (*text && strchr("=+-@\t\r", *text)) /* what a spreadsheet takes for a formula stays text */
        sn_put(w, "'");
    for (const char *s = text; *s;) {
        sn_put(w, *s == '"' ? "\"" : "");
        s += sn_put_char(w, s);
    }
    sn_put(w, quoted ? "\"" : "");
}

static void put_number(sn_writer *w, double v)
{
    sn_put(w, ",");
    if (isinf(v))
        sn_put(w, v > 0 ? "inf" : "-inf");
    else if (!isnan(v))
        put_real(w, v);
}

static void put_row(sn_writer *w, const char *kind, const sonde_accuracy_tensor *t)
{
    const char *const texts[] = {t->name, t->name_b, t->node, t->op_type, t->type_a, t->type_b};
    sn_put(w, kind);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sn_put(w, ",");
        put_cell(w, texts[i]);
    }
    const int flags[] = {t->output, t->quantized, t->different, t->over};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        sn_put(w, flags[i] ? ",1" : ",0");
    const sonde_accuracy_error *e = &t->error;
    const double unknown = NAN;
    const double numbers[] = {e->max_abs,
                              e->mean_abs,
                              e->rms,
                              e->relative,
                              e->sqnr_db,
                              e->cosine,
                              (double)e->elements,
                              (double)e->mismatches,
                              (double)e->nan_a,
                              (double)e->nan_b,
                              (double)e->inf_a,
                              (double)e->inf_b,
                              (double)e->not_finite,
                              t->added,
                              t->local_known ? t->local.sqnr_db : unknown,
                              t->local_known ? t->local.max_abs : unknown,
                              t->at_outputs};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_number(w, numbers[i]);
    sn_put(w, "\r\n");
}

static sonde_status write_csv(const sonde_accuracy *acc, sn_writer *w, sonde_error *err)
{
    sn_put(
        w,
        "kind,tensor,tensor in B,operator name,operator type,type in A,type in B,output,quantized,"
        "different,over,max abs,mean abs,rms,relative,sqnr (dB),cosine,elements,mismatches,"
        "nan in A,nan in B,inf in A,inf in B,not finite,added,local sqnr (dB),local max abs,"
        "at outputs\r\n");
    for (size_t i = 0; i < acc->n_pairs; i++) {
        sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
        SN_TRY(sonde_accuracy_tensor_get(acc, i, &t, err));
        put_row(w, "tensor", &t);
    }
    for (size_t i = 0; i < acc->n_weights; i++) {
        sonde_accuracy_weight own = SONDE_INIT(sonde_accuracy_weight);
        SN_TRY(sonde_accuracy_weight_get(acc, i, &own, err));
        const sonde_accuracy_tensor t = {.name = own.name,
                                         .name_b = own.name,
                                         .node = own.node,
                                         .op_type = own.op_type,
                                         .type_a = own.type,
                                         .type_b = own.type,
                                         .error = own.error,
                                         .added = NAN,
                                         .at_outputs = NAN};
        put_row(w, "weight", &t);
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ where to */
static bool ends_with(const char *text, const char *suffix)
{
    const size_t n = strlen(text), k = strlen(suffix);
    return n >= k && strcmp(text + n - k, suffix) == 0;
}

static sonde_status write_format(const sonde_accuracy *acc, const char *path, sn_sink *sink,
                                 sonde_error *err)
{
    if (!acc->added[0])
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "nothing was compared: pass 0 has seen no sample");
    for (size_t i = 1; i < sn_accuracy_passes(acc) && !acc->cancelled; i++)
        if (acc->added[i] != acc->added[0])
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the comparison is not complete: pass %zu has seen %llu samples, pass 0 "
                           "has seen %llu",
                           i, (unsigned long long)acc->added[i], (unsigned long long)acc->added[0]);
    sn_writer w;
    sn_writer_init(&w, sink);
    if (ends_with(path, ".json"))
        SN_TRY(write_json(acc, &w, err));
    else
        SN_TRY(write_csv(acc, &w, err));
    return sn_writer_finish(&w, err);
}

static sonde_status check_format(const char *path, sonde_error *err)
{
    return ends_with(path, ".json") || ends_with(path, ".csv")
               ? SONDE_OK
               : sn_fail(err, SONDE_INVALID_ARGUMENT,
                         "unknown format of '%.300s'; the suffix must be .json or .csv", path);
}

static bool write_file(sn_sink *sink, const void *data, size_t bytes)
{
    return sn_file_writer_put(sink->user, data, bytes);
}

sonde_status sonde_accuracy_save(const sonde_accuracy *accuracy, const char *path, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    SN_REQUIRE(path, err);
    SN_TRY(check_format(path, err));
    sn_file_writer file;
    SN_TRY(sn_file_writer_open(&file, path, SN_WRITE_WHOLE, err));
    sn_sink sink = {.write = write_file, .user = &file};
    sonde_status st = write_format(accuracy, path, &sink, err);
    if (st == SONDE_OK || file.cause) /* finishing says what became of the file */
        st = sn_file_writer_finish(&file, false, err);
    else
        sn_file_writer_abandon(&file);
    return st;
}

typedef struct receiver {
    void (*write)(void *user, const char *text, size_t size);
    void *user;
} receiver;

static bool write_pieces(sn_sink *sink, const void *data, size_t bytes)
{
    const receiver *r = sink->user;
    r->write(r->user, data, bytes);
    return true;
}

sonde_status sonde_accuracy_write(const sonde_accuracy *accuracy, const char *format,
                                  void (*write)(void *user, const char *text, size_t size),
                                  void *user, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    SN_REQUIRE(format, err);
    SN_REQUIRE(write, err);
    SN_TRY(check_format(format, err));
    receiver r = {write, user};
    sn_sink sink = {.write = write_pieces, .user = &r};
    return write_format(accuracy, format, &sink, err);
}
