/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom: one thread is stopped in the middle of making something, and runs that need
 * nothing of it have to get through. Where one should not, the test never ends. */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forks.h"
#include "gated_memory.h"
#include "plan/binding.h"

enum { KNOWN = 1 }; /* batch of the binding that is there from the start */

/* Name of what the first such node makes. */
static const char *made_by(const gated_session *s, const char *op_type)
{
    for (const sn_node *n = s->model->core->graph->first; n; n = n->next)
        if (strcmp(n->op_type, op_type) == 0)
            return n->out[0]->name;
    return "";
}

static bool near(float a, float b)
{
    return fabsf(a - b) < 1e-5f;
}

/* A run on this thread. */
static sonde_status run_here(const gated_session *s, int64_t batch, const char *output,
                             float *first)
{
    runner r = {.s = s, .batch = batch, .output = output};
    run_once(&r);
    *first = r.first;
    return r.status;
}

static uint32_t bindings_of(const gated_session *s)
{
    return sn_session_program(s->session->core)->n_bindings;
}

TEST(a_run_whose_binding_exists_does_not_wait_for_another_binding)
{
    gated_session s;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    float expected, got;
    CHECK_EQ(run_here(&s, KNOWN, NULL, &expected), SONDE_OK);
    long stops = 0;
    for (bool reached = true; reached; stops++) { /* at every allocation of a run, one by one */
        gate g;
        gate_init(&g, stops, 0);
        runner other = {.s = &s, .gate = &g, .batch = KNOWN + 1 + stops};
        runner_start(&other);
        reached = gate_wait(&g);
        CHECK_EQ(run_here(&s, KNOWN, NULL, &got), SONDE_OK);
        CHECK(got == expected);
        gate_open(&g);
        CHECK_EQ(runner_join(&other), SONDE_OK);
        CHECK(near(other.first, expected));
    }
    CHECK_MSG(stops > 5, "%ld allocations", stops);
    gated_close(&s);
}

TEST(a_binding_that_two_runs_want_is_made_once)
{
    gated_session s;
    gate g;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    gate_init(&g, 0, 0);
    runner first = {.s = &s, .gate = &g, .batch = 3};
    runner second = {.s = &s, .batch = 3, .asks = true};
    runner_start(&first);
    CHECK(gate_wait(&g));
    runner_start(&second);
    runner_wait_asked(&second, 1); /* it waits */
    CHECK_EQ(bindings_of(&s), 0);
    gate_open(&g);
    CHECK_EQ(runner_join(&first), SONDE_OK);
    CHECK_EQ(runner_join(&second), SONDE_OK);
    CHECK(first.first == second.first);
    CHECK_EQ(bindings_of(&s), 1);
    gated_close(&s);
}

TEST(a_run_that_waits_for_a_binding_can_be_cancelled)
{
    for (int by_token = 0; by_token < 2; by_token++) {
        gated_session s;
        sonde_error err;
        gate g;
        gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
        gate_init(&g, 0, 0);
        runner first = {.s = &s, .gate = &g, .batch = 3};
        runner second = {.s = &s, .batch = 3, .asks = true};
        CHECK_OK(sonde_cancel_token_create(&second.cancel, &err));
        runner_start(&first);
        CHECK(gate_wait(&g));
        runner_start(&second);
        runner_wait_asked(&second, 1);
        if (by_token)
            sonde_cancel(second.cancel);
        else
            atomic_store(&second.stop, 1);
        CHECK_EQ(runner_join(&second), SONDE_CANCELLED); /* the first is still at it */
        gate_open(&g);
        CHECK_EQ(runner_join(&first), SONDE_OK);
        CHECK_EQ(bindings_of(&s), 1);
        sonde_cancel_token_release(second.cancel);
        gated_close(&s);
    }
}

TEST(whoever_waited_for_a_binding_that_failed_makes_it)
{
    gated_session s;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    for (long after = 0; after < 3; after++) {
        gate g;
        gate_init(&g, after, 0);
        g.fails = true;
        runner first = {.s = &s, .gate = &g, .batch = 3 + after};
        runner second = {.s = &s, .batch = 3 + after, .asks = true};
        runner_start(&first);
        CHECK(gate_wait(&g));
        runner_start(&second);
        runner_wait_asked(&second, 1);
        gate_open(&g);
        CHECK_EQ(runner_join(&first), SONDE_OUT_OF_MEMORY);
        CHECK_EQ(runner_join(&second), SONDE_OK);
        CHECK_EQ(bindings_of(&s), after + 1);
    }
    gated_close(&s);
}

/* ------------------------------------------------------------------ packing */
/* One run has the only frame and gives it back while another is refused memory for its own: what
 * that one does to the list of frames, ThreadSanitizer sees. */
TEST(a_run_without_memory_for_a_frame_leaves_those_of_others_alone)
{
    gated_session s;
    gate held, refused;
    float expected;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    CHECK_EQ(run_here(&s, KNOWN, NULL, &expected), SONDE_OK);
    gate_init(&held, 0, 0); /* its output */
    gate_init(&refused, 1, 0);
    refused.fails = true;
    runner first = {.s = &s, .gate = &held, .batch = KNOWN};
    runner second = {.s = &s, .gate = &refused, .batch = KNOWN};
    runner_start(&first);
    CHECK(gate_wait(&held));
    runner_start(&second);
    CHECK(gate_wait(&refused));
    gate_open(&held);
    gate_open(&refused);
    CHECK_EQ(runner_join(&first), SONDE_OK);
    CHECK_EQ(runner_join(&second), SONDE_OUT_OF_MEMORY);
    CHECK(first.first == expected);
    CHECK_EQ(run_here(&s, KNOWN, NULL, &expected), SONDE_OK);
    gated_close(&s);
}

TEST(a_run_does_not_wait_for_another_program_of_its_model)
{
    gated_session s;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    float expected, expected_inner, got;
    CHECK_EQ(run_here(&s, KNOWN, NULL, &expected), SONDE_OK);
    CHECK_EQ(run_here(&s, KNOWN, made_by(&s, "Relu"), &expected_inner), SONDE_OK);
    long stops = 0;
    for (bool reached = true; reached; stops += 2) {
        sonde_error err;
        gated_session fresh = s;
        sonde_session *more = NULL;
        gate g;
        /* A session of its own has no such program yet. */
        CHECK_OK(sonde_session_create(s.model, NULL, &fresh.session, &err));
        gate_init(&g, stops, 0);
        runner other = {.s = &fresh, .gate = &g, .batch = KNOWN, .output = made_by(&s, "Gemm")};
        runner_start(&other);
        reached = gate_wait(&g);
        CHECK_EQ(run_here(&s, KNOWN, NULL, &got), SONDE_OK);
        CHECK(got == expected);
        CHECK_EQ(run_here(&s, KNOWN, made_by(&s, "Relu"), &got), SONDE_OK);
        CHECK(got == expected_inner);
        CHECK_OK(sonde_session_create(s.model, NULL, &more, &err));
        sonde_session_release(more);
        gate_open(&g);
        CHECK_EQ(runner_join(&other), SONDE_OK);
        sonde_session_release(fresh.session);
    }
    CHECK_MSG(stops > 20, "%ld allocations", stops);
    gated_close(&s);
}

TEST(a_run_that_waits_for_a_program_can_be_cancelled_and_else_shares_it)
{
    gated_session s;
    gate g;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    gate_init(&g, 20, 0);
    runner first = {.s = &s, .gate = &g, .batch = KNOWN, .output = made_by(&s, "Relu")};
    runner second = {
        .s = &s, .batch = KNOWN, .output = made_by(&s, "Relu"), .asks = true, .stop = 1};
    runner third = {.s = &s, .batch = KNOWN, .output = made_by(&s, "Relu"), .asks = true};
    runner_start(&first);
    CHECK(gate_wait(&g));
    runner_start(&second);
    CHECK_EQ(runner_join(&second), SONDE_CANCELLED);
    runner_start(&third);
    runner_wait_asked(&third, 1);
    gate_open(&g);
    CHECK_EQ(runner_join(&first), SONDE_OK);
    CHECK_EQ(runner_join(&third), SONDE_OK);
    CHECK(first.first == third.first);
    int programs = 0;
    for (const sn_program *p = s.model->core->programs; p; p = p->next_shared)
        programs++;
    CHECK_EQ(programs, 2);
    gated_close(&s);
}

TEST(whoever_waited_for_a_program_that_failed_makes_it)
{
    gated_session s;
    gate g;
    gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
    gate_init(&g, 20, 0);
    g.fails = true;
    runner first = {.s = &s, .gate = &g, .batch = KNOWN, .output = made_by(&s, "Relu")};
    runner second = {.s = &s, .batch = KNOWN, .output = made_by(&s, "Relu"), .asks = true};
    runner_start(&first);
    CHECK(gate_wait(&g));
    runner_start(&second);
    runner_wait_asked(&second, 1);
    gate_open(&g);
    CHECK_EQ(runner_join(&first), SONDE_OUT_OF_MEMORY);
    CHECK_EQ(runner_join(&second), SONDE_OK);
    gated_close(&s);
}

/* ------------------------------------------------------------------ forks */
TEST(a_forked_child_makes_what_another_thread_of_its_parent_was_making)
{
    if (!can_fork())
        SKIP_TEST("no forks beside other threads in this build");
    for (int program = 0; program < 2; program++) {
        gated_session s;
        gate g;
        float got;
        gated_open(&s, "tiny_mlp", NULL, NULL, NULL);
        const char *output = program ? made_by(&s, "Relu") : NULL;
        gate_init(&g, program ? 20 : 0, 0);
        runner first = {.s = &s, .gate = &g, .batch = 3, .output = output};
        runner second = {.s = &s, .batch = 3, .output = output, .asks = true};
        runner_start(&first);
        CHECK(gate_wait(&g));
        runner_start(
            &second); /* it waits for the first one, with a condition that the child has, too */
        runner_wait_asked(&second, 1);
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            const bool fine = run_here(&s, 3, output, &got) == SONDE_OK && got != 0 &&
                              run_here(&s, 4, output, &got) == SONDE_OK;
            sonde_session_release(s.session);
            _exit(!fine);
        }
        int status = -1;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, 0);
        gate_open(&g);
        CHECK_EQ(runner_join(&first), SONDE_OK);
        CHECK_EQ(runner_join(&second), SONDE_OK);
        gated_close(&s);
    }
}

/* ------------------------------------------------------------------ tuning */
enum { SCRATCH = 1 << 20 }; /* nothing else of these small models is as large as a tuner's memory */

static void count_tuned(void *user, int level, const char *line)
{
    (void)level;
    *(_Atomic int *)user += strncmp(line, "tuned: ", 7) == 0;
}

/* How many files there are, and how large they are together. */
static int list_files(const char *dir, long *bytes)
{
    int n = 0;
    *bytes = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char path[400];
        struct stat about;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &about) != 0)
            continue;
        *bytes += (long)about.st_size;
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static int files_in(const char *dir)
{
    long bytes;
    return list_files(dir, &bytes);
}

static long bytes_in(const char *dir)
{
    long bytes;
    (void)list_files(dir, &bytes);
    return bytes;
}

static void remove_folder(const char *dir)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK_EQ(system(command), 0);
}

TEST(a_run_does_not_wait_for_tuning)
{
    char dir[] = "/tmp/sonde-wait-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    gated_session s, plain;
    gate g;
    _Atomic int tuned = 0;
    float expected, got;
    gated_open(&plain, "tiny_cnn", NULL, NULL, NULL);
    CHECK_EQ(run_here(&plain, KNOWN, NULL, &expected), SONDE_OK);
    gated_open(&s, "tiny_cnn", dir, count_tuned, &tuned);
    CHECK_EQ(run_here(&s, KNOWN, NULL, &got), SONDE_OK);
    CHECK_EQ(tuned, 1);
    gate_init(&g, 0, SCRATCH);
    runner other = {.s = &s, .gate = &g, .batch = 5};
    runner_start(&other);
    CHECK(gate_wait(&g)); /* it measures */
    for (int64_t batch = KNOWN; batch <= 5; batch += 4) {
        CHECK_EQ(run_here(&s, batch, NULL, &got), SONDE_OK); /* also with the shape it is tuning */
        CHECK(near(got, expected));
    }
    CHECK_EQ(tuned, 1);
    gate_open(&g);
    CHECK_EQ(runner_join(&other), SONDE_OK);
    CHECK(near(other.first, expected));
    CHECK_EQ(tuned, 2);
    CHECK_EQ(run_here(&s, 5, NULL, &got), SONDE_OK);
    CHECK(got == other.first);
    CHECK_EQ(tuned, 2);
    CHECK_EQ(bindings_of(&s), 2);
    gated_close(&s);
    gated_close(&plain);
    remove_folder(dir);
}

/* Somebody else's region on a pool, which lasts until its gate opens. */
typedef struct hog {
    sn_pool *pool;
    gate gate;
    pthread_t thread;
} hog;

static void hog_task(void *arg, size_t task, int worker)
{
    (void)task, (void)worker;
    (void)gate_pass(arg);
}

static void *hog_main(void *arg)
{
    hog *h = arg;
    sn_pool_run(h->pool, 2, hog_task, &h->gate);
    return NULL;
}

TEST(steps_are_not_measured_while_others_have_the_pool)
{
    char dir[] = "/tmp/sonde-wait-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    gated_session s;
    sonde_error err;
    _Atomic int tuned = 0;
    float expected, got;
    gated_open(&s, "tiny_cnn", NULL, count_tuned, &tuned);
    CHECK_EQ(run_here(&s, 5, NULL, &expected), SONDE_OK);
    gated_session tuning = s;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.tune = dir;
    o.threads = 2;
    CHECK_OK(sonde_session_create(s.model, &o, &tuning.session, &err));
    hog h = {.pool = sn_session_pool(tuning.session->core)};
    gate_init(&h.gate, 0, 0);
    CHECK_EQ(pthread_create(&h.thread, NULL, hog_main, &h), 0);
    CHECK(gate_wait(&h.gate));
    CHECK_EQ(run_here(&tuning, 5, NULL, &got), SONDE_OK);
    CHECK(near(got, expected));
    CHECK_EQ(tuned, 1);
    gate_open(&h.gate);
    pthread_join(h.thread, NULL);
    /* Only steps without a choice are remembered: another session measures the others. */
    const long before = bytes_in(dir);
    CHECK_EQ(run_here(&tuning, 5, NULL, &got), SONDE_OK);
    CHECK_EQ(bytes_in(dir), before);
    sonde_session_release(tuning.session);
    CHECK_OK(sonde_session_create(s.model, &o, &tuning.session, &err));
    CHECK_EQ(run_here(&tuning, 5, NULL, &got), SONDE_OK);
    CHECK(near(got, expected));
    CHECK_MSG(bytes_in(dir) > before, "%ld bytes", before);
    sonde_session_release(tuning.session);
    gated_close(&s);
    remove_folder(dir);
}

TEST(tuning_that_is_cancelled_ends_and_the_next_run_goes_on_with_it)
{
    char dir[] = "/tmp/sonde-wait-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    gated_session s;
    sonde_error err;
    gate g;
    _Atomic int tuned = 0;
    float got;
    gated_open(&s, "tiny_cnn", dir, count_tuned, &tuned);
    gate_init(&g, 1, SCRATCH); /* at the second step it measures */
    runner other = {.s = &s, .gate = &g, .batch = 5};
    CHECK_OK(sonde_cancel_token_create(&other.cancel, &err));
    runner_start(&other);
    CHECK(gate_wait(&g));
    sonde_cancel(other.cancel);
    gate_open(&g);
    CHECK_EQ(runner_join(&other), SONDE_CANCELLED);
    CHECK_EQ(tuned, 0);
    CHECK_EQ(files_in(dir), 1); /* what was measured before is kept */
    CHECK_EQ(run_here(&s, 5, NULL, &got), SONDE_OK);
    CHECK_EQ(tuned, 1);
    CHECK_EQ(bindings_of(&s), 1);
    sonde_cancel_token_release(other.cancel);
    gated_close(&s);
    remove_folder(dir);
}

TEST(a_run_that_was_cancelled_beforehand_measures_nothing)
{
    char dir[] = "/tmp/sonde-wait-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    gated_session s;
    sonde_error err;
    _Atomic int tuned = 0;
    gated_open(&s, "tiny_cnn", dir, count_tuned, &tuned);
    runner r = {.s = &s, .batch = 5};
    CHECK_OK(sonde_cancel_token_create(&r.cancel, &err));
    sonde_cancel(r.cancel);
    run_once(&r);
    CHECK_EQ(r.status, SONDE_CANCELLED);
    CHECK_EQ(tuned, 0);
    CHECK_EQ(files_in(dir), 0);
    sonde_cancel_token_release(r.cancel);
    gated_close(&s);
    remove_folder(dir);
}

TEST(tuning_that_runs_out_of_memory_leaves_a_binding_that_works)
{
    char dir[] = "/tmp/sonde-wait-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    gated_session s;
    gate g;
    _Atomic int tuned = 0;
    float got;
    gated_open(&s, "tiny_cnn", dir, count_tuned, &tuned);
    gate_init(&g, 0, SCRATCH);
    g.fails = true;
    runner other = {.s = &s, .gate = &g, .batch = 5};
    runner_start(&other);
    CHECK(gate_wait(&g));
    gate_open(&g);
    CHECK_EQ(runner_join(&other), SONDE_OUT_OF_MEMORY);
    CHECK_EQ(run_here(&s, 5, NULL, &got), SONDE_OK);
    CHECK_EQ(tuned, 1);
    CHECK_EQ(bindings_of(&s), 1);
    gated_close(&s);
    remove_folder(dir);
}

TEST_MAIN()
