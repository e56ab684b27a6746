/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles saved, loaded, summed up and compared through the public functions alone. */
#include <unistd.h>

#include "api/zoo_session.h"
#include "sonde/experimental/profile.h"
#include "test.h"

/* A profile of a few runs, saved under `path`. */
static bool save_runs(const char *path, int runs)
{
    sonde_context *context = NULL;
    zoo_session z = {0};
    sonde_profile *profile = NULL;
    sonde_error err = {0};
    bool good = sonde_context_create(NULL, &context, &err) == SONDE_OK &&
                zoo_session_open(&z, context, "tiny_mlp") &&
                sonde_profiler_start(context, 2, &err) == SONDE_OK;
    for (int i = 0; i < runs && good; i++)
        good = zoo_session_run(&z);
    good = good && sonde_profiler_stop(context, &profile, &err) == SONDE_OK &&
           sonde_profile_save(profile, path, &err) == SONDE_OK;
    if (!good)
        fprintf(stderr, "%s\n", err.message);
    sonde_profile_release(profile);
    zoo_session_close(&z);
    sonde_context_release(context);
    return good;
}
