/* SPDX-License-Identifier: Apache-2.0 */
/* The precision of sessions: each has a program and packed weights of its own, on disk, too, and
 * profiles say which it was. */
#include <dirent.h>

#include "plan/program.h"
#include "sonde/experimental/profile.h"
#include "temp_folder.h"
#include "zoo_session.h"

typedef struct fixture {
    sonde_context *context;
    sonde_model *model;
} fixture;

static void begin(fixture *f)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    CHECK_OK(sonde_context_create(&o, &f->context, &err));
    CHECK_OK(zoo_model(f->context, "tiny_resnet", &f->model, &err));
}

static void end(const fixture *f)
{
    sonde_model_release(f->model);
    sonde_context_release(f->context);
}

static sonde_session *session(const fixture *f, sonde_precision precision, const char *cache)
{
    sonde_error err;
    sonde_session *s = NULL;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.precision = precision;
    o.weights_cache = cache;
    if (sonde_session_create(f->model, &o, &s, &err))
        abort();
    return s;
}

/* The first output, for the same inputs each time. */
static sonde_value *answer(const fixture *f, sonde_session *s)
{
    sonde_error err;
    sonde_value *in[MAX_PORTS] = {NULL}, *out = NULL;
    const char *name = sonde_session_output_name(s, 0);
    size_t n;
    if (random_inputs(f->context, s, 1, in, &n, &err))
        abort();
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < sonde_tensor_count(in[i]); k++)
            ((float *)sonde_tensor_data(in[i]))[k] = (float)(k % 13) / 13;
    if (sonde_session_run(s, NULL, NULL, in, n, &name, &out, 1, &err))
        abort();
    release_all(in, n);
    return out;
}

static bool same(const sonde_value *a, const sonde_value *b)
{
    return sonde_tensor_bytes(a) == sonde_tensor_bytes(b) &&
           memcmp(sonde_tensor_data(a), sonde_tensor_data(b), sonde_tensor_bytes(a)) == 0;
}

TEST(sessions_of_one_model_share_packed_weights_of_the_same_precision_only)
{
    fixture f;
    begin(&f);
    sonde_session *file = session(&f, SONDE_PRECISION_FILE, NULL);
    sonde_session *half = session(&f, SONDE_PRECISION_F16, NULL);
    sonde_session *again = session(&f, SONDE_PRECISION_F16, NULL);
    sonde_session *other = session(&f, SONDE_PRECISION_BF16, NULL);
    const sn_program *p = sn_session_program(file->core), *q = sn_session_program(half->core);
    CHECK(p != q && q == sn_session_program(again->core));
    CHECK(q != sn_session_program(other->core) && p != sn_session_program(other->core));
    CHECK(q->packed_bytes * 2 >= p->packed_bytes && q->packed_bytes * 10 <= p->packed_bytes * 6);
    sonde_value *a = answer(&f, file), *b = answer(&f, half), *c = answer(&f, other);
    CHECK(!same(a, b) && !same(b, c) && !same(a, c));
    /* Weights are rounded by 2^-11 and 2^-8 of themselves at most; all layers of the
     * model together may change its result by four times that. */
    CHECK(f32_difference(b, a) <= 0x1p-9 && f32_difference(c, a) <= 0x1p-6);
    sonde_value *values[] = {a, b, c};
    release_all(values, 3);
    sonde_session_release(file);
    sonde_session_release(half);
    sonde_session_release(again);
    sonde_session_release(other);
    end(&f);
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

TEST(packed_weights_on_disk_are_those_of_the_precision)
{
    static const sonde_precision kinds[] = {SONDE_PRECISION_FILE, SONDE_PRECISION_F16,
                                            SONDE_PRECISION_BF16};
    char dir[TEMP_PATH], cache[TEMP_PATH + 8];
    fixture f;
    begin(&f);
    temp_make(dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            sonde_session *plain = session(&f, kinds[i], NULL);
            sonde_value *want = answer(&f, plain);
            sonde_session_release(plain); /* or its program would be shared */
            sonde_session *cached = session(&f, kinds[i], cache);
            sonde_value *got = answer(&f, cached);
            CHECK_MSG(same(got, want), "round %d, precision %d", round, (int)kinds[i]);
            CHECK_EQ(files_in(cache), round ? 3 : i + 1);
            sonde_value_release(want);
            sonde_value_release(got);
            sonde_session_release(cached);
        }
    CHECK(temp_remove(dir));
    end(&f);
}

TEST(profiles_say_the_precision)
{
    fixture f;
    sonde_error err;
    begin(&f);
    for (int i = 0; i < 2; i++) {
        sonde_session *half = session(&f, SONDE_PRECISION_F16, NULL);
        sonde_session *file = session(&f, SONDE_PRECISION_FILE, NULL);
        sonde_profile *profile = NULL;
        sonde_profile_summary summary = SONDE_INIT(sonde_profile_summary);
        CHECK_OK(sonde_profiler_start(f.context, 1, &err));
        sonde_value_release(answer(&f, half));
        if (i)
            sonde_value_release(answer(&f, file));
        CHECK_OK(sonde_profiler_stop(f.context, &profile, &err));
        CHECK_OK(sonde_profile_summary_get(profile, &summary, &err));
        CHECK_STR(summary.precision, i ? "mixed" : "f16");
        sonde_profile_release(profile);
        sonde_session_release(half);
        sonde_session_release(file);
    }
    end(&f);
}

TEST(a_precision_that_does_not_exist_is_refused)
{
    fixture f;
    sonde_error err;
    sonde_session *s = NULL;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    begin(&f);
    o.precision = (sonde_precision)99;
    CHECK_EQ(sonde_session_create(f.model, &o, &s, &err), SONDE_INVALID_ARGUMENT);
    CHECK_STR(err.message, "precision 99 is not known");
    CHECK(!s && !sonde_precision_text((sonde_precision)99) &&
          !sonde_precision_text((sonde_precision)-1));
    CHECK_STR(sonde_precision_text(SONDE_PRECISION_BF16), "bf16");
    end(&f);
}

TEST_MAIN()
