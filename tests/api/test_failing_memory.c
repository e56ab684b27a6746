/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of load, bind and run is made to fail once: the call must say so, leave nothing
 * behind and not crash. Memory comes from the context's allocator, which counts down. */
#include "counting_alloc.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/metrics.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"
#include "zoo_session.h"

/* Loads from bytes, makes a session, runs it once; with `profile` under the recorder, with `tune`
 * (a folder) tuned. */
static sonde_status whole_life(counting *count, const void *bytes, size_t size, bool profile,
                               const char *tune, sonde_error *err)
{
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.tune = tune;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    counting_options(&o, count);
    sonde_context *ctx = NULL;
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    sonde_profile *recorded = NULL, *alone = NULL;
    sonde_run_options ro = SONDE_INIT(sonde_run_options);
    sonde_recording *recording = NULL;
    sonde_profile_spans *spans = NULL;
    sonde_findings *found = NULL;
    sonde_inspection *look = NULL;
    sonde_value *in[MAX_PORTS] = {0}, *out[MAX_PORTS] = {0};
    size_t n_in = 0, n_out = 0;
    sonde_status st = sonde_context_create(&o, &ctx, err);
    if (!st)
        st = sonde_model_load_memory(ctx, bytes, size, NULL, &model, err);
    if (!st)
        st = sonde_session_create(model, &so, &s, err);
    if (!st)
        st = random_inputs(ctx, s, 1, in, &n_in, err);
    sonde_profiler_options how = SONDE_INIT(sonde_profiler_options);
    how.level = 2;
    if (!st && profile)
        st = sonde_recording_start(ctx, &how, &recording, err);
    if (!st && profile)
        st = sonde_metrics_start(ctx, err);
    ro.profile = profile ? &alone : NULL;
    ro.traceparent = profile ? "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" : NULL;
    if (!st) {
        n_out = sonde_session_output_count(s);
        st = sonde_session_run(s, &ro, NULL, in, n_in, NULL, out, n_out, err);
    }
    sonde_profile_release(alone);
    if (!st && profile)
        st = sonde_recording_get(recording, &recorded, err);
    if (!st && profile)
        st = sonde_profile_spans_get(recorded, &spans, err);
    if (!st && profile)
        st = sonde_profile_findings(recorded, &found, err);
    if (!st && profile)
        st = sonde_inspect_session(s, NULL, in, n_in, &look, err);
    sonde_inspection_release(look);
    sonde_findings_release(found);
    sonde_profile_spans_release(spans);
    sonde_profile_release(recorded);
    sonde_recording_release(recording);
    release_all(in, MAX_PORTS);
    release_all(out, MAX_PORTS);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
    return st;
}

static void walk_tuned(const char *name, bool profile, const char *tune)
{
    sonde_error err;
    sonde_context *ctx = NULL;
    sonde_model *model = NULL;
    char path[] = "/tmp/sonde-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *f = fdopen(fd, "rb");
    CHECK_OK(sonde_context_create(NULL, &ctx, &err));
    CHECK_OK(zoo_model(ctx, name, &model, &err));
    CHECK_OK(sonde_model_save(model, path, &err));
    sonde_model_release(model);
    sonde_context_release(ctx);
    f = freopen(path, "rb", f);
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    rewind(f);
    void *bytes = malloc(size);
    CHECK_EQ(fread(bytes, 1, size, f), size);
    fclose(f);
    remove(path);

    counting count = {.left = -1};
    CHECK_OK(whole_life(&count, bytes, size, profile, tune, &err));
    CHECK_EQ(count.live, 0);
    long k = 0;
    for (;; k++) {
        count = (counting){.left = k};
        sonde_status st = whole_life(&count, bytes, size, profile, tune, &err);
        CHECK_MSG(count.live == 0, "%s: failing allocation %ld leaves %ld blocks", name, k,
                  count.live);
        if (!count.failed)
            break;
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY || st == SONDE_OK, "%s: allocation %ld: %d, %s", name,
                  k, (int)st, err.message);
    }
    CHECK_MSG(k > 20, "only %ld allocations were walked", k);
    free(bytes);
}

static void walk(const char *name, bool profile)
{
    walk_tuned(name, profile, NULL);
}

/* Keys, values and the map of them. */
static sonde_status make_map(counting *count, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    counting_options(&o, count);
    const int64_t n = 2;
    const sonde_string words[2] = {{"a", 1}, {"b", 1}};
    sonde_context *ctx = NULL;
    sonde_value *keys = NULL, *values = NULL, *map = NULL;
    sonde_status st = sonde_context_create(&o, &ctx, err);
    if (!st)
        st = sonde_tensor_create_strings(ctx, &n, 1, words, &keys, err);
    if (!st)
        st = sonde_tensor_create(ctx, SONDE_DTYPE_F32, &n, 1, NULL, 8, &values, err);
    if (!st)
        st = sonde_map_create(ctx, keys, values, &map, err);
    sonde_value_release(keys);
    sonde_value_release(values);
    sonde_value_release(map);
    sonde_context_release(ctx);
    return st;
}

TEST(every_allocation_of_a_map_may_fail)
{
    sonde_error err;
    for (long k = 0;; k++) {
        counting count = {.left = k};
        const sonde_status st = make_map(&count, &err);
        CHECK_MSG(count.live == 0, "failing allocation %ld leaves %ld blocks", k, count.live);
        if (!count.failed) {
            CHECK_EQ(st, SONDE_OK);
            CHECK_MSG(k > 3, "only %ld allocations were walked", k);
            break;
        }
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
}

TEST(every_allocation_of_a_convolutional_model_may_fail)
{
    walk("tiny_cnn", false);
}
TEST(every_allocation_of_a_quantised_model_may_fail)
{
    walk("tiny_regnet_y_int8", false);
}
TEST(every_allocation_of_a_loop_with_captures_may_fail)
{
    walk("tiny_loop", false);
}
TEST(every_allocation_of_a_conditional_may_fail)
{
    walk("tiny_if", false);
}
TEST(every_allocation_of_a_sequence_model_may_fail)
{
    walk("tiny_sequence", false);
}
TEST(every_allocation_of_a_data_dependent_model_may_fail)
{
    walk("tiny_dynamic", false);
}
TEST(every_allocation_of_an_attention_model_may_fail)
{
    walk("tiny_attention", false);
}

TEST(every_allocation_of_a_dense_model_may_fail)
{
    walk("tiny_mlp", false);
}
TEST(every_allocation_of_a_profile_may_fail)
{
    walk("tiny_mlp", true);
}
TEST(every_allocation_of_tuning_may_fail)
{
    walk_tuned("tiny_mlp", false, "/proc/no/such/folder"); /* nothing is kept: all is measured */
}

TEST_MAIN()
