/* SPDX-License-Identifier: Apache-2.0 */
/* Start, stop, and what can be done with a profile. Records belong to the context's recorder, which
 * the environment may be reading too: stopping lowers the level to what others want, and forgets
 * records only when nobody else needs them. */
#include "api/internal.h"

sonde_status sonde_profiler_start(sonde_context *context, int level, sonde_error *err)
{
    if (level < 1 || level > 3)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler's level is %d, expected 1 to 3",
                       level);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->lock);
    sonde_status st = SONDE_OK;
    if (c->api_level) {
        st =
            sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler of this context is already running");
    } else {
        sn_api_forget(c);
        c->api_level = level;
        c->api_start = sn_ticks();
        st = sn_api_set_level(c, err);
        if (st != SONDE_OK)
            c->api_level = 0;
    }
    pthread_mutex_unlock(&c->lock);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_profiler_stop(sonde_context *context, sonde_profile **profile, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    *profile = NULL;
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->lock);
    const int level = c->api_level;
    sonde_status st = SONDE_OK;
    if (!level)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler of this context is not running");
    c->api_level = 0;
    if (st == SONDE_OK)
        st = sn_api_set_level(c, err);
    pthread_mutex_unlock(&c->lock);

    sonde_profile *made = NULL;
    if (st == SONDE_OK) {
        made = sn_alloc_zero(&c->alloc, sizeof *made);
        st = made ? sn_api_profile_build(c, c->api_start, 0, level, &made->core, err)
                  : sn_fail_memory(err, sizeof *made);
    }
    if (level) {
        pthread_mutex_lock(&c->lock);
        sn_api_forget(c);
        pthread_mutex_unlock(&c->lock);
    }
    if (st != SONDE_OK) {
        sn_free(&c->alloc, made, sizeof *made);
        sonde_context_release(c);
        return st;
    }
    made->context = c; /* the reference goes along */
    *profile = made;
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

sonde_status sonde_profile_save(const sonde_profile *profile, const char *path, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(path, err);
    if (strcmp(path, "-") == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "'-' is not a path a profile can be saved to");
    return sn_export_file(profile->core, path, err);
}
