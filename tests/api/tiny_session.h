/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the profiler share: one tiny model ready to run, through the public API. */
#ifndef SONDE_TESTS_API_TINY_SESSION_H
#define SONDE_TESTS_API_TINY_SESSION_H

#include <stdio.h>
#include <unistd.h>

#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"
#include "test.h"

typedef struct tiny_session {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    sonde_value *in;
    char path[96]; /* of a file the test may write; gone at the end */
} tiny_session;

/* `what` is part of the file's name. */
static inline void tiny_open(tiny_session *t, int threads, const char *what)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    const int64_t dims[2] = {1, 16};
    o.threads = threads;
    snprintf(t->path, sizeof t->path, "/tmp/sonde-test-%s-%ld.pftrace", what, (long)getpid());
    CHECK_OK(sonde_context_create(&o, &t->context, &err));
    CHECK_OK(sonde_zoo_build(t->context, "tiny_mlp", 1, &t->model, &err));
    CHECK_OK(sonde_session_create(t->model, NULL, &t->session, &err));
    CHECK_OK(sonde_tensor_create(t->context, SONDE_DTYPE_F32, dims, 2, NULL, 64, &t->in, &err));
}

static inline void tiny_run(const tiny_session *t, int times)
{
    sonde_error err;
    for (int i = 0; i < times; i++) {
        sonde_value *out = NULL;
        CHECK_OK(sonde_session_run(t->session, NULL, NULL, &t->in, 1, NULL, &out, 1, &err));
        sonde_value_release(out);
    }
}

static inline void tiny_close(tiny_session *t)
{
    sonde_value_release(t->in);
    sonde_session_release(t->session);
    sonde_model_release(t->model);
    sonde_context_release(t->context);
    (void)remove(t->path);
}

#endif
