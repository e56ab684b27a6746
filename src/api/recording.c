/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: readers of the context's recorder, each with the windows of time in which it was not
 * paused. The recorder runs at the highest level that any of them wants; what a recording did not
 * ask for is left out when its profile is made. */
#include "sonde/experimental/recording.h"
#include "api/internal.h"

struct sonde_recording {
    sonde_context *context;
    int level;
    bool paused;
    uint32_t categories;
    SN_VEC(sn_window) windows; /* in order; the last is open while it is not paused */
    sonde_recording *next;     /* of the context */
};

int sn_api_recordings_level(const sonde_context *c)
{
    int level = 0;
    for (const sonde_recording *r = c->recordings; r; r = r->next)
        if (!r->paused && r->level > level)
            level = r->level;
    return level;
}

uint64_t sn_api_recordings_since(const sonde_context *c)
{
    uint64_t since = UINT64_MAX;
    for (const sonde_recording *r = c->recordings; r; r = r->next)
        if (r->windows.n && r->windows.data[0].from < since)
            since = r->windows.data[0].from;
    return since;
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
    const sn_window w = {.from = sn_ticks(), .to = UINT64_MAX};
    if (!sn_vec_push(&r->windows, &r->context->alloc, w))
        return sn_fail_memory(err, sizeof w);
    r->paused = false;
    const sonde_status st = sn_api_set_level(r->context, err);
    if (st != SONDE_OK) {
        r->windows.n--;
        r->paused = true;
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
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a recording is kept in memory, not in '%s'",
                       o.path);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_recording *r = sn_alloc_zero(&c->alloc, sizeof *r);
    if (!r) {
        sonde_context_release(c);
        return sn_fail_memory(err, sizeof *r);
    }
    r->context = c;
    r->level = o.level;
    r->categories = categories;
    r->paused = true;
    pthread_mutex_lock(&c->lock);
    sn_api_forget(c); /* nobody wants what is older */
    r->next = c->recordings;
    c->recordings = r;
    const sonde_status st = open_window(r, err);
    pthread_mutex_unlock(&c->lock);
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
    pthread_mutex_lock(&r->context->lock);
    sonde_status st = SONDE_OK;
    if (r->paused) {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler is paused already");
    } else {
        r->paused = true;
        r->windows.data[r->windows.n - 1].to = sn_ticks();
        st = sn_api_set_level(r->context, err);
    }
    pthread_mutex_unlock(&r->context->lock);
    return st;
}

sonde_status sonde_recording_resume(sonde_recording *r, int level, sonde_error *err)
{
    SN_REQUIRE(r, err);
    if (level)
        SN_TRY(check_level(level, err));
    pthread_mutex_lock(&r->context->lock);
    sonde_status st = SONDE_OK;
    if (!r->paused) {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler is not paused");
    } else {
        const int before = r->level;
        r->level = level ? level : before;
        st = open_window(r, err);
        if (st != SONDE_OK)
            r->level = before;
    }
    pthread_mutex_unlock(&r->context->lock);
    return st;
}

sonde_status sonde_recording_clear(sonde_recording *r, sonde_error *err)
{
    SN_REQUIRE(r, err);
    sonde_context *c = r->context;
    pthread_mutex_lock(&c->lock);
    const sn_window now = {.from = sn_ticks(), .to = r->paused ? 0 : UINT64_MAX};
    r->windows.data[0] = now; /* there is one since the start */
    r->windows.n = 1;
    sonde_recording *all = c->recordings;
    if (all == r && !r->next) { /* nobody else's either */
        c->recordings = NULL;
        sn_api_forget(c);
        c->recordings = all;
    }
    pthread_mutex_unlock(&c->lock);
    return SONDE_OK;
}

sonde_status sonde_recording_get(sonde_recording *r, sonde_profile **profile, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    *profile = NULL;
    SN_REQUIRE(r, err);
    sonde_context *c = r->context;
    pthread_mutex_lock(&c->lock);
    const size_t n = r->windows.n, bytes = n * sizeof(sn_window);
    const int level = r->level;
    sn_reader reader;
    sn_window *windows = sn_alloc(&c->alloc, bytes);
    if (windows) {
        memcpy(windows, r->windows.data, bytes);
        sn_api_read_begin(c, &reader, windows[0].from);
    }
    pthread_mutex_unlock(&c->lock);
    if (!windows)
        return sn_fail_memory(err, bytes);
    sn_profile *core = NULL;
    const sonde_status st = sn_api_profile_build_within(c, windows, n, level, &core, err);
    sn_api_read_end(c, &reader);
    sn_free(&c->alloc, windows, bytes);
    SN_TRY(st);
    core->categories = r->categories;
    return sn_api_profile(c, core, profile, err);
}

void sonde_recording_release(sonde_recording *r)
{
    if (!r)
        return;
    sonde_context *c = r->context;
    pthread_mutex_lock(&c->lock);
    for (sonde_recording **at = &c->recordings; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    (void)sn_api_set_level(c, NULL); /* it can only fall */
    sn_api_forget(c);
    pthread_mutex_unlock(&c->lock);
    sn_vec_free(&r->windows, &c->alloc);
    sn_free(&c->alloc, r, sizeof *r);
    sonde_context_release(c);
}
