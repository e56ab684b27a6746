/* SPDX-License-Identifier: Apache-2.0 */
/* One entry and all that belongs to it, read at once: afterwards the database is not needed. */
#include "history/history.h"
#include "profile/compare.h"

struct sonde_history_record {
    sonde_context *context;
    sn_arena arena;
    sonde_history_entry entry;
    SN_VEC(sonde_history_operator) operators;
    sn_history_samples samples;
    sn_history_bytes profile; /* as it is kept */
    char form[16];            /* of the profile; "": there is none */
};

/* ------------------------------------------------------------------ reading */

static sonde_status read_entry(sonde_history_record *r, sonde_history *h, int64_t id,
                               sonde_error *err)
{
    sn_sql_statement s;
    bool row = false;
    const char *text =
        sn_arena_printf(&r->arena, "%s%s WHERE e.id = ?", sn_entry_columns, sn_entry_from);
    if (!text)
        return sn_fail_memory(err, 0);
    sonde_status st = sn_sql_prepare(&s, &h->sql, text, err);
    if (st == SONDE_OK) {
        sn_sql_bind_int(&s, id);
        st = sn_sql_step(&s, &row, err);
    }
    r->entry.struct_size = sizeof r->entry;
    if (st == SONDE_OK)
        st = row ? sn_entry_read(&s, &r->arena, &r->entry, err)
                 : sn_fail(err, SONDE_NOT_FOUND, "the history '%s' has no entry #%lld", h->path,
                           (long long)id);
    sn_sql_end(&s);
    return st;
}

static sonde_status read_operators(sonde_history_record *r, sonde_history *h, sonde_error *err)
{
    sn_sql_statement s;
    bool row = true;
    sonde_status st = sn_sql_prepare(
        &s, &h->sql,
        "SELECT name, calls, mean FROM operator WHERE entry = ? ORDER BY mean DESC, name", err);
    if (st == SONDE_OK)
        sn_sql_bind_int(&s, r->entry.id);
    while (st == SONDE_OK && (st = sn_sql_step(&s, &row, err)) == SONDE_OK && row) {
        const sonde_history_operator op = {.struct_size = sizeof op,
                                           .name = sn_arena_strdup(&r->arena, sn_sql_text(&s, 0)),
                                           .calls = sn_sql_real(&s, 1),
                                           .mean_ns = sn_sql_real(&s, 2)};
        if (!op.name || !sn_vec_push(&r->operators, &r->context->alloc, op))
            st = sn_fail_memory(err, sizeof op);
    }
    sn_sql_end(&s);
    return st;
}

static sonde_status take_profile(sonde_history_record *r, const char *form, const void *data,
                                 size_t bytes, sonde_error *err)
{
    snprintf(r->form, sizeof r->form, "%s", *form ? form : "?");
    return sn_vec_append(&r->profile, &r->context->alloc, data, bytes) ? SONDE_OK
                                                                       : sn_fail_memory(err, bytes);
}

static sonde_status read_large(sonde_history_record *r, sonde_history *h, sonde_error *err)
{
    sn_sql_statement s;
    bool row = true;
    sn_allocator *alloc = &r->context->alloc;
    sonde_status st =
        sn_sql_prepare(&s, &h->sql, "SELECT what, form, content FROM large WHERE entry = ?", err);
    if (st == SONDE_OK)
        sn_sql_bind_int(&s, r->entry.id);
    while (st == SONDE_OK && (st = sn_sql_step(&s, &row, err)) == SONDE_OK && row) {
        size_t bytes;
        const void *data = sn_sql_blob(&s, 2, &bytes);
        const char *what = sn_sql_text(&s, 0);
        if (strcmp(what, "profile") == 0 && data && !*r->form)
            st = take_profile(r, sn_sql_text(&s, 1), data, bytes, err);
        else if (strcmp(what, "samples") == 0 && data && !r->samples.n)
            st = sn_history_unpack(data, bytes, alloc, &r->samples, err);
    }
    sn_sql_end(&s);
    return st;
}

sonde_status sonde_history_get(sonde_history *history, int64_t id, sonde_history_record **record,
                               sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_REQUIRE(record, err);
    *record = NULL;
    sonde_context *c = history->context;
    sonde_history_record *r = sn_alloc_zero(&c->alloc, sizeof *r);
    if (!r)
        return sn_fail_memory(err, sizeof *r);
    r->context = sn_api_context_ref(c);
    sn_arena_init(&r->arena, &c->alloc);
    sonde_status st = sn_history_enter(history, err);
    if (st == SONDE_OK) {
        st = read_entry(r, history, id, err);
        if (st == SONDE_OK)
            st = read_operators(r, history, err);
        if (st == SONDE_OK)
            st = read_large(r, history, err);
        sn_history_leave(history);
    }
    if (st)
        sonde_history_record_release(r);
    else
        *record = r;
    return st;
}

void sonde_history_record_release(sonde_history_record *record)
{
    if (!record)
        return;
    sonde_context *c = record->context;
    sn_vec_free(&record->operators, &c->alloc);
    sn_vec_free(&record->samples, &c->alloc);
    sn_vec_free(&record->profile, &c->alloc);
    sn_arena_free(&record->arena);
    sn_free(&c->alloc, record, sizeof *record);
    sonde_context_release(c);
}

/* ------------------------------------------------------------------ what is in it */

sonde_status sonde_history_record_entry(const sonde_history_record *record,
                                        sonde_history_entry *entry, sonde_error *err)
{
    SN_REQUIRE(record, err);
    SN_REQUIRE(entry, err);
    return sn_api_copy_out(entry, &record->entry, sizeof *entry, err);
}

sonde_status sonde_history_record_operator(const sonde_history_record *record, size_t index,
                                           sonde_history_operator *op, sonde_error *err)
{
    SN_REQUIRE(record, err);
    SN_REQUIRE(op, err);
    if (index >= record->operators.n)
        return SONDE_NOT_FOUND;
    return sn_api_copy_out(op, &record->operators.data[index], sizeof *op, err);
}

const double *sonde_history_record_samples(const sonde_history_record *record, size_t *count)
{
    if (count)
        *count = record ? record->samples.n : 0;
    return record ? record->samples.data : NULL;
}

sonde_status sonde_history_record_profile(const sonde_history_record *record,
                                          sonde_profile **profile, sonde_error *err)
{
    SN_REQUIRE(record, err);
    SN_REQUIRE(profile, err);
    *profile = NULL;
    if (!*record->form)
        return sn_fail(err, SONDE_NOT_FOUND, "entry #%lld has no profile",
                       (long long)record->entry.id);
    return sn_history_unpress(record->profile.data, record->profile.n, record->form,
                              record->context, profile, err);
}

/* ------------------------------------------------------------------ two of them */

static void add_word(char *text, size_t bytes, const char *what, const char *a, const char *b)
{
    const size_t n = strlen(text);
    if (strcmp(a, b) != 0)
        snprintf(text + n, bytes - n, "%s%s %.120s and %.120s", n ? ", " : "", what,
                 *a ? a : "none", *b ? b : "none");
}

const char *sonde_history_record_unlike(const sonde_history_record *a,
                                        const sonde_history_record *b, char *text, size_t bytes)
{
    if (!text || !bytes)
        return "";
    text[0] = 0;
    if (!a || !b)
        return text;
    const sonde_history_entry *x = &a->entry, *y = &b->entry;
    add_word(text, bytes, "kind", x->kind, y->kind);
    add_word(text, bytes, "runtime", x->runtime, y->runtime);
    add_word(text, bytes, "model", x->model, y->model);
    if (strcmp(x->model, y->model) == 0)
        add_word(text, bytes, "form of the model", x->model_form, y->model_form);
    add_word(text, bytes, "host", x->host, y->host);
    add_word(text, bytes, "processor", x->cpu, y->cpu);
    add_word(text, bytes, "instructions", x->cpu_level, y->cpu_level);
    const char *end = text + strlen(text);
    char *options = text + strlen(text);
    if (end != text && (size_t)(end - text) + 3 < bytes) {
        memcpy(options, ", ", 3);
        options += 2;
    }
    options[0] = 0;
    sn_history_options_differ(x->options, y->options, &a->context->alloc, options,
                              bytes - (size_t)(options - text));
    if (!*options)
        text[end - text] = 0;
    return text;
}

sonde_status sonde_history_record_compare(const sonde_history_record *before,
                                          const sonde_history_record *after, sonde_change *change,
                                          sonde_error *err)
{
    SN_REQUIRE(before, err);
    SN_REQUIRE(after, err);
    SN_REQUIRE(change, err);
    const size_t bytes = (before->samples.n + after->samples.n) * sizeof(double);
    double *room = sn_alloc(&before->context->alloc, bytes);
    sn_change c;
    if (!room)
        return sn_fail_memory(err, bytes);
    sn_compare_samples(before->samples.data, before->samples.n, after->samples.data,
                       after->samples.n, SN_COMPARE_ERROR, room, &c);
    sn_free(&before->context->alloc, room, bytes);
    const sonde_change own = {.struct_size = sizeof own,
                              .name = "total",
                              .op_type = "",
                              .node = "",
                              .old_ns = before->entry.mean_ns,
                              .new_ns = after->entry.mean_ns,
                              .old_share = 1,
                              .new_share = 1,
                              .old_calls = 1,
                              .new_calls = 1,
                              .old_median_ns = c.old_median,
                              .new_median_ns = c.new_median,
                              .ratio = c.ratio,
                              .low = c.low,
                              .high = c.high,
                              .p = c.p,
                              .verdict = (sonde_verdict)c.verdict};
    return sn_api_copy_out(change, &own, sizeof own, err);
}
