/* SPDX-License-Identifier: Apache-2.0 */
/* Adding an entry. All that takes time, compressing above all, is done before the transaction
 * begins, so that writers wait for each other as shortly as can be. */
#include "history/history.h"

typedef struct addition {
    sonde_history *history;
    sonde_history_new what; /* of ours: all that may be NULL is filled in */
    sn_arena arena;
    const char *host, *cpu, *level, *options;
    int cores;
    sn_history_figures figures;
    double *samples; /* in their order */
    size_t n_samples;
    sn_history_bytes packed, profile;
    size_t kept;      /* samples that are packed */
    const char *form; /* of the profile */
    sn_prof_summary summary;
    bool summarised;
    sonde_model_hashes hashes;
    char commit[72], host_name[256];
} addition;

/* ------------------------------------------------------------------ what is to be written */

static sn_allocator *alloc_of(const addition *a)
{
    return &a->history->context->alloc;
}

static sonde_status take_samples(addition *a, sonde_error *err)
{
    const sonde_history_new *w = &a->what;
    sn_prof_runs runs = {.alloc = alloc_of(a)};
    if (!w->sample_count)
        SN_TRY(sn_profile_runs(w->profile->core, &runs, err));
    a->n_samples = w->sample_count ? w->sample_count : runs.all.n;
    size_t bytes = 0;
    a->samples =
        sn_size_mul(a->n_samples, sizeof *a->samples, &bytes) ? sn_alloc(alloc_of(a), bytes) : NULL;
    for (size_t i = 0; a->samples && i < a->n_samples; i++)
        a->samples[i] = w->sample_count ? w->samples_ns[i] : runs.all.data[i].wall_ns;
    if (!w->sample_count)
        sn_prof_runs_free(&runs);
    if (!a->samples)
        return sn_fail_memory(err, bytes);
    for (size_t i = 0; i < a->n_samples; i++)
        if (!(a->samples[i] >= 0 && a->samples[i] <= (double)SN_PROF_MAX_NS))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "sample %zu of an entry is %g; latencies are nanoseconds, from 0 on", i,
                           a->samples[i]);
    return a->n_samples ? SONDE_OK
                        : sn_fail(err, SONDE_INVALID_ARGUMENT,
                                  "an entry of the history needs measured runs, and there is none");
}

static sonde_status take_figures(addition *a, sonde_error *err)
{
    SN_TRY(take_samples(a, err));
    SN_TRY(sn_history_pack(a->samples, a->n_samples, alloc_of(a), &a->packed, &a->kept, err));
    sn_history_figures_of(a->samples, a->n_samples, &a->figures);
    if (!a->what.profile)
        return SONDE_OK;
    const sn_profile *p = a->what.profile->core;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &a->summary, err));
    a->summarised = true;
    return sn_history_press(p, &a->profile, &a->form, err);
}

static void take_machine(addition *a)
{
    const sn_profile *p = a->what.profile ? a->what.profile->core : NULL;
    const sn_cpu *cpu = &a->history->context->core.cpu;
    if (a->what.host) {
        a->host = a->what.host;
    } else {
        sn_history_host(a->host_name, sizeof a->host_name);
        a->host = a->host_name;
    }
    a->cpu = p ? p->cpu_model : cpu->model;
    a->level = p ? p->cpu_level : sn_cpu_level_name(cpu->flags);
    a->cores = p ? p->cores : cpu->cores;
}

static sonde_status take_model(addition *a, sonde_error *err)
{
    sonde_history_new *w = &a->what;
    a->hashes.struct_size = sizeof a->hashes;
    if (w->source) {
        SN_TRY(sonde_model_hashes_get(w->source, &a->hashes, err));
        w->model_hash = a->hashes.content;
        w->model_form = a->hashes.form;
    }
    if (!w->model)
        w->model = w->profile ? w->profile->core->model_name : w->source ? w->source->name : "";
    return SONDE_OK;
}

static sonde_status take(addition *a, sonde_error *err)
{
    sonde_history_new *w = &a->what;
    const sn_profile *p = w->profile ? w->profile->core : NULL;
    if (!p && (!w->samples_ns || !w->sample_count))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "an entry of the history needs a profile or samples");
    if (!w->samples_ns)
        w->sample_count = 0;
    take_machine(a);
    SN_TRY(sn_history_options(w->options, p ? p->threads : 0, p ? p->precision : NULL, &a->arena,
                              &a->options, err));
    SN_TRY(take_figures(a, err));
    SN_TRY(take_model(a, err));
    if (!w->kind)
        w->kind = p ? "profile" : "bench";
    if (!w->runtime)
        w->runtime = "sonde";
    if (!w->version)
        w->version = p ? p->version : sonde_version();
    if (!w->commit)
        w->commit = sonde_commit_find(NULL, a->commit, sizeof a->commit);
    if (!w->peak_bytes && p)
        w->peak_bytes = p->memory.rss_peak;
    if (!w->at_ms)
        w->at_ms = (int64_t)((p && p->start_wall_ns ? p->start_wall_ns : sn_wall_ns()) / 1000000);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ writing it */

/* The number of the row with these texts (and perhaps whole numbers) in a small table. */
static sonde_status row_of(sn_sql *sql, const char *insert, const char *find,
                           const char *const *texts, size_t n_texts, const int64_t *numbers,
                           size_t n_numbers, int64_t *id, sonde_error *err)
{
    bool row = true;
    for (int k = 0; k < 2; k++) { /* put there what is not, then look */
        sn_sql_statement s;
        sonde_status st = sn_sql_prepare(&s, sql, k ? find : insert, err);
        for (size_t i = 0; i < n_texts && st == SONDE_OK; i++)
            sn_sql_bind_text(&s, texts[i]);
        for (size_t i = 0; i < n_numbers && st == SONDE_OK; i++)
            sn_sql_bind_int(&s, numbers[i]);
        if (st == SONDE_OK)
            st = sn_sql_step(&s, &row, err);
        *id = st == SONDE_OK && k && row ? sn_sql_int(&s, 0) : 0;
        sn_sql_end(&s);
        SN_TRY(st);
    }
    return *id > 0 ? SONDE_OK
                   : sn_fail(err, SONDE_INVALID_FORMAT, "the history '%s' is damaged", sql->path);
}

static sonde_status write_series(const addition *a, int64_t *series, sonde_error *err)
{
    sn_sql *sql = &a->history->sql;
    const sonde_history_new *w = &a->what;
    int64_t machine, setting;
    const char *const machine_texts[] = {a->host, a->cpu, a->level};
    const int64_t cores = a->cores;
    SN_TRY(row_of(sql,
                  "INSERT OR IGNORE INTO machine (host, cpu, level, cores) VALUES (?, ?, ?, ?)",
                  "SELECT id FROM machine WHERE host = ? AND cpu = ? AND level = ? AND cores = ?",
                  machine_texts, 3, &cores, 1, &machine, err));
    SN_TRY(row_of(sql, "INSERT OR IGNORE INTO setting (options) VALUES (?)",
                  "SELECT id FROM setting WHERE options = ?", &a->options, 1, NULL, 0, &setting,
                  err));
    const char *const texts[] = {w->model, w->model_form, w->kind, w->runtime};
    const int64_t numbers[] = {machine, setting};
    return row_of(sql,
                  "INSERT OR IGNORE INTO series (model, form, kind, runtime, machine, setting)"
                  " VALUES (?, ?, ?, ?, ?, ?)",
                  "SELECT id FROM series WHERE model = ? AND form = ? AND kind = ? AND runtime = ?"
                  " AND machine = ? AND setting = ?",
                  texts, 4, numbers, 2, series, err);
}

static sonde_status write_entry(const addition *a, int64_t series, int64_t *id, sonde_error *err)
{
    sn_sql_statement s;
    const sonde_history_new *w = &a->what;
    const sn_prof_stats *f = &a->figures.stats;
    sonde_status st = sn_sql_prepare(
        &s, &a->history->sql,
        "INSERT INTO entry (at, series, hash, version, code, note, runs, median, low, high, mean,"
        " stddev, least, most, p95, p99, peak, samples, profile)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err);
    if (st == SONDE_OK) {
        const char *const texts[] = {w->model_hash, w->version, w->commit, w->note};
        const double reals[] = {f->p50, a->figures.low, a->figures.high, f->mean, f->stddev,
                                f->min, f->max,         f->p95,          f->p99};
        sn_sql_bind_int(&s, w->at_ms);
        sn_sql_bind_int(&s, series);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            sn_sql_bind_text(&s, texts[i]);
        sn_sql_bind_int(&s, (int64_t)a->n_samples);
        for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
            sn_sql_bind_real(&s, reals[i]);
        sn_sql_bind_int(&s, w->peak_bytes < INT64_MAX ? (int64_t)w->peak_bytes : 0);
        sn_sql_bind_int(&s, (int64_t)a->kept);
        sn_sql_bind_int(&s, (int64_t)a->profile.n);
        st = sn_sql_do(&s, err);
        *id = sn_sql_last_id(&a->history->sql);
    }
    sn_sql_end(&s);
    return st;
}

static sonde_status write_operators(const addition *a, int64_t id, sonde_error *err)
{
    sn_sql_statement s;
    sonde_status st = sn_sql_prepare(
        &s, &a->history->sql,
        "INSERT OR IGNORE INTO operator (entry, name, calls, mean) VALUES (?, ?, ?, ?)", err);
    for (size_t i = 0; a->summarised && i < a->summary.rows.n && st == SONDE_OK; i++) {
        const sn_prof_row *r = &a->summary.rows.data[i];
        sn_sql_bind_int(&s, id);
        sn_sql_bind_text(&s, r->name);
        sn_sql_bind_real(&s, r->calls);
        sn_sql_bind_real(&s, r->mean_ns);
        st = sn_sql_do(&s, err);
    }
    sn_sql_end(&s);
    return st;
}

static sonde_status write_large(const addition *a, int64_t id, sonde_error *err)
{
    const struct {
        const char *what, *form;
        const sn_history_bytes *bytes;
    } parts[] = {{"samples", "differences", &a->packed}, {"profile", a->form, &a->profile}};
    sn_sql_statement s;
    sonde_status st =
        sn_sql_prepare(&s, &a->history->sql,
                       "INSERT INTO large (entry, what, form, content) VALUES (?, ?, ?, ?)", err);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && st == SONDE_OK; i++) {
        if (!parts[i].bytes->n)
            continue;
        sn_sql_bind_int(&s, id);
        sn_sql_bind_text(&s, parts[i].what);
        sn_sql_bind_text(&s, parts[i].form);
        sn_sql_bind_blob(&s, parts[i].bytes->data, parts[i].bytes->n);
        st = sn_sql_do(&s, err);
    }
    sn_sql_end(&s);
    return st;
}

static sonde_status write_all(const addition *a, int64_t *id, sonde_error *err)
{
    int64_t series;
    sn_sql *sql = &a->history->sql;
    SN_TRY(sn_sql_begin(sql, err));
    sonde_status st = write_series(a, &series, err);
    if (st == SONDE_OK)
        st = write_entry(a, series, id, err);
    if (st == SONDE_OK)
        st = write_operators(a, *id, err);
    if (st == SONDE_OK)
        st = write_large(a, *id, err);
    if (st) {
        sn_sql_undo(sql);
        return st;
    }
    return sn_sql_commit(sql, err);
}

static void free_addition(addition *a)
{
    sn_allocator *alloc = alloc_of(a);
    sn_free(alloc, a->samples, a->n_samples * sizeof *a->samples);
    sn_vec_free(&a->packed, alloc);
    if (a->what.profile)
        sn_vec_free(&a->profile, a->what.profile->core->alloc);
    if (a->summarised)
        sn_prof_summary_free(&a->summary);
    sn_arena_free(&a->arena);
}

sonde_status sonde_history_add(sonde_history *history, const sonde_history_new *what, int64_t *id,
                               sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_REQUIRE(what, err);
    addition a = {.history = history};
    SN_OPTIONS(a.what, what, err);
    if (history->read_only)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the history '%s' was opened to be read only",
                       history->path);
    sn_arena_init(&a.arena, &history->context->alloc);
    int64_t made = 0;
    sonde_status st = take(&a, err);
    if (st == SONDE_OK)
        st = sn_history_enter(history, err);
    if (st == SONDE_OK) {
        st = write_all(&a, &made, err);
        sn_history_leave(history);
    }
    free_addition(&a);
    if (st == SONDE_OK && id)
        *id = made;
    return st;
}
