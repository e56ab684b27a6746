/* SPDX-License-Identifier: Apache-2.0 */
/* When sessions ask the operating system for AMX, and what they do when it refuses. The first test
 * needs a process that has not asked: nothing may come before it. */
#include "amx.h"
#include "api/internal.h"
#include "tiny_session.h"

/* Products of f32 so small that vectors compute them: the model must not ask for AMX. */
TEST(a_model_that_has_no_use_for_amx_asks_for_no_permission)
{
    const int before = amx_permission();
    if (before < 0)
        SKIP_TEST("this machine has no AMX, or its kernel does not say who may use it");
    CHECK_EQ(before, 0);
    tiny_session t = {0};
    tiny_open(&t, 2, "amx");
    tiny_run(&t, 3);
    tiny_close(&t);
    CHECK_EQ(amx_permission(), 0);
}

static int requests;

static bool refuse(void)
{
    requests++;
    return false;
}

static bool grant(void)
{
    requests++;
    return sn_cpu_request_amx();
}

/* A context of a machine with AMX kernels whose system answers as `request` does. */
static void pretend(sonde_context *c, bool (*request)(void))
{
    c->core.cpu.flags |= SN_CPU_AMX;
    c->core.cpu.on_request = SN_CPU_AMX;
    c->core.cpu.request = request;
    requests = 0;
}

static void keep_line(void *user, sn_log_level level, const char *line)
{
    (void)level;
    snprintf(user, 256, "%s", line);
}

/* A session of another model on the context of `t`: one of bytes, which has a use for AMX. */
static void open_another(tiny_session *t)
{
    sonde_error err;
    const int64_t dims[4] = {1, 3, 32, 32};
    sonde_session_release(t->session);
    sonde_model_release(t->model);
    sonde_value_release(t->in);
    t->session = NULL;
    t->model = NULL;
    t->in = NULL;
    CHECK_OK(sonde_zoo_build(t->context, "tiny_cnn_int8", 1, &t->model, &err));
    CHECK_OK(sonde_session_create(t->model, NULL, &t->session, &err));
    CHECK_OK(sonde_tensor_create(t->context, SONDE_DTYPE_F32, dims, 4, NULL,
                                 3 * 32 * 32 * sizeof(float), &t->in, &err));
}

TEST(a_session_that_is_refused_amx_runs_without_it_and_says_so)
{
    char line[256] = "";
    tiny_session t = {0};
    tiny_open(&t, 2, "amx");
    t.context->core.log = (sn_log){.level = SN_LOG_WARN, .sink = keep_line, .user = line};
    const uint32_t flags = t.context->core.cpu.flags & ~(uint32_t)SN_CPU_AMX;
    pretend(t.context, refuse);
    open_another(&t);
    CHECK_EQ(requests, 1);
    CHECK_EQ(t.context->core.cpu.flags, flags);
    CHECK_HAS(line, "refuses AMX");
    tiny_run(&t, 2);
    open_another(&t); /* nothing is left to ask for */
    CHECK_EQ(requests, 1);
    tiny_run(&t, 2);
    tiny_close(&t);
}

TEST(a_session_asks_before_it_uses_amx)
{
    tiny_session t = {0};
    tiny_open(&t, 2, "amx");
    if (!(t.context->core.cpu.found & SN_CPU_AMX)) {
        tiny_close(&t);
        SKIP_TEST("this machine has no AMX");
    }
    pretend(t.context, grant);
    open_another(&t);
    CHECK_EQ(requests, 1);
    CHECK(t.context->core.cpu.flags & SN_CPU_AMX);
    tiny_run(&t, 2);
    tiny_close(&t);
}

TEST(a_session_restricted_to_a_lower_level_does_not_ask)
{
    tiny_session t = {0};
    tiny_open(&t, 1, "amx");
    pretend(t.context, refuse);
    t.context->core.cpu.flags &= ~(uint32_t)SN_CPU_AMX; /* as SONDE_CPU=avx512 does */
    open_another(&t);
    CHECK_EQ(requests, 0);
    tiny_close(&t);
}

TEST_MAIN()
