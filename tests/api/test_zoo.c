/* SPDX-License-Identifier: Apache-2.0 */
/* The figures that the list of built-in models states, held against the engine's. */
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "zoo_session.h"

/* The size that the model's metadata gives a symbolic dim. */
static int64_t default_size(const sn_model *m, const char *dim)
{
    char key[64];
    snprintf(key, sizeof key, "sonde.default.%s", dim ? dim : "");
    for (size_t i = 0; i < m->metadata.n; i++)
        if (strcmp(m->metadata.data[i].key, key) == 0)
            return strtoll(m->metadata.data[i].value, NULL, 10);
    return 1;
}

static sonde_status empty_input(const sonde_model *model, const sonde_type_info *info,
                                sonde_value **in, sonde_error *err)
{
    static const sonde_string texts[64];
    int64_t dims[16];
    size_t count = 1;
    for (int d = 0; d < info->rank; d++) {
        dims[d] =
            info->dims[d] >= 0 ? info->dims[d] : default_size(model->core, info->dim_names[d]);
        count *= (size_t)dims[d];
    }
    if (info->dtype == SONDE_DTYPE_STRING)
        return sonde_tensor_create_strings(NULL, dims, (size_t)info->rank, texts, in, err);
    return sonde_tensor_create(NULL, info->dtype, dims, (size_t)info->rank, NULL,
                               count * sonde_dtype_bytes(info->dtype), in, err);
}

/* FLOPs of one inference at the default sizes. Nothing is packed or run. */
static sonde_status count_flops(sonde_model *model, uint64_t *flops, sonde_error *err)
{
    sonde_session_options options = SONDE_INIT(sonde_session_options);
    options.plan_only = 1;
    sonde_session *session = NULL;
    sonde_inspection *look = NULL;
    enum { MOST = 256 }; /* a training step takes two states of every weight */
    const char *names[MOST];
    sonde_value *in[MOST] = {NULL};
    sonde_status st = sonde_session_create(model, &options, &session, err);
    size_t n = 0;
    for (size_t i = 0; !st && n < MOST && i < sonde_session_input_count(session); i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        st = sonde_session_input_info(session, i, &info, err);
        if (st || info.optional_input)
            continue;
        names[n] = info.name;
        st = empty_input(model, &info, &in[n++], err);
    }
    if (!st)
        st = sonde_inspect_session(session, names, in, n, &look, err);
    sonde_inspection_totals totals = SONDE_INIT(sonde_inspection_totals);
    if (!st)
        st = sonde_inspection_totals_get(look, &totals, err);
    *flops = totals.flops;
    sonde_inspection_release(look);
    release_all(in, n);
    sonde_session_release(session);
    return st;
}

TEST(every_model_takes_the_flops_its_row_says)
{
    for (size_t i = 0; sonde_zoo_name(i); i++) {
        sonde_error err = {0};
        sonde_model *model = NULL;
        CHECK_OK(sonde_zoo_build(NULL, sonde_zoo_name(i), 0, &model, &err));
        uint64_t counted = 0;
        const sonde_status st = count_flops(model, &counted, &err);
        sonde_model_release(model);
        CHECK_MSG(st == SONDE_OK, "%s: %s", sonde_zoo_name(i), err.message);
        const double said = (double)sonde_zoo_flops(i), off = fabs(said - (double)counted);
        CHECK_MSG(off <= 0.01 * (double)counted, "%s takes %llu FLOPs, its row says %.0f",
                  sonde_zoo_name(i), (unsigned long long)counted, said);
    }
    CHECK_EQ(sonde_zoo_flops(1000), 0);
}

static const char *metadata_of(const sonde_model *m, const char *key)
{
    for (size_t i = 0; i < sonde_model_metadata_count(m); i++)
        if (strcmp(sonde_model_metadata_key(m, i), key) == 0)
            return sonde_model_metadata_value(m, i);
    return "";
}

TEST(a_zoo_name_is_a_model_wherever_a_path_is)
{
    sonde_model *model = NULL;
    sonde_error err;
    CHECK_OK(sonde_model_load(NULL, "zoo:tiny_mlp", NULL, &model, &err));
    CHECK_STR(sonde_model_name(model), "tiny_mlp");
    CHECK_STR(metadata_of(model, "sonde.default.batch"), "1");
    sonde_model_release(model);
    CHECK_OK(
        sonde_model_load(NULL, "zoo:tiny_gpt2?batch=3&seq=2&&past_sequence=4", NULL, &model, &err));
    CHECK_STR(sonde_model_name(model), "tiny_gpt2");
    CHECK_STR(metadata_of(model, "sonde.default.batch"), "3");
    CHECK_STR(metadata_of(model, "sonde.default.sequence"), "2");
    CHECK_STR(metadata_of(model, "sonde.default.past_sequence"), "4");
    sonde_model_release(model);
    CHECK_OK(sonde_zoo_build(NULL, "tiny_mlp?", 0, &model, &err));
    sonde_model_release(model);
}

TEST(sizes_of_a_zoo_name_are_checked)
{
    static const char *const bad[] = {"batch",    "batch=", "batch=-1",
                                      "batch=1x", "=3",     "batch=99999999999999999999"};
    sonde_model *model = NULL;
    sonde_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[80];
        snprintf(name, sizeof name, "zoo:tiny_mlp?%s", bad[i]);
        CHECK_EQ(sonde_model_load(NULL, name, NULL, &model, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, "does not have the form DIM=N");
    }
    CHECK_EQ(sonde_model_load(NULL, "zoo:tiny_mlp?ba=2", NULL, &model, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "no dimension 'ba'; its symbolic dimensions are: batch");
    CHECK_EQ(sonde_model_load(NULL, "zoo:no?batch=2", NULL, &model, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "unknown built-in model 'no'");
    CHECK(model == NULL);
}

TEST_MAIN()
