/* SPDX-License-Identifier: Apache-2.0 */
/* From spans to rows: what counts where, and that the rows add up. */
#include "profile/synthetic.h"
#include "test.h"

static const sn_prof_row *row(const sn_prof_summary *s, const char *name)
{
    for (size_t i = 0; i < s->rows.n; i++)
        if (strcmp(s->rows.data[i].name, name) == 0)
            return &s->rows.data[i];
    return NULL;
}

static double sum(const sn_prof_summary *s)
{
    double total = 0;
    for (size_t i = 0; i < s->rows.n; i++)
        total += s->rows.data[i].mean_ns;
    return total;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 + 1e-9 * fabs(b);
}
#define CHECK_NEAR(a, b)                                                                           \
    CHECK_MSG(near((a), (b)), #a " = %.9g, expected %.9g", (double)(a), (double)(b))

TEST(warm_up_is_left_out_and_rows_add_up_to_the_mean)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_EQ(s.iterations, 2);
    CHECK_EQ(s.warmups, 1);
    CHECK_NEAR(s.ops, 2);
    CHECK_NEAR(s.wall_ns.mean, 11.0 * MS);
    CHECK_NEAR(s.wall_ns.p50, 11.0 * MS);
    CHECK_NEAR(s.wall_ns.max, 12.0 * MS);
    CHECK_EQ(s.rows.n, 4);
    CHECK_STR(s.rows.data[0].name, "Conv");
    CHECK_STR(s.rows.data[1].name, "MatMul");
    CHECK_STR(s.rows.data[2].name, "[Other]");
    CHECK_STR(s.rows.data[3].name, "[Mem alloc/free]");
    const sn_prof_row *conv = &s.rows.data[0];
    CHECK_NEAR(conv->mean_ns, 7.0 * MS);
    CHECK_NEAR(conv->share, 7.0 / 11);
    CHECK_NEAR(conv->calls, 1);
    CHECK_NEAR(conv->per_call_p50_ns, 7.0 * MS);
    CHECK_NEAR(conv->per_call_p99_ns, 6.0 * MS + 2.0 * MS * 0.99);
    CHECK_NEAR(conv->flops, 1e6);
    CHECK_NEAR(conv->input_elems, 48 + 6);
    CHECK_STR(conv->kernel, "f32_conv1x1_avx2");
    CHECK_STR(conv->example, "conv1");
    CHECK_NEAR(row(&s, "[Other]")->mean_ns, 1.5 * MS);
    CHECK_NEAR(row(&s, "[Mem alloc/free]")->mean_ns, 0.5 * MS);
    CHECK(row(&s, "[Other]")->bracket);
    CHECK_NEAR(sum(&s), s.wall_ns.mean);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

/* Conv runs twice in each of five runs, Gemm once in two of them; the last run is interrupted. */
TEST(what_a_row_usually_takes_is_not_moved_by_one_slow_run)
{
    failing_alloc m;
    sn_prof_summary s;
    sonde_error err = {0};
    failing_init(&m);
    sn_profile *p = syn_profile(&m.a);
    const uint32_t conv = syn_step(p, "Conv", "conv1", "", ""),
                   gemm = syn_step(p, "Gemm", "fc", "", "");
    for (uint64_t i = 0; i < 5; i++) {
        const uint64_t at = i * 200 * MS, slow = i == 4 ? 100 * MS : 0;
        const uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, at, 10 * MS + slow, "run")->id;
        syn_op(p, it, at, (2 + i % 2) * MS, conv);
        syn_op(p, it, at + 4 * MS, MS + slow, conv);
        if (i < 2)
            syn_op(p, it, at + 6 * MS, 3 * MS, gemm);
    }
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    double sum = 0;
    for (size_t i = 0; i < s.rows.n; i++) {
        const sn_prof_row *r = &s.rows.data[i];
        sum += r->usual_share;
        if (strcmp(r->name, "Conv") == 0) /* 3, 4, 3, 4, 103: the median of the sums */
            CHECK_NEAR(r->usual_ns, 4.0 * MS);
        if (strcmp(r->name, "Gemm") == 0) /* in two of five runs */
            CHECK_NEAR(r->usual_ns, 3.0 * MS * 2 / 5);
    }
    CHECK(fabs(sum - 1) < 1e-9);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(a_profile_without_runs_has_empty_figures)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_EQ(s.iterations, 0);
    CHECK(s.ops == 0 && s.wall_ns.mean == 0 && sum(&s) == 0);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(a_control_step_keeps_its_self_time_and_bodies_count_in_their_own_operators)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t loop = syn_step(p, "Loop", "loop", "", ""), add = syn_step(p, "Add", "add", "", "");
    p->steps.data[loop].control = true;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    uint32_t control = syn_op(p, it, 10, 80, loop);
    for (uint64_t k = 0; k < 3; k++) {
        uint32_t body = syn_span(p, SN_CAT_EXECUTOR, control, 15 + 20 * k, 18, "body")->id;
        syn_op(p, body, 16 + 20 * k, 10, add);
    }
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_NEAR(row(&s, "Loop")->mean_ns, 50);
    CHECK_NEAR(row(&s, "Add")->mean_ns, 30);
    CHECK_NEAR(row(&s, "Add")->calls, 3);
    CHECK_NEAR(row(&s, "[Other]")->mean_ns, 20);
    CHECK_NEAR(s.ops, 4);
    CHECK_NEAR(sum(&s), 100);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(memory_inside_an_operator_is_taken_off_that_operator)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t op = syn_step(p, "NonZero", "nz", "", "");
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    uint32_t first = syn_op(p, it, 10, 30, op);
    syn_span(p, SN_CAT_MEMORY, first, 12, 5, "alloc"); /* linked to its step */
    syn_op(p, it, 50, 30, op);
    syn_span(p, SN_CAT_MEMORY, it, 55, 7, "alloc"); /* linked to the run: placed by time */
    syn_span(p, SN_CAT_MEMORY, 0, 85, 3, "free");   /* not linked at all */
    sn_prof_span *foreign = syn_span(p, SN_CAT_MEMORY, it, 90, 5, "alloc");
    foreign->thread = 1; /* at the same time on another thread: no part of this wall time */
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_NEAR(row(&s, "NonZero")->mean_ns, 60 - 12);
    CHECK_NEAR(row(&s, "[Mem alloc/free]")->mean_ns, 15);
    CHECK_NEAR(row(&s, "[Mem alloc/free]")->calls, 3);
    CHECK_NEAR(row(&s, "[Other]")->mean_ns, 100 - 60 - 3);
    CHECK_NEAR(sum(&s), 100);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(memory_of_a_body_is_taken_off_the_operator_it_lies_in)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t loop = syn_step(p, "Loop", "loop", "", ""), op = syn_step(p, "NonZero", "nz", "", "");
    uint32_t model = syn_span(p, SN_CAT_MODEL, 0, 0, 100, "tiny")->id;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, model, 0, 100, "Iteration0")->id;
    uint32_t control = syn_op(p, it, 10, 80, loop);
    uint32_t body = syn_span(p, SN_CAT_EXECUTOR, control, 15, 60, "body")->id;
    syn_op(p, body, 20, 40, op);
    syn_span(p, SN_CAT_MEMORY, body, 30, 5, "memory"); /* inside the NonZero */
    syn_span(p, SN_CAT_MEMORY, body, 65, 7, "memory"); /* between the steps of the body */
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_NEAR(row(&s, "NonZero")->mean_ns, 35);
    CHECK_NEAR(row(&s, "Loop")->mean_ns, 80 - 40 - 7);
    CHECK_NEAR(row(&s, "[Mem alloc/free]")->mean_ns, 12);
    CHECK_NEAR(row(&s, "[Other]")->mean_ns, 20);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(worker_slices_and_user_scopes_do_not_change_the_rows)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t op = syn_step(p, "Conv", "c", "", "");
    uint32_t user = syn_span(p, SN_CAT_USER, 0, 0, 200, "trace")->id;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, user, 10, 100, "Iteration0")->id;
    uint32_t conv = syn_op(p, it, 20, 80, op);
    syn_span(p, SN_CAT_THREAD, conv, 21, 70, "slice");
    syn_span(p, SN_CAT_THREAD, conv, 21, 75, "slice")->thread = 1;
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_NEAR(row(&s, "Conv")->mean_ns, 80);
    CHECK_NEAR(row(&s, "[Other]")->mean_ns, 20);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(the_recorders_cost_is_in_no_row_and_not_in_the_wall_time)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    p->record_ns = 2;
    uint32_t loop = syn_step(p, "If", "if", "", ""), add = syn_step(p, "Add", "add", "", "");
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    uint32_t control = syn_op(p, it, 10, 50, loop);
    uint32_t body = syn_span(p, SN_CAT_EXECUTOR, control, 12, 40, "body")->id;
    syn_op(p, body, 14, 20, add);
    syn_op(p, it, 61, 30, add);
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    /* inside the If: the body and its Add, 2 records; inside the run: the If and the last Add */
    CHECK_NEAR(row(&s, "If")->mean_ns, 50 - 20 - 4);
    CHECK_NEAR(row(&s, "Add")->mean_ns, 50);
    CHECK_NEAR(row(&s, "[Other]")->mean_ns, 20 - 4);
    CHECK_NEAR(s.cost_ns, 8);
    CHECK_NEAR(s.wall_ns.mean, 92);
    CHECK_NEAR(sum(&s), 92);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(other_is_never_negative_however_dear_the_recorder)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->record_ns = 1e12;
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    for (size_t i = 0; i < s.rows.n; i++)
        CHECK_MSG(s.rows.data[i].mean_ns > -1e-6, "%s = %g", s.rows.data[i].name,
                  s.rows.data[i].mean_ns);
    CHECK_NEAR(sum(&s), s.wall_ns.mean);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(nodes_show_their_fusion_their_originals_and_what_was_folded)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    uint32_t folded = syn_step(p, "Shape", "shape0", "", "");
    p->steps.data[folded].folded = true;
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_NODE, &s, &err));
    const sn_prof_row *conv = row(&s, "Conv+Add+Relu");
    CHECK(conv != NULL);
    CHECK_STR(conv->example, "conv1");
    CHECK_STR(conv->nodes, "conv1, add1, relu1");
    CHECK_STR(conv->op_type, "Conv");
    CHECK(row(&s, "Shape") != NULL);
    CHECK(row(&s, "Shape")->mean_ns == 0 && row(&s, "Shape")->calls == 0);
    CHECK_NEAR(sum(&s), s.wall_ns.mean);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(unnamed_nodes_stay_apart_and_a_node_bound_twice_is_one_row)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t a = syn_step(p, "Add", "", "", ""), b = syn_step(p, "Add", "", "", "");
    uint32_t c = syn_step(p, "Mul", "mul", "", ""), d = syn_step(p, "Mul", "mul", "", "");
    p->steps.data[d].table = 2;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    syn_op(p, it, 0, 1, a);
    syn_op(p, it, 10, 2, b);
    syn_op(p, it, 20, 3, c);
    syn_op(p, it, 30, 4, d);
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_NODE, &s, &err));
    CHECK_EQ(s.rows.n, 2 + 3);
    CHECK_NEAR(row(&s, "Mul")->mean_ns, 7);
    CHECK_NEAR(row(&s, "Mul")->calls, 2);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(every_step_of_every_binding_can_have_its_own_row)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t a = syn_step(p, "Mul", "mul", "", ""), b = syn_step(p, "Mul", "mul", "", "");
    p->steps.data[b].table = 2;
    for (int binding = 0; binding < 2; binding++) /* folded in both, listed once */
        p->steps.data[syn_step(p, "Shape", "gone", "", "")].folded = true;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    syn_op(p, it, 0, 4, b);
    syn_op(p, it, 20, 3, a);
    syn_op(p, it, 30, 1, a);
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_STEP, &s, &err));
    CHECK_EQ(s.rows.n, 2 + 3);
    double total = 0, by_step[3] = {0};
    for (size_t i = 0; i < s.rows.n; i++) {
        total += s.rows.data[i].mean_ns;
        CHECK_EQ(s.rows.data[i].step == UINT32_MAX, s.rows.data[i].bracket);
        if (!s.rows.data[i].bracket)
            by_step[s.rows.data[i].step] += s.rows.data[i].mean_ns;
    }
    CHECK_NEAR(by_step[a], 4);
    CHECK_NEAR(by_step[b], 4);
    CHECK_NEAR(by_step[2], 0);
    CHECK_NEAR(total, 100);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(shapes_are_written_with_absent_inputs_scalars_and_unknown_dims)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t a = syn_step(p, "Conv", "a", "", ""), b = syn_step(p, "Conv", "b", "", "");
    sn_prof_tensor *in = SN_NEW_N(&p->arena, sn_prof_tensor, 3);
    in[0] = syn_tensor(p, "s", "i64", 0, NULL);
    in[1] = syn_tensor(p, "d", "f32", 2, (int64_t[]){-1, 8});
    in[2] = (sn_prof_tensor){.name = "q", .dtype = "", .rank = -1, .text = "seq(f32[?])"};
    p->steps.data[b].inputs = in;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    syn_op(p, it, 0, 30, a);
    syn_op(p, it, 40, 20, b);
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_SHAPE, &s, &err));
    CHECK_STR(s.rows.data[0].name, "[Other]");
    CHECK_STR(s.rows.data[1].name, "[1, 3, 4, 4], [2, 3, 1, 1], _");
    CHECK_STR(s.rows.data[1].op_type, "Conv");
    CHECK_STR(s.rows.data[2].name, "[], [?, 8], seq(f32[?])");
    CHECK_NEAR(s.rows.data[2].input_elems, 1);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(a_row_names_the_kernel_that_took_most_of_its_time)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t a = syn_step(p, "Conv", "a", "", "k1"), b = syn_step(p, "Conv", "b", "", "k2");
    uint32_t c = syn_step(p, "Conv", "c", "", "k1");
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 100, "Iteration0")->id;
    syn_op(p, it, 0, 6, a);
    syn_op(p, it, 10, 10, b);
    syn_op(p, it, 30, 5, c);
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_STR(row(&s, "Conv")->kernel, "k1");
    sn_prof_summary_free(&s);
    CHECK_OK(sn_profile_summarise(p, SN_BY_KERNEL, &s, &err));
    CHECK_NEAR(row(&s, "k1")->mean_ns, 11);
    CHECK_NEAR(row(&s, "k2")->mean_ns, 10);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
}

TEST(tables_that_contradict_themselves_do_no_harm)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t add = syn_step(p, "Add", "add", "", "");
    sn_prof_span *it = syn_span(p, SN_CAT_ITERATION, 2, UINT64_MAX - 5, UINT64_MAX, NULL);
    it->thread = 99; /* no such thread; its parent is its child */
    syn_op(p, 1, 5, 10, add);
    syn_span(p, SN_CAT_OPERATOR, 1, 20, 10, "?")->step = 12345;
    syn_span(p, SN_CAT_OPERATOR, 4, 30, 10, "?"); /* its own parent */
    syn_span(p, SN_CAT_MEMORY, 777, 31, 1, "?");  /* a parent that does not exist */
    p->spans.data[4].id = 2;                      /* an id used twice */
    p->record_ns = -NAN;
    for (int key = SN_BY_OP; key <= SN_BY_KERNEL; key++) {
        sn_prof_summary s;
        CHECK_OK(sn_profile_summarise(p, (sn_prof_key)key, &s, &err));
        CHECK_EQ(s.iterations, 1);
        sn_prof_summary_free(&s);
    }
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(any_order_of_ids_finds_its_spans)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    for (uint32_t i = 0; i < 1000; i++)
        syn_span(p, SN_CAT_EXECUTOR, 0, i, 1, "x")->id = (i * 7919u) % 1009u * 1000u + 5u;
    sn_prof_index index;
    CHECK_OK(sn_prof_index_build(p, &index, &err));
    for (uint32_t i = 0; i < 1000; i++)
        CHECK_EQ(sn_prof_index_find(&index, (i * 7919u) % 1009u * 1000u + 5u), i);
    CHECK_EQ(sn_prof_index_find(&index, 0), UINT32_MAX);
    CHECK_EQ(sn_prof_index_find(&index, 6), UINT32_MAX);
    sn_prof_index_free(&index);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(a_million_spans_add_up)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    enum { STEPS = 1000, RUNS = 1000 };
    for (int k = 0; k < STEPS; k++)
        syn_step(p, k % 3 ? "Conv" : "Relu", "", "", k % 2 ? "k1" : "k2");
    uint64_t t = 0;
    for (uint32_t r = 0; r < RUNS; r++) {
        uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, t, 20 * STEPS, "i")->id;
        for (uint32_t k = 0; k < STEPS; k++, t += 20)
            syn_op(p, it, t, 5 + test_rand() % 10, k);
    }
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_NODE, &s, &err));
    CHECK_EQ(s.rows.n, STEPS + 2);
    CHECK_NEAR(s.wall_ns.mean, 20.0 * (double)STEPS);
    CHECK_NEAR(sum(&s), 20.0 * (double)STEPS);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(every_failing_allocation_is_reported_and_leaks_nothing)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    long live = m.live;
    for (int key = SN_BY_OP; key <= SN_BY_KERNEL; key++) {
        bool done = false;
        for (long k = 0; !done && k < 1000; k++) {
            sonde_error err = {0};
            sn_prof_summary s;
            m.calls = 0;
            m.fail_at = k;
            sonde_status st = sn_profile_summarise(p, (sn_prof_key)key, &s, &err);
            m.fail_at = -1;
            done = st == SONDE_OK;
            if (done)
                sn_prof_summary_free(&s);
            else
                CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
            CHECK_EQ(m.live, live);
        }
        CHECK(done);
    }
    sn_profile_free(p);
    m.fail_at = 0;
    m.calls = 0;
    sn_profile *none;
    sonde_error err = {0};
    CHECK_EQ(sn_profile_new(&none, &m.a, &err), SONDE_OUT_OF_MEMORY);
    CHECK(none == NULL);
    sn_profile_free(NULL);
}

TEST(categories_have_their_names)
{
    CHECK_STR(sn_prof_cat_name(SN_CAT_MODEL), "model");
    CHECK_STR(sn_prof_cat_name(SN_CAT_OPERATOR), "operator");
    CHECK_STR(sn_prof_cat_name(SN_CAT_DEVICE), "device");
    CHECK_STR(sn_prof_cat_name(SN_CAT_COUNT), "unknown");
}

TEST_MAIN()
