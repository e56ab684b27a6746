/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs: the same answer whatever way it is computed, from many threads, in given buffers, cut
 * at inner values; and no memory shared that should not be. */
#include <pthread.h>

#include "exec/session.h"
#include "plan/binding.h"
#include "zoo_session.h"

static sonde_context *new_context(int threads, const char *cpu)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_context *ctx = NULL;
    o.threads = threads;
    o.cpu = cpu;
    (void)sonde_context_create(&o, &ctx, NULL);
    return ctx;
}

/* The outputs of a zoo model under some options, on inputs that depend on the test seed alone. */
static sonde_status outputs_of(const char *name, int threads, const char *cpu, int no_optimize,
                               int no_prepack, sonde_value **out, size_t *n_out, sonde_error *err)
{
    sonde_context *ctx = new_context(threads, cpu);
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_value *in[MAX_PORTS] = {0};
    size_t n_in = 0;
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.no_optimize = no_optimize;
    so.no_prepack = no_prepack;
    sonde_status st = ctx ? SONDE_OK : SONDE_UNSUPPORTED;
    if (!st)
        st = zoo_model(ctx, name, &model, err);
    if (!st)
        st = sonde_session_create(model, &so, &session, err);
    test_state = test_seed;
    if (!st)
        st = random_inputs(ctx, session, 1, in, &n_in, err);
    if (!st) {
        *n_out = sonde_session_output_count(session);
        st = sonde_session_run(session, NULL, NULL, in, n_in, NULL, out, *n_out, err);
    }
    release_all(in, n_in);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(ctx);
    return st;
}

static const char *const float_models[] = {"regnet_x_400mf", "tiny_cnn",          "tiny_mlp",
                                           "tiny_attention", "tiny_regnet_y",     "tiny_resnet",
                                           "tiny_mobilenet", "tiny_efficientnet", "tiny_bert",
                                           "tiny_vit",       "tiny_gpt2"};

TEST(passes_threads_prepacking_and_instruction_sets_do_not_change_the_answer)
{
    static const char *const cpus[] = {"baseline", "avx2", "avx512", "neon", NULL};
    for (size_t m = 0; m < sizeof float_models / sizeof *float_models; m++) {
        sonde_error err;
        sonde_value *want[MAX_PORTS] = {0}, *got[MAX_PORTS] = {0};
        size_t n = 0;
        CHECK_OK(outputs_of(float_models[m], 1, NULL, 1, 1, want, &n, &err));
        for (int way = 0; way < 3; way++) {
            CHECK_OK(
                outputs_of(float_models[m], way == 1 ? 2 : 1, NULL, 0, way == 2, got, &n, &err));
            CHECK_MSG(f32_difference(got[0], want[0]) <= 1e-4, "%s, way %d: %g", float_models[m],
                      way, f32_difference(got[0], want[0]));
            release_all(got, n);
        }
        for (size_t c = 0; cpus[c]; c++) {
            if (outputs_of(float_models[m], 2, cpus[c], 0, 0, got, &n, &err) == SONDE_UNSUPPORTED)
                continue; /* this machine has no such instructions */
            CHECK_MSG(got[0] && f32_difference(got[0], want[0]) <= 1e-4, "%s on %s: %g",
                      float_models[m], cpus[c], got[0] ? f32_difference(got[0], want[0]) : NAN);
            release_all(got, n);
        }
        release_all(want, n);
    }
}

/* ------------------------------------------------------------------ many threads */

typedef struct worker {
    sonde_session *session;
    sonde_value **in;
    size_t n_in;
    const sonde_value *want;
    int wrong;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < 4; i++) {
        sonde_value *out = NULL;
        sonde_error err;
        if (sonde_session_run(w->session, NULL, NULL, w->in, w->n_in, NULL, &out, 1, &err) ||
            f32_difference(out, w->want) != 0)
            w->wrong++;
        sonde_value_release(out);
    }
    return NULL;
}

TEST(two_threads_run_one_session_and_two_sessions_one_model_with_equal_results)
{
    for (size_t m = 1; m < sizeof float_models / sizeof *float_models; m++) {
        sonde_error err;
        sonde_context *ctx = new_context(2, NULL);
        sonde_model *model;
        sonde_session *s[2];
        sonde_value *in[MAX_PORTS] = {0}, *want = NULL;
        size_t n;
        CHECK_OK(zoo_model(ctx, float_models[m], &model, &err));
        CHECK_OK(sonde_session_create(model, NULL, &s[0], &err));
        CHECK_OK(sonde_session_create(model, NULL, &s[1], &err));
        CHECK_MSG(sn_session_program(s[0]->core) == sn_session_program(s[1]->core),
                  "two sessions of one model have two copies of its weights");
        CHECK_OK(random_inputs(ctx, s[0], 1, in, &n, &err));
        CHECK_OK(sonde_session_run(s[0], NULL, NULL, in, n, NULL, &want, 1, &err));
        worker w[4];
        pthread_t t[4];
        for (int i = 0; i < 4; i++) {
            w[i] = (worker){s[i / 2], in, n, want, 0};
            CHECK_EQ(pthread_create(&t[i], NULL, work, &w[i]), 0);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(w[i].wrong, 0);
        release_all(in, n);
        sonde_value_release(want);
        sonde_session_release(s[0]);
        sonde_session_release(s[1]);
        sonde_model_release(model);
        sonde_context_release(ctx);
    }
}

/* ------------------------------------------------------------------ memory plan */

typedef struct lifetime {
    uint32_t first, last;
} lifetime;

TEST(values_that_live_at_the_same_time_never_share_memory)
{
    sonde_error err;
    sonde_context *ctx = new_context(1, NULL);
    sonde_model *model;
    sonde_session *s;
    sonde_value *in[MAX_PORTS] = {0}, *out = NULL;
    size_t n;
    CHECK_OK(zoo_model(ctx, "regnet_x_400mf", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    CHECK_OK(random_inputs(ctx, s, 1, in, &n, &err));
    CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, NULL, &out, 1, &err));
    const sn_binding *b = sn_session_program(s->core)->bindings;
    CHECK(b != NULL);
    lifetime *life = calloc(b->n_slots, sizeof *life);
    size_t sum = 0;
    for (uint32_t i = 0; i < b->n_steps; i++) {
        for (uint32_t o = 0; o < b->steps[i].n_out; o++)
            if (sn_wants(&b->steps[i], o))
                life[b->root[b->steps[i].out[o]]] = (lifetime){i, i};
        for (uint32_t k = 0; k < b->steps[i].n_in; k++)
            if (sn_has(&b->steps[i], k))
                life[b->root[b->steps[i].in[k]]].last = i;
    }
    for (uint32_t x = 0; x < b->n_slots; x++) {
        if (b->place[x] != SN_PLACE_ARENA || b->root[x] != x)
            continue;
        sum += b->slots[x].t.bytes;
        CHECK(b->offset[x] + b->slots[x].t.bytes <= b->arena_bytes);
        for (uint32_t y = 0; y < x; y++) {
            if (b->place[y] != SN_PLACE_ARENA || b->root[y] != y)
                continue;
            /* A step may write over an input that dies in it. */
            bool apart = life[x].last <= life[y].first || life[y].last <= life[x].first;
            bool disjoint = b->offset[x] + b->slots[x].t.bytes <= b->offset[y] ||
                            b->offset[y] + b->slots[y].t.bytes <= b->offset[x];
            bool view = b->offset[x] == b->offset[y] && b->slots[x].t.bytes == b->slots[y].t.bytes;
            CHECK_MSG(apart || disjoint || view, "slots %u and %u", x, y);
        }
    }
    CHECK_MSG(b->arena_bytes * 3 < sum, "arena %zu for %zu bytes of values", b->arena_bytes, sum);
    free(life);
    release_all(in, n);
    sonde_value_release(out);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
}

/* Steps of a zoo model's binding, and how many of them only follow from shapes. */
static void count_steps(const char *name, int no_optimize, uint32_t *steps, uint32_t *idle)
{
    sonde_error err;
    sonde_context *ctx = new_context(1, NULL);
    sonde_model *model;
    sonde_session *s;
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.no_optimize = no_optimize;
    sonde_value *in[MAX_PORTS] = {0}, *out[MAX_PORTS] = {0};
    size_t n;
    CHECK_OK(zoo_model(ctx, name, &model, &err));
    CHECK_OK(sonde_session_create(model, &so, &s, &err));
    CHECK_OK(random_inputs(ctx, s, 1, in, &n, &err));
    const size_t n_out = sonde_session_output_count(s);
    CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, NULL, out, n_out, &err));
    const sn_program *p = sn_session_program(s->core);
    const sn_binding *b = p->bindings;
    *steps = b->n_steps;
    *idle = 0;
    for (uint32_t i = 0; i < b->n_steps; i++) {
        const sn_step *step = &b->steps[i];
        CHECK_EQ(step->index, i);
        *idle += strcmp(step->op->name, "Shape") == 0 || b->root[step->out[0]] != step->out[0];
    }
    CHECK_EQ(b->n_steps + b->n_skipped, p->n_steps);
    release_all(in, n);
    release_all(out, n_out);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
}

TEST(what_follows_from_shapes_is_done_when_a_binding_is_made)
{
    uint32_t steps, idle, all, all_idle;
    count_steps("bert_mini", 0, &steps, &idle);
    count_steps("bert_mini", 1, &all, &all_idle);
    CHECK_EQ(idle, 0);
    CHECK(all_idle > 0);
    CHECK_MSG(steps * 4 < all, "%u steps of %u", steps, all);
}

/* ------------------------------------------------------------------ ports */

TEST(an_output_buffer_of_the_caller_is_written_to)
{
    sonde_error err;
    sonde_context *ctx = new_context(1, NULL);
    sonde_model *model;
    sonde_session *s;
    sonde_value *in[MAX_PORTS] = {0}, *fresh = NULL, *given = NULL;
    size_t n;
    CHECK_OK(zoo_model(ctx, "tiny_mlp", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    CHECK_OK(random_inputs(ctx, s, 3, in, &n, &err));
    CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, NULL, &fresh, 1, &err));
    float buffer[4096];
    CHECK(sonde_tensor_bytes(fresh) <= sizeof buffer);
    CHECK_OK(sonde_tensor_borrow(ctx, SONDE_DTYPE_F32, sonde_tensor_dims(fresh),
                                 sonde_tensor_rank(fresh), buffer, sonde_tensor_bytes(fresh),
                                 &given, &err));
    CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, NULL, &given, 1, &err));
    CHECK(memcmp(buffer, sonde_tensor_data(fresh), sonde_tensor_bytes(fresh)) == 0);
    sonde_value *wrong = NULL;
    const int64_t dims[1] = {3};
    CHECK_OK(sonde_tensor_create(ctx, SONDE_DTYPE_F32, dims, 1, NULL, 12, &wrong, &err));
    CHECK_EQ(sonde_session_run(s, NULL, NULL, in, n, NULL, &wrong, 1, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "the buffer given is f32[3]");
    release_all(in, n);
    sonde_value_release(wrong);
    sonde_value_release(fresh);
    sonde_value_release(given);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
}

TEST(inner_values_can_be_outputs_and_feeds_and_partial_runs_add_up_to_the_whole)
{
    sonde_error err;
    sonde_context *ctx = new_context(1, NULL);
    sonde_model *model;
    sonde_session *s;
    sonde_value *in[MAX_PORTS] = {0}, *want = NULL;
    size_t n;
    CHECK_OK(zoo_model(ctx, "tiny_cnn", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    CHECK_OK(random_inputs(ctx, s, 1, in, &n, &err));
    CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, NULL, &want, 1, &err));
    /* Every inner value, also those a fusion would swallow: out, and back in instead of the input.
     */
    const sn_graph *g = model->core->graph;
    for (const sn_node *node = g->first; node; node = node->next) {
        const char *name = node->out[0]->name;
        sonde_value *inner = NULL, *got = NULL;
        CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, &name, &inner, 1, &err));
        sonde_status st = sonde_session_run(s, NULL, &name, &inner, 1, NULL, &got, 1, &err);
        if (st == SONDE_INVALID_ARGUMENT) { /* off the path that every result goes through */
            CHECK_HAS(err.message, "is missing");
        } else {
            CHECK_OK(st);
            CHECK_MSG(f32_difference(got, want) <= 1e-4, "fed at '%s': %g", name,
                      f32_difference(got, want));
        }
        sonde_value_release(inner);
        sonde_value_release(got);
    }
    sonde_value_set *set = NULL;
    CHECK_OK(sonde_session_partial_run(s, NULL, NULL, in, n, &set, &err));
    CHECK_EQ(sonde_value_set_count(set), 1); /* everything depends on the one input: the output */
    CHECK(f32_difference(sonde_value_set_value(set, 0), want) <= 1e-4);
    sonde_value_set_release(set);
    const char *nobody = "no such value";
    sonde_value *out = NULL;
    CHECK_EQ(sonde_session_run(s, NULL, NULL, in, n, &nobody, &out, 1, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "no such value");
    release_all(in, n);
    sonde_value_release(want);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
}

TEST(a_cancelled_run_stops_and_the_session_stays_usable)
{
    sonde_error err;
    sonde_context *ctx = new_context(1, NULL);
    sonde_model *model;
    sonde_session *s;
    sonde_value *in[MAX_PORTS] = {0}, *out = NULL;
    sonde_cancel_token *token;
    size_t n;
    CHECK_OK(zoo_model(ctx, "tiny_cnn", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    CHECK_OK(random_inputs(ctx, s, 1, in, &n, &err));
    CHECK_OK(sonde_cancel_token_create(&token, &err));
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = token;
    sonde_cancel(token);
    CHECK_EQ(sonde_session_run(s, &o, NULL, in, n, NULL, &out, 1, &err), SONDE_CANCELLED);
    CHECK(out == NULL);
    sonde_cancel_reset(token);
    CHECK_OK(sonde_session_run(s, &o, NULL, in, n, NULL, &out, 1, &err));
    sonde_cancel_token_release(token);
    release_all(in, n);
    sonde_value_release(out);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
}

TEST(each_shape_gets_its_binding_and_wrong_inputs_are_named)
{
    sonde_error err;
    sonde_context *ctx = new_context(1, NULL);
    sonde_model *model;
    sonde_session *s;
    size_t n;
    CHECK_OK(zoo_model(ctx, "tiny_mlp", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    for (int64_t batch = 0; batch < 40; batch++) {
        sonde_value *in[MAX_PORTS] = {0}, *out = NULL;
        CHECK_OK(random_inputs(ctx, s, batch, in, &n, &err));
        CHECK_OK(sonde_session_run(s, NULL, NULL, in, n, NULL, &out, 1, &err));
        CHECK_EQ(sonde_tensor_dims(out)[0], batch);
        sonde_value_release(out);
        release_all(in, n);
    }
    const int64_t dims[2] = {1, 1};
    sonde_value *bad = NULL, *out = NULL;
    CHECK_OK(sonde_tensor_create(ctx, SONDE_DTYPE_I32, dims, 2, NULL, 4, &bad, &err));
    CHECK_EQ(sonde_session_run(s, NULL, NULL, &bad, 1, NULL, &out, 1, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, sonde_session_input_name(s, 0));
    CHECK_HAS(err.message, "i32[1, 1]");
    sonde_value_release(bad);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(ctx);
}

TEST_MAIN()
