/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions through the public API, on built-in models. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sonde/experimental/compare.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "test.h"

typedef struct fixture {
    sonde_model *model;
    sonde_session *session;
} fixture;

static sonde_status open_zoo(fixture *f, const char *name, const sonde_session_options *o,
                             sonde_error *err)
{
    *f = (fixture){NULL, NULL};
    const sonde_status st = sonde_zoo_build(NULL, name, 1, &f->model, err);
    return st ? st : sonde_session_create(f->model, o, &f->session, err);
}

static void close_zoo(fixture *f)
{
    sonde_session_release(f->session);
    sonde_model_release(f->model);
}

static sonde_value *ramp(const int64_t *dims, size_t rank)
{
    int64_t n = 1;
    for (size_t i = 0; i < rank; i++)
        n *= dims[i];
    sonde_value *v = NULL;
    if (sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, rank, NULL, (size_t)n * 4, &v, NULL))
        return NULL;
    for (int64_t i = 0; i < n; i++)
        ((float *)sonde_tensor_data(v))[i] = (float)(i % 17) / 17.0f - 0.4f;
    return v;
}

TEST(the_inputs_of_the_last_run_are_known)
{
    sonde_error err;
    fixture f;
    char text[64] = "x", few[8];
    CHECK_EQ(sonde_session_inputs_text(NULL, text, sizeof text), 0);
    CHECK_STR(text, "");
    CHECK_OK(open_zoo(&f, "tiny_cnn", NULL, &err));
    CHECK_EQ(sonde_session_inputs_text(f.session, text, sizeof text), 0);
    for (int64_t batch = 1; batch <= 2; batch++) {
        sonde_value *in = ramp((const int64_t[]){batch, 3, 32, 32}, 4), *out = NULL;
        CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
        sonde_value_release(out);
        sonde_value_release(in);
        CHECK_EQ(sonde_session_inputs_text(f.session, text, sizeof text), 23);
        CHECK_STR(text, batch == 1 ? "input f32[1, 3, 32, 32]" : "input f32[2, 3, 32, 32]");
    }
    CHECK_EQ(sonde_session_inputs_text(f.session, few, sizeof few), 23);
    CHECK_STR(few, "input f");
    CHECK_EQ(sonde_session_inputs_text(f.session, NULL, 0), 23);
    close_zoo(&f);
}

TEST(inputs_and_outputs_are_described)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_cnn", NULL, &err));
    CHECK_EQ(sonde_session_input_count(f.session), 1);
    CHECK_EQ(sonde_session_output_count(f.session), 1);
    CHECK_STR(sonde_session_input_name(f.session, 0), "input");
    CHECK(sonde_session_input_name(f.session, 1) == NULL);
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    CHECK_OK(sonde_session_input_info(f.session, 0, &info, &err));
    CHECK_EQ(info.kind, SONDE_KIND_TENSOR);
    CHECK_EQ(info.dtype, SONDE_DTYPE_F32);
    CHECK_EQ(info.rank, 4);
    CHECK_EQ(info.dims[0], -1);
    CHECK_STR(info.dim_names[0], "batch");
    CHECK_STR(info.onnx_type, "tensor(float)");
    CHECK_EQ(info.dims[1], 3);
    CHECK(info.dim_names[1] == NULL);
    CHECK_STR(info.text, "f32[batch, 3, 32, 32]");
    CHECK_EQ(info.optional_input, 0);
    CHECK_OK(sonde_session_output_info(f.session, 0, &info, &err));
    CHECK_STR(info.name, "output");
    CHECK_EQ(sonde_session_output_info(f.session, 1, &info, &err), SONDE_INVALID_ARGUMENT);
    close_zoo(&f);
}

TEST(a_run_makes_outputs_or_writes_to_the_callers)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_cnn", NULL, &err));
    const int64_t dims[4] = {2, 3, 32, 32}, out_dims[2] = {2, 10};
    sonde_value *in = ramp(dims, 4), *fresh = NULL, *mine = NULL;
    float memory[20] = {0};
    CHECK_OK(sonde_tensor_borrow(NULL, SONDE_DTYPE_F32, out_dims, 2, memory, sizeof memory, &mine,
                                 &err));
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &fresh, 1, &err));
    CHECK_EQ(sonde_tensor_rank(fresh), 2);
    CHECK_EQ(sonde_tensor_dims(fresh)[0], 2);
    CHECK_EQ(sonde_tensor_dims(fresh)[1], 10);
    sonde_value *out = mine;
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
    CHECK(out == mine);
    CHECK_OK(sonde_value_compare(mine, fresh, 1e-6, 1e-6, &err));
    sonde_value_release(in);
    sonde_value_release(fresh);
    sonde_value_release(mine);
    close_zoo(&f);
}

TEST(passes_do_not_change_results)
{
    static const char *const names[] = {"tiny_mlp", "tiny_cnn"};
    static const int64_t shapes[2][4] = {{3, 16, 0, 0}, {3, 3, 32, 32}};
    for (int k = 0; k < 2; k++) {
        sonde_error err;
        fixture fast, plain;
        sonde_session_options o = SONDE_INIT(sonde_session_options);
        o.no_optimize = 1;
        o.no_prepack = 1;
        CHECK_OK(open_zoo(&fast, names[k], NULL, &err));
        CHECK_OK(open_zoo(&plain, names[k], &o, &err));
        sonde_value *in = ramp(shapes[k], k ? 4 : 2), *a = NULL, *b = NULL;
        CHECK_OK(sonde_session_run(fast.session, NULL, NULL, &in, 1, NULL, &a, 1, &err));
        CHECK_OK(sonde_session_run(plain.session, NULL, NULL, &in, 1, NULL, &b, 1, &err));
        CHECK_OK(sonde_value_compare(a, b, 1e-4, 1e-5, &err));
        sonde_value_release(in);
        sonde_value_release(a);
        sonde_value_release(b);
        close_zoo(&fast);
        close_zoo(&plain);
    }
}

TEST(a_loop_reads_values_from_outside_its_body)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_loop", NULL, &err));
    const int64_t dims[1] = {4}, steps = 3;
    sonde_value *in[2] = {ramp(dims, 1), NULL}, *out[2] = {NULL, NULL};
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I64, NULL, 0, &steps, 8, &in[1], &err));
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, in, 2, NULL, out, 2, &err));
    CHECK_EQ(sonde_tensor_dims(out[1])[0], 3);
    CHECK_EQ(sonde_tensor_dims(out[1])[1], 4);
    const float *final = sonde_tensor_data(out[0]), *history = sonde_tensor_data(out[1]);
    for (int i = 0; i < 4; i++)
        CHECK(final[i] == history[8 + i]);
    for (int i = 0; i < 2; i++) {
        sonde_value_release(in[i]);
        sonde_value_release(out[i]);
    }
    close_zoo(&f);
}

TEST(an_if_takes_the_branch_of_its_condition)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_if", NULL, &err));
    const int64_t dims[2] = {1, 4};
    const float ones[4] = {1, 1, 1, 1};
    for (uint8_t condition = 0; condition < 2; condition++) {
        sonde_value *in[2] = {NULL, NULL}, *out = NULL;
        CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_BOOL, NULL, 0, &condition, 1, &in[0], &err));
        CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 2, ones, 16, &in[1], &err));
        CHECK_OK(sonde_session_run(f.session, NULL, NULL, in, 2, NULL, &out, 1, &err));
        const float y = *(const float *)sonde_tensor_data(out);
        CHECK_MSG(condition ? y >= 1 && y <= 3 : y >= 10 && y <= 12, "%g", (double)y);
        sonde_value_release(in[0]);
        sonde_value_release(in[1]);
        sonde_value_release(out);
    }
    close_zoo(&f);
}

TEST(sequences_strings_and_dynamic_shapes_come_out)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_sequence", NULL, &err));
    const int64_t rows[2] = {6, 4};
    sonde_value *in = ramp(rows, 2), *out[3] = {NULL, NULL, NULL};
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, out, 3, &err));
    CHECK_EQ(sonde_value_kind(out[0]), SONDE_KIND_SEQUENCE);
    CHECK_EQ(sonde_value_count(out[0]), 3);
    CHECK_EQ(*(const int64_t *)sonde_tensor_data(out[1]), 3);
    CHECK_EQ(sonde_tensor_dims(out[2])[0], 8);
    sonde_value_release(in);
    for (int i = 0; i < 3; i++)
        sonde_value_release(out[i]);
    close_zoo(&f);

    CHECK_OK(open_zoo(&f, "tiny_text", NULL, &err));
    const int64_t two[1] = {2};
    const sonde_string words[2] = {{"hello", 5}, {"there", 5}};
    sonde_value *text[2] = {NULL, NULL};
    CHECK_OK(sonde_tensor_create_strings(NULL, two, 1, words, &in, &err));
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, text, 2, &err));
    const sonde_string *answer = sonde_tensor_data(text[0]);
    CHECK_EQ(answer[0].size, 6);
    CHECK_EQ(memcmp(answer[0].data, "hello!", 6), 0);
    CHECK_EQ(answer[1].size, 1);
    sonde_value_release(in);
    sonde_value_release(text[0]);
    sonde_value_release(text[1]);
    close_zoo(&f);

    CHECK_OK(open_zoo(&f, "tiny_dynamic", NULL, &err));
    const float x[5] = {-1, 4, 0, 9, -2};
    const int64_t five[1] = {5};
    sonde_value *picked[2] = {NULL, NULL};
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, five, 1, x, sizeof x, &in, &err));
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, picked, 2, &err));
    CHECK_EQ(sonde_tensor_count(picked[0]), 2);
    CHECK_EQ(((const int64_t *)sonde_tensor_data(picked[0]))[1], 3);
    CHECK(((const float *)sonde_tensor_data(picked[1]))[1] == 3.0f);
    sonde_value_release(in);
    sonde_value_release(picked[0]);
    sonde_value_release(picked[1]);
    close_zoo(&f);
}

TEST(attention_runs_at_any_length)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_attention", NULL, &err));
    for (int64_t length = 1; length <= 9; length += 4) {
        const int64_t dims[2] = {2, length};
        int64_t ids[18], mask[18];
        for (int i = 0; i < 18; i++) {
            ids[i] = i * 7 % 128;
            mask[i] = 1;
        }
        const size_t bytes = (size_t)(2 * length) * 8;
        sonde_value *in[2] = {NULL, NULL}, *out = NULL;
        CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I64, dims, 2, ids, bytes, &in[0], &err));
        CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I64, dims, 2, mask, bytes, &in[1], &err));
        CHECK_OK(sonde_session_run(f.session, NULL, NULL, in, 2, NULL, &out, 1, &err));
        CHECK_EQ(sonde_tensor_dims(out)[1], length);
        for (int64_t i = 0; i < sonde_tensor_count(out); i++)
            CHECK(isfinite((double)((const float *)sonde_tensor_data(out))[i]));
        sonde_value_release(in[0]);
        sonde_value_release(in[1]);
        sonde_value_release(out);
    }
    close_zoo(&f);
}

TEST(inner_values_can_be_asked_for_and_fed)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_mlp", NULL, &err));
    const int64_t dims[2] = {1, 16};
    const char *names[2] = {"/act/Relu_output_0", "output"};
    sonde_value *in = ramp(dims, 2), *out[2] = {NULL, NULL}, *again = NULL;
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, names, out, 2, &err));
    CHECK_EQ(sonde_tensor_dims(out[0])[1], 32);
    CHECK_OK(sonde_session_run(f.session, NULL, names, out, 1, names + 1, &again, 1, &err));
    CHECK_OK(sonde_value_compare(again, out[1], 1e-5, 1e-6, &err));
    const char *wrong = "no such value";
    sonde_value *none = NULL;
    CHECK(sonde_session_run(f.session, NULL, NULL, &in, 1, &wrong, &none, 1, &err) != SONDE_OK);
    CHECK_HAS(err.message, "no such value");
    sonde_value_release(in);
    sonde_value_release(out[0]);
    sonde_value_release(out[1]);
    sonde_value_release(again);
    close_zoo(&f);
}

TEST(a_partial_run_returns_what_the_rest_needs)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_attention", NULL, &err));
    const int64_t dims[2] = {1, 4}, ids[4] = {1, 2, 3, 4}, mask[4] = {1, 1, 1, 0};
    const char *names[2] = {"input_ids", "attention_mask"};
    sonde_value *in[2] = {NULL, NULL}, *whole = NULL, *rest = NULL;
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I64, dims, 2, ids, 32, &in[0], &err));
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I64, dims, 2, mask, 32, &in[1], &err));
    CHECK_OK(sonde_session_run(f.session, NULL, names, in, 2, NULL, &whole, 1, &err));
    sonde_value_set *set = NULL;
    CHECK_OK(sonde_session_partial_run(f.session, NULL, names + 1, in + 1, 1, &set, &err));
    CHECK(sonde_value_set_count(set) > 0);
    const char *feed_names[8] = {names[0]};
    sonde_value *feeds[8] = {in[0]};
    const size_t n = sonde_value_set_count(set);
    CHECK(n < 8);
    for (size_t i = 0; i < n; i++) {
        feed_names[i + 1] = sonde_value_set_name(set, i);
        feeds[i + 1] = sonde_value_set_value(set, i);
    }
    CHECK_OK(sonde_session_run(f.session, NULL, feed_names, feeds, n + 1, NULL, &rest, 1, &err));
    CHECK_OK(sonde_value_compare(rest, whole, 1e-5, 1e-6, &err));
    sonde_value_set_release(set);
    sonde_value_release(in[0]);
    sonde_value_release(in[1]);
    sonde_value_release(whole);
    sonde_value_release(rest);
    close_zoo(&f);
}

TEST(wrong_inputs_are_refused_with_their_names)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_mlp", NULL, &err));
    const int64_t dims[2] = {1, 15}, good[2] = {1, 16};
    sonde_value *in = ramp(dims, 2), *fine = ramp(good, 2), *out = NULL, *null = NULL;
    CHECK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err) != SONDE_OK);
    CHECK_HAS(err.message, "input");
    CHECK(out == NULL);
    CHECK(sonde_session_run(f.session, NULL, NULL, NULL, 0, NULL, &out, 1, &err) != SONDE_OK);
    CHECK_HAS(err.message, "input");
    CHECK_EQ(sonde_session_run(f.session, NULL, NULL, &null, 1, NULL, &out, 1, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_session_run(NULL, NULL, NULL, &fine, 1, NULL, &out, 1, &err),
             SONDE_INVALID_ARGUMENT);
    const char *wrong = "imput";
    CHECK(sonde_session_run(f.session, NULL, &wrong, &fine, 1, NULL, &out, 1, &err) != SONDE_OK);
    CHECK_HAS(err.message, "imput");
    out = in; /* of the wrong shape to be written to */
    CHECK(sonde_session_run(f.session, NULL, NULL, &fine, 1, NULL, &out, 1, &err) != SONDE_OK);
    CHECK(out == in);
    sonde_value_release(in);
    sonde_value_release(fine);
    close_zoo(&f);
}

TEST(unknown_passes_are_refused_with_those_there_are)
{
    sonde_error err;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    const char *names[1] = {"make-it-fast"};
    o.disabled_passes = names;
    o.disabled_pass_count = 1;
    fixture f;
    CHECK_EQ(open_zoo(&f, "tiny_mlp", &o, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "make-it-fast");
    CHECK(sonde_pass_name(0) != NULL);
    CHECK_HAS(err.message, sonde_pass_name(0));
    CHECK(sonde_pass_summary(0) != NULL);
    CHECK(sonde_pass_name(1000) == NULL);
    CHECK(!sonde_pass_reads_weights(1000));
    sonde_model_release(f.model);
}

TEST(a_cancelled_run_says_so_and_can_be_repeated)
{
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_cnn", NULL, &err));
    sonde_cancel_token *token = NULL;
    CHECK_OK(sonde_cancel_token_create(&token, &err));
    const int64_t dims[4] = {1, 3, 32, 32};
    sonde_value *in = ramp(dims, 4), *out = NULL;
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = token;
    sonde_cancel(token);
    CHECK_EQ(sonde_session_run(f.session, &o, NULL, &in, 1, NULL, &out, 1, &err), SONDE_CANCELLED);
    CHECK(out == NULL);
    sonde_cancel_reset(token);
    CHECK_OK(sonde_session_run(f.session, &o, NULL, &in, 1, NULL, &out, 1, &err));
    sonde_cancel_token_release(token);
    sonde_value_release(in);
    sonde_value_release(out);
    close_zoo(&f);
}

/* ------------------------------------------------------------------ many threads */
typedef struct worker {
    sonde_session *session;
    const sonde_value *expected;
    int errors;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < 20; i++) {
        const int64_t dims[4] = {1 + i % 2, 3, 32, 32};
        sonde_value *in = ramp(dims, 4), *out = NULL;
        if (sonde_session_run(w->session, NULL, NULL, &in, 1, NULL, &out, 1, NULL) ||
            (i % 2 == 0 && sonde_value_compare(out, w->expected, 1e-6, 1e-6, NULL)))
            w->errors++;
        sonde_value_release(in);
        sonde_value_release(out);
    }
    return NULL;
}

TEST(one_session_serves_many_threads)
{
    enum { THREADS = 4 };
    sonde_error err;
    fixture f;
    CHECK_OK(open_zoo(&f, "tiny_cnn", NULL, &err));
    const int64_t dims[4] = {1, 3, 32, 32};
    sonde_value *in = ramp(dims, 4), *expected = NULL;
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &expected, 1, &err));
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){f.session, expected, 0};
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    int errors = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        errors += workers[i].errors;
    }
    CHECK_EQ(errors, 0);
    sonde_value_release(in);
    sonde_value_release(expected);
    close_zoo(&f);
}

/* Threads of the context, or of the session. */
static void run_in_child(int context_threads, int session_threads)
{
    sonde_error err;
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    co.threads = context_threads;
    so.threads = session_threads;
    sonde_context *c = NULL;
    fixture f = {NULL, NULL};
    CHECK_OK(sonde_context_create(&co, &c, &err));
    CHECK_OK(sonde_zoo_build(c, "tiny_cnn", 1, &f.model, &err));
    CHECK_OK(sonde_session_create(f.model, &so, &f.session, &err));
    const int64_t dims[4] = {4, 3, 32, 32};
    sonde_value *in = ramp(dims, 4), *out = NULL, *again = NULL;
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
    const pid_t pid = fork();
    if (pid == 0) {
        const sonde_status st =
            sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &again, 1, &err);
        const bool same = !st && !sonde_value_compare(again, out, 0, 0, &err);
        close_zoo(&f); /* must not wait for threads of the parent */
        _exit(same ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    sonde_value_release(in);
    sonde_value_release(out);
    close_zoo(&f);
    sonde_context_release(c);
}

TEST(a_forked_child_runs_on_threads_of_its_own)
{
#if defined(__SANITIZE_THREAD__)
    SKIP_TEST("ThreadSanitizer ends a forked child that starts threads");
#endif
    if (getenv("SONDE_EMULATED"))
        SKIP_TEST("an emulator cannot fork a process with threads");
    run_in_child(2, 0);
    run_in_child(1, 2);
}

/* The model fits, a run at a large batch does not: refused with figures, and the session goes on.
 */
TEST(a_run_beyond_the_memory_limit_is_refused_before_it_begins)
{
    sonde_error err;
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    co.threads = 1;
    co.max_memory = 4 << 20;
    sonde_context *c = NULL;
    fixture f = {NULL, NULL};
    CHECK_OK(sonde_context_create(&co, &c, &err));
    CHECK_OK(sonde_zoo_build(c, "tiny_cnn", 1, &f.model, &err));
    CHECK_OK(sonde_session_create(f.model, NULL, &f.session, &err));
    const int64_t small[4] = {1, 3, 32, 32}, large[4] = {200, 3, 32, 32};
    sonde_value *in = ramp(large, 4), *out = NULL;
    CHECK_EQ(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err),
             SONDE_OUT_OF_MEMORY);
    CHECK_HAS(err.message, "activations");
    CHECK_HAS(err.message, "the memory limit (max_memory, --max-memory) is 4194304");
    CHECK(out == NULL);
    sonde_value_release(in);
    in = ramp(small, 4);
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
    sonde_value_release(in);
    sonde_value_release(out);
    close_zoo(&f);
    sonde_context_release(c);
}

TEST(objects_may_be_released_in_any_order)
{
    sonde_error err;
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    co.threads = 2;
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    CHECK_OK(sonde_context_create(&co, &c, &err));
    CHECK_OK(sonde_zoo_build(c, "tiny_mlp", 1, &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &session, &err));
    sonde_context_release(c);
    sonde_model_release(model);
    const int64_t dims[2] = {1, 16};
    sonde_value *in = ramp(dims, 2), *out = NULL;
    CHECK_OK(sonde_session_run(session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
    sonde_session_release(session);
    CHECK_EQ(sonde_tensor_count(out), 10);
    sonde_value_release(out);
    sonde_value_release(in);
}

TEST(null_objects_are_harmless)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_context_release(NULL);
    sonde_model_release(NULL);
    sonde_session_release(NULL);
    sonde_cancel_token_release(NULL);
    sonde_cancel(NULL);
    CHECK_EQ(sonde_session_input_count(NULL), 0);
    CHECK(sonde_session_output_name(NULL, 0) == NULL);
    CHECK_STR(sonde_model_producer(NULL), "");
    CHECK_EQ(sonde_model_metadata_count(NULL), 0);
    CHECK(sonde_model_metadata_key(NULL, 0) == NULL);
    CHECK_EQ(sonde_session_create(NULL, NULL, &session, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_model_load(NULL, NULL, NULL, &model, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_model_load(NULL, "/no/such/model.onnx", NULL, &model, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "/no/such/model.onnx");
    CHECK(sonde_model_load_memory(NULL, "not a model", 11, NULL, &model, &err) != SONDE_OK);
    CHECK(model == NULL);
}

TEST(an_unknown_pass_is_told_with_passes_that_exist)
{
    char name[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    const char *disabled = name;
    sonde_error err = {0};
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    o.disabled_passes = &disabled;
    o.disabled_pass_count = 1;
    CHECK_OK(sonde_zoo_build(NULL, "tiny_mlp", 0, &model, &err));
    CHECK_EQ(sonde_session_create(model, &o, &session, &err), SONDE_INVALID_ARGUMENT);
    char *at = strstr(err.message, "the passes are ");
    CHECK(at != NULL);
    CHECK(strlen(err.message) < sizeof err.message - 8); /* nothing was cut off */
    char *tail = at ? strstr(at, " \xE2\x80\xA6 and ") : NULL;
    size_t listed = 0, all = 0, more = 0;
    while (sonde_pass_name(all))
        all++;
    if (tail) {
        *tail = 0;
        more = strtoul(tail + strlen(" \xE2\x80\xA6 and "), NULL, 10);
    }
    for (char *word = at ? at + strlen("the passes are ") : NULL, *next; word; word = next) {
        next = strstr(word, ", ");
        if (next) {
            *next = 0;
            next += 2;
        }
        CHECK_STR(word, sonde_pass_name(listed));
        listed++;
    }
    CHECK_EQ(listed + more, all);
    sonde_model_release(model);
}

TEST_MAIN()
