/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles saved, loaded, summed up and compared through the public functions. */
#include <unistd.h>

#include "api/zoo_session.h"
#include "sonde/experimental/profile.h"
#include "test.h"

enum { RUNS = 8 };

/* A profile of one warm-up and RUNS runs, saved under each path. */
static sonde_status save_runs(const char *const *paths, size_t n_paths, sonde_error *err)
{
    sonde_context *context = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_profile *profile = NULL;
    sonde_value *in[MAX_PORTS] = {0};
    size_t n = 0;
    sonde_status st = sonde_context_create(NULL, &context, err);
    st = st ? st : zoo_model(context, "tiny_mlp", &model, err);
    st = st ? st : sonde_session_create(model, NULL, &session, err);
    st = st ? st : random_inputs(context, session, 2, in, &n, err);
    st = st ? st : sonde_profiler_start(context, 2, err);
    for (int i = 0; i <= RUNS && !st; i++) {
        sonde_run_options o = SONDE_INIT(sonde_run_options);
        sonde_value *out = NULL;
        o.warmup = i == 0;
        st = sonde_session_run(session, &o, NULL, in, n, NULL, &out, 1, err);
        sonde_value_release(out);
    }
    st = st ? st : sonde_profiler_stop(context, &profile, err);
    for (size_t i = 0; i < n_paths && !st; i++)
        st = sonde_profile_save(profile, paths[i], err);
    sonde_profile_release(profile);
    release_all(in, n);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(context);
    return st;
}

/* Writers rely on them whether a profile was recorded or read. */
TEST(a_recorded_profile_keeps_the_promises_of_every_profile)
{
    static const char *const models[] = {"tiny_mlp", "tiny_loop", "tiny_if"};
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        sonde_error err = {0};
        sonde_context *context = NULL;
        sonde_context_options o = SONDE_INIT(sonde_context_options);
        sonde_model *model = NULL;
        sonde_session *session = NULL;
        sonde_profile *profile = NULL;
        sonde_value *in[MAX_PORTS] = {0};
        size_t n = 0;
        o.threads = 2;
        CHECK_OK(sonde_context_create(&o, &context, &err));
        CHECK_OK(sonde_profiler_start(context, 3, &err));
        CHECK_OK(zoo_model(context, models[k], &model, &err));
        CHECK_OK(sonde_session_create(model, NULL, &session, &err));
        CHECK_OK(random_inputs(context, session, 2, in, &n, &err));
        for (int i = 0; i < 3; i++) {
            sonde_value *out = NULL;
            CHECK_OK(sonde_session_run(session, NULL, NULL, in, n, NULL, &out, 1, &err));
            sonde_value_release(out);
        }
        CHECK_OK(sonde_profiler_stop(context, &profile, &err));
        CHECK_OK(sn_profile_check(profile->core, &err));
        CHECK(profile->core->lives.n > 0);
        sonde_profile_release(profile);
        release_all(in, n);
        sonde_session_release(session);
        sonde_model_release(model);
        sonde_context_release(context);
    }
}

TEST(a_saved_profile_is_loaded_summed_up_and_compared)
{
    sonde_error err = {0};
    char dir[] = "/tmp/sonde_saved_XXXXXX", native[64], chrome[64];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(native, sizeof native, "%s/a.pftrace", dir);
    snprintf(chrome, sizeof chrome, "%s/a.json", dir);
    CHECK_OK(save_runs((const char *[]){native, chrome}, 2, &err));
    sonde_profile *a = NULL, *b = NULL;
    CHECK_OK(sonde_profile_load(NULL, native, &a, &err));
    CHECK_OK(sonde_profile_load(NULL, chrome, &b, &err));
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary), t = s;
    CHECK_OK(sonde_profile_summary_get(a, &s, &err));
    CHECK_OK(sonde_profile_summary_get(b, &t, &err));
    CHECK_EQ(s.iterations, RUNS);
    CHECK_EQ(s.warmups, 1);
    CHECK_STR(s.model, "tiny_mlp");
    CHECK_STR(s.version, sonde_version());
    CHECK_STR(s.note, "");
    CHECK(s.ops > 0 && s.min_ns > 0 && s.min_ns <= s.p50_ns && s.p50_ns <= s.max_ns);
    /* The text of a .json rounds the recorder's cost, which is taken off every run. */
    CHECK(s.spans == t.spans && s.start_wall_ns == t.start_wall_ns);
    CHECK(fabs(s.p50_ns - t.p50_ns) < 1);

    sonde_comparison *c = NULL;
    sonde_change row = SONDE_INIT(sonde_change);
    CHECK_OK(sonde_profile_compare(a, b, SONDE_BY_NODE, &c, &err));
    sonde_profile_release(a); /* the comparison stands for itself */
    sonde_profile_release(b);
    CHECK_OK(sonde_comparison_total(c, &row, &err));
    CHECK(row.old_ns > 0 && fabs(row.ratio - 1) < 0.01);
    double sum = 0, total = row.old_ns;
    CHECK(sonde_comparison_count(c) > 2);
    for (size_t i = 0; i < sonde_comparison_count(c); i++) {
        CHECK_OK(sonde_comparison_row(c, i, &row, &err));
        CHECK(row.verdict != SONDE_NEW && row.verdict != SONDE_GONE);
        CHECK(*sonde_verdict_text(row.verdict) && *row.name);
        sum += row.old_ns;
    }
    CHECK(fabs(sum - total) < 1);
    CHECK_EQ(sonde_comparison_row(c, 1000, &row, &err), SONDE_NOT_FOUND);
    sonde_comparison_release(c);
    unlink(native);
    unlink(chrome);
    rmdir(dir);
}

TEST(what_cannot_be_loaded_or_compared_is_said)
{
    sonde_error err = {0};
    sonde_profile *p = NULL;
    sonde_comparison *c = NULL;
    sonde_profile_summary s = {0};
    CHECK_EQ(sonde_profile_load(NULL, "/nonexistent.pftrace", &p, &err), SONDE_NOT_FOUND);
    CHECK(p == NULL);
    CHECK_EQ(sonde_profile_load(NULL, NULL, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_load(NULL, "x", NULL, NULL), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_summary_get(NULL, &s, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_compare(NULL, NULL, SONDE_BY_OP, &c, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_comparison_count(NULL), 0);
    sonde_comparison_release(NULL);
    char path[] = "/tmp/sonde_saved_XXXXXX.pftrace";
    int fd = mkstemps(path, 8);
    CHECK(fd >= 0);
    close(fd);
    CHECK_OK(save_runs((const char *[]){path}, 1, &err));
    CHECK_OK(sonde_profile_load(NULL, path, &p, &err));
    CHECK_EQ(sonde_profile_summary_get(p, &s, &err), SONDE_INVALID_ARGUMENT); /* no struct_size */
    CHECK_EQ(sonde_profile_compare(p, p, (sonde_by)7, &c, &err), SONDE_INVALID_ARGUMENT);
    sonde_profile_release(p);
    CHECK(truncate(path, 5000) == 0);
    CHECK_OK(sonde_profile_load(NULL, path, &p, &err));
    s.struct_size = sizeof s;
    CHECK_OK(sonde_profile_summary_get(p, &s, &err));
    CHECK_HAS(s.note, "truncated");
    sonde_profile_release(p);
    unlink(path);
}

TEST_MAIN()
