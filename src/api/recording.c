/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: readers of the context's recorder, each with the windows of time in which it was not
 * paused. The recorder runs at the highest level that any of them wants; what a recording did not
 * ask for is left out when its profile is made. */
#include "sonde/experimental/recording.h"
#include "api/internal.h"

struct sonde_recording {
    sonde_context *context;
    sn_observer observer;
    int level;
    bool paused;
    uint32_t categories;
    sn_labels labels;
    SN_VEC(sn_time_window) windows; /* in order; the last is open while it is not paused */
};

/* What a recording asks of the recorder now. With the lock held. */
static void observe(sonde_recording *r)
{
    r->observer.level = r->paused ? 0 : r->level;
    if (r->observer.level && r->observer.sample_every)
        r->observer.level = 1;
    r->observer.since = r->windows.n ? r->windows.data[0].from : SN_NO_RECORDS;
}

static sonde_status set_level(sonde_recording *r, sonde_error *err)
{
    observe(r);
    return sn_records_set_level(&r->context->records, err);
}

static sonde_status check_level(int level, sonde_error *err)
{
    if (level >= 1 && level <= 3)
        return SONDE_OK;
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler's level is %d, expected 1 to 3",
                   level);
}

/* With the context's lock held. */
static sonde_status open_window(sonde_recording *r, sonde_error *err)
{
    const sn_time_window w = {.from = sn_ticks(), .to = UINT64_MAX};
    if (!sn_vec_push(&r->windows, &r->context->alloc, w))
        return sn_fail_memory(err, sizeof w);
    r->paused = false;
    const sonde_status st = set_level(r, err);
    if (st != SONDE_OK) {
        r->windows.n--;
        r->paused = true;
        observe(r);
    }
    return st;
}

sonde_status sonde_recording_start(sonde_context *context, const sonde_profiler_options *options,
                                   sonde_recording **recording, sonde_error *err)
{
    SN_REQUIRE(recording, err);
    *recording = NULL;
    sonde_profiler_options o;
    uint32_t categories;
    SN_OPTIONS(o, options, err);
    SN_TRY(check_level(o.level, err));
    SN_TRY(sn_prof_cats_parse(o.categories, &categories, err));
    if (o.path)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a recording is kept in memory; it cannot be written to '%s' while it runs",
                       o.path);
    sn_observer observer = {.level = 0};
    SN_TRY(sn_api_sampling(&o, &observer, &o.level, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_recording *r = sn_alloc_zero(&c->alloc, sizeof *r);
    if (!r) {
        sonde_context_release(c);
        return sn_fail_memory(err, sizeof *r);
    }
    r->context = c;
    r->observer = observer;
    sn_labels_init_changes(&r->labels, &c->alloc);
    r->level = o.level;
    r->categories = categories;
    r->paused = true;
    pthread_mutex_lock(&c->records.lock);
    if (observer.sample_every)
        sn_api_watch_clock(c);
    sn_records_forget(&c->records); /* nobody wants what is older */
    observe(r);
    sn_records_add(&c->records, &r->observer);
    sonde_status st = open_window(r, err);
    pthread_mutex_unlock(&c->records.lock);
    if (st == SONDE_OK)
        st = sn_api_put_labels(&r->labels, o.labels, o.label_count, err);
    if (st != SONDE_OK) {
        sonde_recording_release(r);
        return st;
    }
    *recording = r;
    return SONDE_OK;
}

sonde_status sonde_recording_pause(sonde_recording *r, sonde_error *err)
{
    SN_REQUIRE(r, err);
    pthread_mutex_lock(&r->context->records.lock);
    sonde_status st = SONDE_OK;
    if (r->paused) {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler is already paused");
    } else {
        r->paused = true;
        r->windows.data[r->windows.n - 1].to = sn_ticks();
        st = set_level(r, err);
    }
    pthread_mutex_unlock(&r->context->records.lock);
    return st;
}

sonde_status sonde_recording_resume(sonde_recording *r, int level, sonde_error *err)
{
    SN_REQUIRE(r, err);
    if (level)
        SN_TRY(check_level(level, err));
    pthread_mutex_lock(&r->context->records.lock);
    sonde_status st = SONDE_OK;
    if (!r->paused) {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler is not paused");
    } else {
        const int before = r->level;
        r->level = level ? level : before;
        st = open_window(r, err);
        if (st != SONDE_OK) {
            r->level = before;
            observe(r);
        }
    }
    pthread_mutex_unlock(&r->context->records.lock);
    return st;
}

sonde_status sonde_recording_clear(sonde_recording *r, sonde_error *err)
{
    SN_REQUIRE(r, err);
    sonde_context *c = r->context;
    pthread_mutex_lock(&c->records.lock);
    const sn_time_window now = {.from = sn_ticks(), .to = r->paused ? 0 : UINT64_MAX};
    r->windows.data[0] = now; /* there is one since the start */
    r->windows.n = 1;
    r->observer.since = SN_NO_RECORDS;
    sn_records_forget(&c->records);
    observe(r);
    pthread_mutex_unlock(&c->records.lock);
    return SONDE_OK;
}

sonde_status sonde_recording_get(sonde_recording *r, sonde_profile **profile, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    *profile = NULL;
    SN_REQUIRE(r, err);
    sonde_context *c = r->context;
    pthread_mutex_lock(&c->records.lock);
    const size_t n = r->windows.n, bytes = n * sizeof(sn_time_window);
    const int level = r->level;
    const bool sampled = r->observer.sample_every != 0;
    sn_observer reader;
    sn_time_window *windows = sn_alloc(&c->alloc, bytes);
    if (windows) {
        memcpy(windows, r->windows.data, bytes);
        sn_records_read_begin(&c->records, &reader, windows[0].from);
    }
    pthread_mutex_unlock(&c->records.lock);
    if (!windows)
        return sn_fail_memory(err, bytes);
    sn_profile *core = NULL;
    const sn_records_request request = {.since = windows[0].from,
                                        .level = level,
                                        .windows = windows,
                                        .n_windows = n,
                                        .sampled = sampled};
    sonde_status st = sn_records_profile_of(&c->records, &request, &core, err);
    sn_records_read_end(&c->records, &reader);
    sn_free(&c->alloc, windows, bytes);
    SN_TRY(st);
    core->categories = r->categories;
    st = sn_labels_put_all(&core->labels, &r->labels, err);
    if (st != SONDE_OK) {
        sn_profile_free(core);
        return st;
    }
    return sn_api_profile(c, core, profile, err);
}

void sonde_recording_release(sonde_recording *r)
{
    if (!r)
        return;
    sonde_context *c = r->context;
    pthread_mutex_lock(&c->records.lock);
    sn_records_remove(&c->records, &r->observer);
    (void)sn_records_set_level(&c->records, NULL); /* it can only fall */
    sn_records_forget(&c->records);
    pthread_mutex_unlock(&c->records.lock);
    sn_vec_free(&r->windows, &c->alloc);
    sn_labels_free(&r->labels);
    sn_free(&c->alloc, r, sizeof *r);
    sonde_context_release(c);
}
