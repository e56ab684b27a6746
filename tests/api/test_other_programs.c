/* SPDX-License-Identifier: Apache-2.0 */
/* Runs with other feeds or outputs than the model's own: each set is a program of its own, of which
 * a session keeps a few. Answers are right whether it was kept or is made again. */
#include "exec/other_programs.h"
#include "plan/binding.h"
#include "sonde/experimental/profile.h"
#include "zoo_session.h"

enum { SETS = 1000, MAX_VALUES = 64 };

typedef struct fixture {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    sonde_value *in[MAX_PORTS];
    size_t n_in;
    /* Every f32 value that a node makes, and what it is. */
    const char *names[MAX_VALUES];
    sonde_value *expected[MAX_VALUES];
    size_t n;
} fixture;

static void open_model(fixture *f, const char *model)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    memset(f, 0, sizeof *f);
    o.threads = 1;
    CHECK_OK(sonde_context_create(&o, &f->context, &err));
    CHECK_OK(zoo_model(f->context, model, &f->model, &err));
    CHECK_OK(sonde_session_create(f->model, NULL, &f->session, &err));
    CHECK_OK(random_inputs(f->context, f->session, 1, f->in, &f->n_in, &err));
    for (const sn_node *n = f->model->core->graph->first; n && f->n < MAX_VALUES; n = n->next)
        if (*n->out[0]->name)
            f->names[f->n++] = n->out[0]->name;
    CHECK_OK(sonde_session_run(f->session, NULL, NULL, f->in, f->n_in, f->names, f->expected, f->n,
                               &err));
}

static void close_model(fixture *f)
{
    release_all(f->in, f->n_in);
    release_all(f->expected, f->n);
    sonde_session_release(f->session);
    sonde_model_release(f->model);
    sonde_context_release(f->context);
}

/* Asks for two values, a different pair for every number. */
static void run_pair(fixture *f, size_t number)
{
    sonde_error err;
    const size_t a = number / (f->n - 1) % f->n, step = 1 + number % (f->n - 1);
    const size_t pair[2] = {a, (a + step) % f->n};
    const char *names[2] = {f->names[pair[0]], f->names[pair[1]]};
    sonde_value *out[2] = {NULL, NULL};
    CHECK_OK(sonde_session_run(f->session, NULL, NULL, f->in, f->n_in, names, out, 2, &err));
    for (int i = 0; i < 2; i++)
        CHECK_MSG(f32_difference(out[i], f->expected[pair[i]]) <= 1e-4, "%s: %g", names[i],
                  f32_difference(out[i], f->expected[pair[i]]));
    release_all(out, 2);
}

static size_t programs_of(const fixture *f)
{
    size_t n = 0;
    for (const sn_program *p = f->model->core->programs; p; p = p->next_shared)
        n++;
    return n;
}

static size_t held_bytes(const fixture *f)
{
    return atomic_load(&f->context->alloc.live_bytes);
}

TEST(a_thousand_sets_of_outputs_take_no_more_memory_than_the_first_few)
{
    fixture f;
    open_model(&f, "tiny_resnet");
    CHECK_MSG(f.n * (f.n - 1) >= SETS, "%zu values", f.n);
    for (size_t i = 0; i < SN_MAX_OTHER_PROGRAMS; i++)
        run_pair(&f, i);
    const size_t held = held_bytes(&f);
    for (size_t i = 0; i < SETS; i++) {
        run_pair(&f, i);
        CHECK(programs_of(&f) <= 1 + SN_MAX_OTHER_PROGRAMS);
    }
    for (size_t i = 0; i < SN_MAX_OTHER_PROGRAMS; i++)
        run_pair(&f, i);
    CHECK_EQ(held_bytes(&f), held);
    close_model(&f);
}

TEST(the_sets_used_last_are_kept)
{
    fixture f;
    open_model(&f, "tiny_mlp");
    const sn_program *kept[SN_MAX_OTHER_PROGRAMS];
    for (size_t i = 0; i < SN_MAX_OTHER_PROGRAMS; i++) {
        run_pair(&f, i);
        kept[i] = f.model->core->programs; /* the newest comes first */
    }
    run_pair(&f, 0); /* used again: the second is the oldest now */
    run_pair(&f, SN_MAX_OTHER_PROGRAMS);
    for (size_t i = 0; i < SN_MAX_OTHER_PROGRAMS; i++) {
        bool there = false;
        for (const sn_program *p = f.model->core->programs; p; p = p->next_shared)
            there |= p == kept[i];
        CHECK_EQ(there, i != 1);
    }
    close_model(&f);
}

TEST(fed_inner_values_are_bounded_too)
{
    fixture f;
    open_model(&f, "tiny_cnn");
    sonde_error err;
    const char *output = f.model->core->graph->outputs.data[0]->name;
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i + 1 < f.n; i++) {
            sonde_value *out = NULL, *in[2] = {f.expected[i], f.in[0]};
            const char *feeds[2] = {f.names[i], sonde_session_input_name(f.session, 0)};
            CHECK_OK(sonde_session_run(f.session, NULL, feeds, in, 2, &output, &out, 1, &err));
            CHECK(f32_difference(out, f.expected[f.n - 1]) <= 1e-4);
            sonde_value_release(out);
            CHECK(programs_of(&f) <= 1 + SN_MAX_OTHER_PROGRAMS);
        }
    close_model(&f);
}

TEST(records_of_programs_that_were_dropped_keep_their_names)
{
    enum { RUNS = 3 * SN_MAX_OTHER_PROGRAMS };
    fixture f;
    open_model(&f, "tiny_cnn");
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profile_spans *spans = NULL;
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    for (size_t i = 0; i < RUNS; i++)
        run_pair(&f, i);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_OK(sonde_profile_spans_get(p, &spans, &err));
    size_t operators = 0, iterations = 0;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        CHECK_OK(sonde_profile_spans_span(spans, i, &s, &err));
        iterations += strcmp(s.category, "iteration") == 0;
        if (strcmp(s.category, "operator") != 0)
            continue;
        operators++;
        CHECK_MSG(*s.op_type && s.operator_index >= 0, "operator %zu has no name", operators);
    }
    CHECK_EQ(iterations, RUNS);
    CHECK(operators >= RUNS);
    sonde_profile_spans_release(spans);
    sonde_profile_release(p);
    /* Nobody wants the records any more: only the session's own are left. */
    CHECK_EQ(programs_of(&f), 1 + SN_MAX_OTHER_PROGRAMS);
    close_model(&f);
}

TEST_MAIN()
