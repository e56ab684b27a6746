/* SPDX-License-Identifier: Apache-2.0 */
/* Start, stop, and what can be done with a profile. Records belong to the context's recorder, which
 * the environment may be reading too: stopping lowers the level to what others want, and forgets
 * records only when nobody else needs them. */
#include <math.h>

#include "api/internal.h"
#include "export/reports.h"
#include "sonde/experimental/recording.h"

/* What the profiler asks of the recorder now. With the lock held. */
static void observe(sonde_context *c)
{
    const int level =
        c->profiler.level > c->profiler.streamed ? c->profiler.level : c->profiler.streamed;
    c->profiler.observer.level = c->profiler.paused ? 0 : level;
    c->profiler.observer.since =
        c->profiler.level || c->profiler.kept ? c->profiler.start : SN_NO_RECORDS;
}

static sonde_status set_level(sonde_context *c, sonde_error *err)
{
    observe(c);
    return sn_records_set_level(&c->records, err);
}

/* Nobody wants what the profiler has recorded so far. */
static void forget(sonde_context *c)
{
    c->profiler.observer.since = SN_NO_RECORDS;
    sn_records_forget(&c->records);
}

static sonde_status begin_life(sonde_context *c, sonde_error *err)
{
    (void)err;
    sn_labels_init_changes(&c->profiler.labels, &c->alloc);
    observe(c);
    sn_records_add(&c->records, &c->profiler.observer);
    return SONDE_OK;
}

static void after_fork(sonde_context *c)
{
    c->profiler.stream = NULL; /* the parent's threads write the parent's traces */
    c->profiler.streamed = 0;
    observe(c);
}

static void end_life(sonde_context *c)
{
    (void)sn_stream_close(c->profiler.stream, NULL, NULL);
    c->profiler.stream = NULL;
    sn_labels_free(&c->profiler.labels);
}

const sn_context_observer sn_profiler_observer = {
    .made = begin_life, .forked = after_fork, .ending = end_life};

/* ------------------------------------------------------------------ labels */
sonde_status sn_api_put_labels(sn_labels *to, const sonde_label *list, size_t n, sonde_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!list || !list[i].key || !list[i].value)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "label %zu has no key or no value", i);
        SN_TRY(sn_labels_put(to, list[i].key, list[i].value, err));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ start, stop */
static sonde_status start(sonde_context *context, const sonde_profiler_options *o, sonde_error *err)
{
    int level = o->level;
    uint32_t categories;
    sn_observer sampling = {.level = 0};
    SN_TRY(sn_prof_cats_parse(o->categories, &categories, err));
    SN_TRY(sn_api_sampling(o, &sampling, &level, err));
    const char *path = o->path;
    if (level < 1 || level > 3)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler's level is %d, expected 1 to 3",
                       level);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    sonde_status st = SONDE_OK;
    if (c->profiler.level || c->profiler.stream) {
        st =
            sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler of this context is already running");
    } else {
        c->profiler.kept = 0;
        forget(c);
        if (sampling.sample_every)
            sn_api_watch_clock(c);
        sn_labels_free(&c->profiler.labels);
        st = sn_api_put_labels(&c->profiler.labels, o->labels, o->label_count, err);
        if (st == SONDE_OK && path)
            st = sn_stream_open(&c->profiler.stream, &c->records, path, sn_ticks(), level,
                                categories, sampling.sample_every != 0, sn_api_env()->stream_limit,
                                &c->profiler.labels, err);
    }
    if (st == SONDE_OK) {
        *(path ? &c->profiler.streamed : &c->profiler.level) = level;
        c->profiler.observer.sample_every = sampling.sample_every;
        c->profiler.observer.max_overhead = sampling.max_overhead;
        c->profiler.paused = false;
        c->profiler.start = sn_ticks();
        c->profiler.categories = categories;
        st = set_level(c, err);
        if (st != SONDE_OK) {
            c->profiler.level = c->profiler.streamed = 0;
            observe(c);
        }
    }
    pthread_mutex_unlock(&c->records.lock);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_profiler_start(sonde_context *context, int level, sonde_error *err)
{
    const sonde_profiler_options o = {.struct_size = sizeof o, .level = level};
    return start(context, &o, err);
}

sonde_status sonde_profiler_stream(sonde_context *context, int level, const char *path,
                                   sonde_error *err)
{
    SN_REQUIRE(path, err);
    const sonde_profiler_options o = {.struct_size = sizeof o, .level = level, .path = path};
    return start(context, &o, err);
}

sonde_status sonde_profiler_start_with(sonde_context *context,
                                       const sonde_profiler_options *options, sonde_error *err)
{
    sonde_profiler_options o;
    SN_OPTIONS(o, options, err);
    return start(context, &o, err);
}

sonde_status sn_api_profile(sonde_context *c, sn_profile *core, sonde_profile **profile,
                            sonde_error *err)
{
    sonde_profile *made = sn_alloc_zero(&c->alloc, sizeof *made);
    if (!made) {
        sn_profile_free(core);
        return sn_fail_memory(err, sizeof *made);
    }
    made->core = core;
    made->context = sn_api_context_ref(c);
    *profile = made;
    return SONDE_OK;
}

/* What is asked of a profile when it is made; taken with the lock held, freed without. The reader
 * wants what the profiler wanted: with level 0 it asks for no more records, but says whether these
 * were sampled. */
typedef struct wanted {
    int level;
    size_t most; /* records of a thread; 0: all */
    uint32_t categories;
    sn_labels labels;
    sn_observer reader;
} wanted;

static sonde_status want(sonde_context *c, int level, wanted *w, sonde_error *err)
{
    w->level = level;
    w->categories = c->profiler.categories;
    sn_labels_init_changes(&w->labels, &c->alloc);
    const sonde_status st = sn_labels_put_all(&w->labels, &c->profiler.labels, err);
    if (st == SONDE_OK) {
        sn_records_read_begin(&c->records, &w->reader, c->profiler.start);
        w->reader.sample_every = c->profiler.observer.sample_every;
    } else {
        sn_labels_free(&w->labels);
    }
    return st;
}

/* A public profile of what the reader wants, who is done then. */
static sonde_status make_profile(sonde_context *c, wanted *w, sonde_profile **profile,
                                 sonde_error *err)
{
    sn_profile *core = NULL;
    const sn_records_request request = {.since = w->reader.since,
                                        .level = w->level,
                                        .sampled = w->reader.sample_every != 0,
                                        .most = w->most};
    sonde_status st = sn_records_profile_of(&c->records, &request, &core, err);
    sn_records_read_end(&c->records, &w->reader);
    if (st == SONDE_OK) {
        core->categories = w->categories;
        st = sn_labels_put_all(&core->labels, &w->labels, err);
    }
    if (st == SONDE_OK)
        st = sn_api_profile(c, core, profile, err);
    else
        sn_profile_free(core);
    sn_labels_free(&w->labels);
    return st;
}

sonde_status sonde_profiler_stop(sonde_context *context, sonde_profile **profile, sonde_error *err)
{
    if (profile)
        *profile = NULL;
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    const int level = c->profiler.level;
    sn_stream *stream = c->profiler.stream;
    wanted w = {.most = 0};
    sonde_status st = SONDE_OK;
    if (!level && !stream)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler of this context is not running");
    else if (stream && profile)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT,
                     "the records were written to a file, so there is no profile in memory");
    else if (profile)
        st = want(c, level, &w, err);
    if (st == SONDE_OK) {
        c->profiler.level = c->profiler.streamed = 0;
        c->profiler.kept = profile ? 0 : level;
        c->profiler.stream = NULL;
        c->profiler.paused = false;
        (void)set_level(c, NULL); /* it can only fall */
    }
    pthread_mutex_unlock(&c->records.lock);
    if (st == SONDE_OK && profile)
        st = make_profile(c, &w, profile, err);
    else if (st == SONDE_OK && stream)
        st = sn_stream_close(stream, &c->core.log, err);
    sonde_context_release(c);
    return st;
}

static sonde_status set_paused(sonde_context *context, bool paused, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    sonde_status st = SONDE_OK;
    if (!c->profiler.level && !c->profiler.stream)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler of this context is not running");
    else if (c->profiler.paused == paused)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler is %s",
                     paused ? "paused already" : "not paused");
    if (st == SONDE_OK) {
        c->profiler.paused = paused;
        st = set_level(c, err);
    }
    pthread_mutex_unlock(&c->records.lock);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_profiler_pause(sonde_context *context, sonde_error *err)
{
    return set_paused(context, true, err);
}

sonde_status sonde_profiler_resume(sonde_context *context, sonde_error *err)
{
    return set_paused(context, false, err);
}

static sonde_status get(sonde_context *context, size_t most, sonde_profile **profile,
                        sonde_error *err)
{
    SN_REQUIRE(profile, err);
    *profile = NULL;
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    const int level = c->profiler.level ? c->profiler.level : c->profiler.kept;
    wanted w = {.most = most};
    sonde_status st =
        level ? want(c, level, &w, err)
              : sn_fail(err, SONDE_INVALID_ARGUMENT, "nothing was recorded in this context");
    pthread_mutex_unlock(&c->records.lock);
    if (st == SONDE_OK)
        st = make_profile(c, &w, profile, err);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_profiler_get(sonde_context *context, sonde_profile **profile, sonde_error *err)
{
    return get(context, 0, profile, err);
}

sonde_status sonde_profiler_get_latest(sonde_context *context, size_t records,
                                       sonde_profile **profile, sonde_error *err)
{
    return get(context, records ? records : 1, profile, err);
}

sonde_status sonde_profiler_dump(sonde_context *context, const char *path, sonde_error *err)
{
    sonde_profile *profile = NULL;
    SN_REQUIRE(path, err);
    SN_TRY(sonde_profiler_get(context, &profile, err));
    const sonde_status st = sonde_profile_save(profile, path, err);
    sonde_profile_release(profile);
    return st;
}

sonde_status sonde_profiler_clear(sonde_context *context, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    c->profiler.kept = 0;
    forget(c);
    c->profiler.start = sn_ticks(); /* what could not be forgotten lies before it */
    observe(c);
    pthread_mutex_unlock(&c->records.lock);
    sonde_context_release(c);
    return SONDE_OK;
}

void sonde_profile_release(sonde_profile *profile)
{
    if (!profile)
        return;
    sonde_context *c = profile->context;
    sn_profile_free(profile->core);
    sn_free(&c->alloc, profile, sizeof *profile);
    sonde_context_release(c);
}

/* ------------------------------------------------------------------ what to do with one */
typedef struct caller_sink {
    void (*write)(void *user, const char *text, size_t size);
    void *user;
} caller_sink;

static bool write_to_caller(sn_sink *sink, const void *data, size_t bytes)
{
    const caller_sink *to = sink->user;
    to->write(to->user, data, bytes);
    return true;
}

sonde_status sonde_profile_table(const sonde_profile *profile, const sonde_table_options *options,
                                 void (*write)(void *user, const char *text, size_t size),
                                 void *user, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(write, err);
    sonde_table_options o;
    SN_OPTIONS(o, options, err);
    const sn_table_options table = {.sort_by_name = o.sort_by_name != 0,
                                    .by_shape = o.by_shape != 0,
                                    .by_node = o.by_node != 0,
                                    .filter_op = o.filter_op,
                                    .width = o.width,
                                    .color = o.color != 0};
    caller_sink to = {.write = write, .user = user};
    sn_sink sink = {.write = write_to_caller, .user = &to};
    return sn_export_table(profile->core, &table, &sink, err);
}

sonde_status sonde_profile_report(const sonde_profile *profile, sonde_report kind,
                                  void (*write)(void *user, const char *text, size_t size),
                                  void *user, sonde_error *err)
{
    return sonde_profile_report_with(profile, kind, NULL, write, user, err);
}

sonde_status sonde_profile_report_with(const sonde_profile *profile, sonde_report kind,
                                       const sonde_report_options *options,
                                       void (*write)(void *user, const char *text, size_t size),
                                       void *user, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(write, err);
    sonde_report_options o = SONDE_INIT(sonde_report_options);
    SN_OPTIONS(o, options, err);
    caller_sink to = {.write = write, .user = user};
    sn_sink sink = {.write = write_to_caller, .user = &to};
    const sn_profile *p = profile->core;
    switch (kind) {
    case SONDE_REPORT_SUMMARY:
    case SONDE_REPORT_SUMMARY_BY_RECORD:
        return sn_report_summary(p, kind == SONDE_REPORT_SUMMARY_BY_RECORD, &sink, err);
    case SONDE_REPORT_INFERENCES:
        return sn_report_inferences(p, &sink, err);
    case SONDE_REPORT_EXECUTIONS:
        return sn_report_executions(p, &sink, err);
    case SONDE_REPORT_OPERATORS:
        return sn_report_operators(p, &sink, err);
    case SONDE_REPORT_EXTERNAL_OPERATORS:
        return sn_report_external_operators(p, &sink, err);
    case SONDE_REPORT_MEMORY:
        return sn_report_memory(p, o.width, &sink, err);
    }
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "%d is not a report", (int)kind);
}

sonde_status sonde_profile_save(const sonde_profile *profile, const char *path, sonde_error *err)
{
    return sonde_profile_save_with(profile, path, NULL, err);
}

static sonde_status check_ratio(double ratio, sonde_error *err)
{
    if (ratio >= 0 && ratio <= 1e6)
        return SONDE_OK;
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "the sparse ratio is %g, expected 0 to 1e6", ratio);
}

/* What is asked for of what there is. */
static sonde_status choose_categories(const sn_profile *p, const char *list, uint32_t *set,
                                      sonde_error *err)
{
    char text[SN_CATS_TEXT];
    SN_TRY(sn_prof_cats_parse(list, set, err));
    if (!*set || !p->categories)
        return SONDE_OK;
    *set &= p->categories;
    return *set ? SONDE_OK
                : sn_fail(err, SONDE_INVALID_ARGUMENT,
                          "the profile has no spans of category '%s', only of %s", list,
                          sn_prof_cats_text(p->categories, text));
}

/* The caller's options as ours. */
static sonde_status read_options(const sonde_profile *profile, const sonde_export_options *options,
                                 sn_export_options *own, sonde_error *err)
{
    sonde_export_options o;
    SN_OPTIONS(o, options, err);
    SN_TRY(check_ratio(o.sparse_ratio_90, err));
    SN_TRY(check_ratio(o.sparse_ratio_80, err));
    SN_TRY(check_ratio(o.sparse_ratio_70, err));
    SN_TRY(check_ratio(o.sparse_ratio_others, err));
    if (!(o.sparse_aim >= 0 && o.sparse_aim < 100))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the sparse aim is %g %%, expected less than 100", o.sparse_aim);
    for (size_t i = 0; i < o.measured_count; i++) {
        SN_REQUIRE(o.measured, err);
        SN_REQUIRE(o.measured[i].weight, err);
        SN_TRY(check_ratio(o.measured[i].ratio_90, err));
        SN_TRY(check_ratio(o.measured[i].ratio_80, err));
        SN_TRY(check_ratio(o.measured[i].ratio_70, err));
    }
    for (size_t i = 0; i < o.finding_count; i++) {
        SN_REQUIRE(o.findings, err);
        const sonde_finding *f = &o.findings[i];
        if (!f->topic || !f->finding || !f->evidence || !f->remedy || f->severity < SONDE_GOOD ||
            f->severity > SONDE_SLOW)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "finding %zu is not filled in", i);
    }
    for (size_t i = 0; i < o.scenario_count; i++) {
        SN_REQUIRE(o.scenarios, err);
        const sonde_scenario_time *s = &o.scenarios[i];
        if (!s->name || !s->note || !isfinite(s->ns) || !isfinite(s->speedup))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "scenario %zu is not filled in", i);
    }
    uint32_t categories;
    SN_TRY(choose_categories(profile->core, o.categories, &categories, err));
    *own = (sn_export_options){.ratio_90 = o.sparse_ratio_90,
                               .ratio_80 = o.sparse_ratio_80,
                               .ratio_70 = o.sparse_ratio_70,
                               .ratio_others = o.sparse_ratio_others,
                               .aim = o.sparse_aim,
                               .categories = categories,
                               .format = o.format,
                               .folded_nodes = o.folded_nodes != 0,
                               .measured = o.measured,
                               .n_measured = o.measured_count,
                               .measured_about = o.measured_about,
                               .before = o.before ? o.before->core : NULL,
                               .before_title = o.before_title ? o.before_title : "",
                               .title = o.title ? o.title : "",
                               .findings = o.findings,
                               .n_findings = o.finding_count,
                               .scenarios = o.scenarios,
                               .n_scenarios = o.scenario_count,
                               .live = o.live != 0,
                               .limit = o.trace_limit < 0 ? 0
                                        : o.trace_limit   ? (uint64_t)o.trace_limit
                                                          : SN_TRACE_LIMIT,
                               .log = &profile->context->core.log};
    return SONDE_OK;
}

sonde_status sonde_profile_save_with(const sonde_profile *profile, const char *path,
                                     const sonde_export_options *options, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(path, err);
    if (strcmp(path, "-") == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "'-' is not a path a profile can be saved to");
    sn_export_options own;
    SN_TRY(read_options(profile, options, &own, err));
    return sn_export_file_with(profile->core, path, &own, err);
}

sonde_status sonde_profile_write(const sonde_profile *profile, const sonde_export_options *options,
                                 void (*write)(void *user, const char *data, size_t size),
                                 void *user, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(write, err);
    sn_export_options own;
    SN_TRY(read_options(profile, options, &own, err));
    caller_sink to = {.write = write, .user = user};
    sn_sink sink = {.write = write_to_caller, .user = &to};
    return sn_export_sink(profile->core, &own, &sink, err);
}
