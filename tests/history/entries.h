/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the history share: a context of one thread, entries of made-up samples and of a
 * tiny model's profile. */
#ifndef SONDE_TESTS_HISTORY_ENTRIES_H
#define SONDE_TESTS_HISTORY_ENTRIES_H

#include "sonde/experimental/history.h"
#include "sonde/experimental/zoo.h"
#include "temp_folder.h"
#include "test.h"

#define NEED_SQLITE()                                                                              \
    do {                                                                                           \
        if (!sonde_history_available())                                                            \
            SKIP_TEST("this build has no SQLite");                                                 \
    } while (0)

static inline sonde_context *one_thread(void)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_context *c = NULL;
    sonde_error err;
    o.threads = 1;
    if (sonde_context_create(&o, &c, &err))
        abort();
    return c;
}

/* NULL: it cannot be opened; err says why. */
static inline sonde_history *open_at(const char *path, sonde_error *err)
{
    sonde_history *h = NULL;
    sonde_context *c = one_thread();
    (void)sonde_history_open(c, path, NULL, &h, err);
    sonde_context_release(c);
    return h;
}

enum { SAMPLES = 20 };

/* An entry of 20 samples around `ns`; 0 after a failure. */
static inline int64_t add_entry(sonde_history *h, const char *model, const char *options, double ns,
                                int64_t at_ms, const char *commit, sonde_error *err)
{
    double samples[SAMPLES];
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    int64_t id = 0;
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = ns + (i % 5 - 2) * ns / 1000;
    what.samples_ns = samples;
    what.sample_count = SAMPLES;
    what.model = model;
    what.options = options;
    what.commit = commit;
    what.at_ms = at_ms;
    what.host = "here";
    return sonde_history_add(h, &what, &id, err) ? 0 : id;
}

/* The profile of `runs` runs of zoo:tiny_mlp, and the model. */
static inline void make_profile(int runs, sonde_model **model, sonde_profile **profile)
{
    sonde_error err;
    sonde_context *c = one_thread();
    sonde_session *s = NULL;
    sonde_value *in = NULL;
    const int64_t dims[2] = {1, 16};
    *profile = NULL;
    CHECK_OK(sonde_zoo_build(c, "tiny_mlp", 1, model, &err));
    CHECK_OK(sonde_session_create(*model, NULL, &s, &err));
    CHECK_OK(sonde_tensor_create(c, SONDE_DTYPE_F32, dims, 2, NULL, 64, &in, &err));
    CHECK_OK(sonde_profiler_start(c, 2, &err));
    for (int i = 0; i < runs; i++) {
        sonde_value *out = NULL;
        CHECK_OK(sonde_session_run(s, NULL, NULL, &in, 1, NULL, &out, 1, &err));
        sonde_value_release(out);
    }
    CHECK_OK(sonde_profiler_stop(c, profile, &err));
    sonde_value_release(in);
    sonde_session_release(s);
    sonde_context_release(c);
}

static inline size_t count_entries(sonde_history *h, const sonde_history_filter *f)
{
    sonde_history_cursor *c = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    sonde_error err;
    size_t n = 0;
    if (sonde_history_list(h, f, &c, &err))
        return SIZE_MAX;
    while (sonde_history_next(c, &e, &err) == SONDE_OK)
        n++;
    sonde_history_cursor_release(c);
    return n;
}

#endif
