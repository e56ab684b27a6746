/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of load, bind and run fails once: each time the call says so, nothing crashes
 * and nothing is left behind. */
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "test.h"

typedef struct memory {
    long left; /* allocations that still succeed */
    long live; /* blocks */
    long total;
} memory;

static void *take(void *user, size_t bytes)
{
    memory *m = user;
    m->total++;
    if (m->left-- <= 0)
        return NULL;
    m->live++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
}

static void give(void *user, void *ptr, size_t bytes)
{
    (void)bytes;
    ((memory *)user)->live -= ptr != NULL;
    free(ptr);
}

static sonde_status whole_life(memory *m, const char *name, const int64_t *dims, size_t rank,
                               bool profile, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    o.alloc = take;
    o.free = give;
    o.alloc_user = m;
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_value *in = NULL, *out[3] = {NULL, NULL, NULL};
    sonde_profile *recorded = NULL;
    sonde_inspection *look = NULL;
    size_t bytes = 4;
    for (size_t i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    sonde_status st = sonde_context_create(&o, &c, err);
    if (!st)
        st = sonde_zoo_build(c, name, 1, &model, err);
    if (!st)
        st = sonde_session_create(model, NULL, &session, err);
    if (!st)
        st = sonde_tensor_create(c, SONDE_DTYPE_F32, dims, rank, NULL, bytes, &in, err);
    if (!st && profile)
        st = sonde_profiler_start(c, 2, err);
    if (!st)
        st = sonde_session_run(session, NULL, NULL, &in, 1, NULL, out,
                               sonde_session_output_count(session), err);
    if (!st && profile)
        st = sonde_profiler_stop(c, &recorded, err);
    if (!st && profile)
        st = sonde_inspect_session(session, NULL, &in, 1, &look, err);
    sonde_inspection_release(look);
    sonde_profile_release(recorded);
    for (int i = 0; i < 3; i++)
        sonde_value_release(out[i]);
    sonde_value_release(in);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(c);
    return st;
}

static void walk(const char *name, const int64_t *dims, size_t rank, bool profile)
{
    sonde_error err;
    memory plenty = {.left = 1000000};
    CHECK_OK(whole_life(&plenty, name, dims, rank, profile, &err));
    CHECK_EQ(plenty.live, 0);
    /* All of the first ones, then ever fewer: the number of allocations bounds the walk. */
    const long step = plenty.total > 3000 ? plenty.total / 3000 : 1;
    for (long left = 0; left < plenty.total; left += step) {
        memory m = {.left = left};
        const sonde_status st = whole_life(&m, name, dims, rank, profile, &err);
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY || (st == SONDE_OK && profile),
                  "%s: allocation %ld failed but the status is %d: %s", name, left, (int)st,
                  err.message);
        CHECK_MSG(m.live == 0, "%s: %ld blocks left after allocation %ld failed", name, m.live,
                  left);
    }
}

TEST(every_failing_allocation_of_a_dense_model_is_survived)
{
    const int64_t dims[2] = {2, 16};
    walk("tiny_mlp", dims, 2, false);
}

TEST(every_failing_allocation_of_a_convolutional_model_is_survived)
{
    const int64_t dims[4] = {1, 3, 32, 32};
    walk("tiny_cnn", dims, 4, false);
}

TEST(every_failing_allocation_of_a_dynamic_model_is_survived)
{
    const int64_t dims[1] = {5};
    walk("tiny_dynamic", dims, 1, false);
}

TEST(every_failing_allocation_of_a_model_with_sequences_is_survived)
{
    const int64_t dims[2] = {6, 4};
    walk("tiny_sequence", dims, 2, false);
}

TEST(every_failing_allocation_of_a_profile_is_survived)
{
    const int64_t dims[2] = {2, 16};
    walk("tiny_mlp", dims, 2, true);
}

TEST_MAIN()
