/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that do not say that they read weights (sonde_pass_reads_weights) do not: here they run
 * on models whose weights lie in memory that nobody may read. */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/internal.h"
#include "passes/pass.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "test.h"

/* Smaller constants are numbers that patterns are made of: axes, shapes, factors. */
enum { FEW_BYTES = 64 };

static const char *running;

static void say_who_read(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, running, strlen(running));
    static const char line[] = ": this pass reads weights and does not say so\n";
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(1);
}

static bool is_weight(const sn_value *v)
{
    return sn_value_is_const(v) && v->fact.data->data && v->fact.data->bytes > FEW_BYTES &&
           v->fact.data->dtype != SONDE_DTYPE_I64;
}

/* Every weight at `closed` instead of where it lies. */
static void close_weights(sn_graph *g, void *closed, size_t *n)
{
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i];
        if (!is_weight(v))
            continue;
        sn_tensor *t = SN_NEW(g->arena, sn_tensor);
        *t = *v->fact.data;
        t->data = closed;
        v->fact.data = t;
        ++*n;
    }
}

static sonde_status run_passes(const sonde_model *model, sn_arena *arena, sn_buffers *buffers,
                               void *closed, size_t *weights, sonde_error *err)
{
    sn_context *ctx = &model->context->core;
    sn_pass_env env = {.ctx = ctx, .cpu_flags = ctx->cpu.flags, .buffers = buffers, .err = err};
    sn_graph *g = NULL;
    running = "inference";
    SN_TRY(sn_graph_clone(model->core->graph, arena, &g, err));
    close_weights(g, closed, weights);
    sonde_status st = sn_ops_resolve(g, err);
    if (st == SONDE_OK)
        st = sn_ops_infer(g, err);
    for (size_t k = 0; sn_pass_row(k) && st == SONDE_OK; k++) {
        uint32_t changes = 0;
        running = sn_pass_row(k)->name;
        if (!sonde_pass_reads_weights(k))
            st = sn_pass_row(k)->run(g, &env, &changes);
    }
    sn_graph_free(g);
    return st;
}

TEST(passes_that_do_not_say_so_read_no_weights)
{
    static const char *const names[] = {"resnet18",   "mobilenet_v2",  "efficientnet_b0",
                                        "bert_mini",  "resnet18_int8", "regnet_y_400mf",
                                        "speech_vad", "tiny_mlp"};
    const size_t bytes = (size_t)1 << 30;
    void *closed = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(closed != MAP_FAILED);
    const struct sigaction act = {.sa_handler = say_who_read};
    sigaction(SIGSEGV, &act, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sonde_error err;
        sonde_model *model = NULL;
        CHECK_OK(sonde_zoo_build(NULL, names[i], 0, &model, &err));
        sn_arena arena;
        sn_buffers buffers = {.list = {.n = 0}};
        size_t weights = 0;
        sn_arena_init(&arena, &model->context->alloc);
        const sonde_status st = run_passes(model, &arena, &buffers, closed, &weights, &err);
        for (size_t k = 0; k < buffers.list.n; k++)
            sn_buffer_unref(buffers.list.data[k]);
        sn_vec_free(&buffers.list, &model->context->alloc);
        sn_arena_free(&arena);
        sonde_model_release(model);
        CHECK_MSG(st == SONDE_OK, "%s: %s", names[i], err.message);
        CHECK_MSG(weights > 0, "%s", names[i]);
    }
    signal(SIGSEGV, SIG_DFL);
    munmap(closed, bytes);
}

TEST_MAIN()
