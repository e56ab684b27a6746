/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiling from your own program: run a model ten times under the profiler, print the timing table
 * and save a trace that chrome://tracing and ui.perfetto.dev open.
 *
 *     profile_a_model MODEL [TRACE.json]
 */
#include <stdio.h>
#include <stdlib.h>

#include "sonde/sonde.h"

static void print_text(void *user, const char *text, size_t size)
{
    (void)user;
    fwrite(text, 1, size, stdout);
}

/* A zeroed tensor of the first input's shape; free dimensions become 1. */
static sonde_status make_input(const sonde_session *session, sonde_value **value, sonde_error *err)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    const sonde_status status = sonde_session_input_info(session, 0, &info, err);
    if (status != SONDE_OK)
        return status;
    int64_t dims[16] = {0};
    size_t bytes = sonde_dtype_bytes(info.dtype);
    const int rank = info.rank < 0 ? 0 : info.rank < 16 ? info.rank : 16;
    for (int i = 0; i < rank; i++) {
        dims[i] = info.dims[i] >= 0 ? info.dims[i] : 1;
        bytes *= (size_t)dims[i];
    }
    return sonde_tensor_create(NULL, info.dtype, dims, (size_t)rank, NULL, bytes, value, err);
}

static sonde_status run(sonde_session *session, sonde_value *input, int warmup, sonde_error *err)
{
    sonde_run_options options = SONDE_INIT(sonde_run_options);
    options.warmup = warmup;
    const char *in = sonde_session_input_name(session, 0);
    const char *out = sonde_session_output_name(session, 0);
    sonde_value *output = NULL;
    const sonde_status status =
        sonde_session_run(session, &options, &in, &input, 1, &out, &output, 1, err);
    sonde_value_release(output);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: profile_a_model MODEL [TRACE.json]\n");
        return 2;
    }
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_value *input = NULL;
    sonde_profile *profile = NULL;
    sonde_error err;

    sonde_status status = sonde_profiler_start(NULL, 2, &err);
    if (status == SONDE_OK)
        status = sonde_model_load(NULL, argv[1], NULL, &model, &err);
    if (status == SONDE_OK)
        status = sonde_session_create(model, NULL, &session, &err);
    if (status == SONDE_OK)
        status = make_input(session, &input, &err);
    for (int i = 0; i < 13 && status == SONDE_OK; i++)
        status = run(session, input, i < 3, &err);
    if (status == SONDE_OK)
        status = sonde_profiler_stop(NULL, &profile, &err);
    if (status == SONDE_OK)
        status = sonde_profile_table(profile, NULL, print_text, NULL, &err);
    if (status == SONDE_OK && argc > 2)
        status = sonde_profile_save(profile, argv[2], &err);
    if (status != SONDE_OK)
        fprintf(stderr, "profile_a_model: %s\n", err.message);
    sonde_profile_release(profile);
    sonde_value_release(input);
    sonde_session_release(session);
    sonde_model_release(model);
    return status == SONDE_OK ? 0 : 1;
}
