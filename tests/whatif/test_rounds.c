/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario and "now" run in turns, and figures are ratios of rounds that lie side by side: a
 * machine that becomes slower meanwhile changes nothing. */
#include "whatif/whatif_question.h"

/* ------------------------------------------------------------------ arithmetic */
typedef struct rounds {
    sn_allocator alloc;
    sn_subject s;
} rounds;

/* Rounds of two steps each, of which the first takes a quarter. */
static void rounds_open(rounds *r, const double *ns, size_t n)
{
    static const sn_whatif_step steps[2] = {
        {.name = "a", .op_type = "a", .shapes = "", .weight = "", .how = ""},
        {.name = "b", .op_type = "b", .shapes = "", .weight = "", .how = ""}};
    sn_allocator_init_system(&r->alloc);
    r->s = (sn_subject){.alloc = &r->alloc};
    if (!sn_vec_append(&r->s.steps, &r->alloc, steps, 2))
        abort();
    for (size_t i = 0; i < n; i++) {
        const sn_round round = {.ns = ns[i], .runs = 1, .first_part = 2 * i};
        const sn_round_part parts[2] = {{0, ns[i] / 4}, {1, ns[i] * 3 / 4}};
        if (!sn_vec_push(&r->s.rounds, &r->alloc, round) ||
            !sn_vec_append(&r->s.round_parts, &r->alloc, parts, 2))
            abort();
    }
}

static void rounds_close(rounds *r)
{
    sn_vec_free(&r->s.steps, &r->alloc);
    sn_vec_free(&r->s.rounds, &r->alloc);
    sn_vec_free(&r->s.round_parts, &r->alloc);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

TEST(a_clock_that_changes_between_rounds_changes_no_ratio)
{
    static const double now[6] = {100, 100, 150, 200, 250, 400},
                        then[6] = {50, 50, 75, 100, 125, 200};
    rounds a, b;
    sn_measured m;
    sonde_error err;
    double low, high;
    rounds_open(&a, now, 6);
    rounds_open(&b, then, 6);
    sn_measured_init(&m, &b.alloc);
    CHECK_OK(sn_measured_take(&m, &b.s, a.s.rounds.data, &err));
    CHECK(is_near(m.now_ns / m.total_ns, 2));
    CHECK(is_near(m.steps.data[0].ns, m.total_ns / 4));
    CHECK_EQ(m.runs, 6);
    sn_median_interval(m.ratios.data, m.ratios.n, &low, &high);
    CHECK(low == 2 && high == 2);
    sn_measured_free(&m);
    rounds_close(&a);
    rounds_close(&b);
}

TEST(a_round_that_was_disturbed_does_not_count_but_widens_the_interval)
{
    static const double now[6] = {100, 100, 100, 100, 100, 100},
                        then[6] = {50, 50, 50, 50, 500, 50};
    rounds a, b;
    sn_measured m;
    sonde_error err;
    double low, high;
    rounds_open(&a, now, 6);
    rounds_open(&b, then, 6);
    sn_measured_init(&m, &b.alloc);
    CHECK_OK(sn_measured_take(&m, &b.s, a.s.rounds.data, &err));
    CHECK(is_near(m.total_ns, 50));
    sn_median_interval(m.ratios.data, m.ratios.n, &low, &high);
    CHECK(is_near(low, 0.2) && high == 2);
    sn_measured_free(&m);
    rounds_close(&a);
    rounds_close(&b);
}

TEST(now_is_compared_with_itself)
{
    static const double now[6] = {100, 120, 100, 900, 100, 80};
    rounds a;
    sn_measured m;
    sonde_error err;
    rounds_open(&a, now, 6);
    sn_measured_init(&m, &a.alloc);
    CHECK_OK(sn_whatif_measure_now(&a.s, &m, &err));
    CHECK(is_near(m.total_ns, 105) && m.now_ns == m.total_ns); /* of 100, 100, 100 and 120 */
    CHECK(m.ratios.n == 1 && m.ratios.data[0] == 1);
    sn_measured_free(&m);
    rounds_close(&a);
}

/* ------------------------------------------------------------------ turns */
typedef struct teller {
    char name, *order;
} teller;

static void tell(void *user, double done)
{
    teller *t = user;
    (void)done;
    t->order[strlen(t->order)] = t->name;
}

TEST(a_scenario_and_now_run_in_turns)
{
    question q;
    sn_subject now = {.alloc = NULL};
    sn_measured m;
    sonde_error err;
    char order[64] = "";
    teller n = {'n', order}, s = {'s', order};
    question_open(&q, "tiny_mlp", NULL);
    sn_whatif_case k = {.model = q.model,
                        .threads = 1,
                        .values = q.in,
                        .n_values = q.n_in,
                        .runs = 6,
                        .progress = tell,
                        .progress_user = &n};
    k.session.struct_size = sizeof k.session;
    CHECK_OK(sn_subject_open(&now, &k, &q.context->alloc, &err));
    k.progress_user = &s;
    sn_measured_init(&m, &q.context->alloc);
    CHECK_OK(sn_whatif_measure(&k, &now, &m, &err));
    CHECK_STR(order, "nssnnssnnssn");
    CHECK_EQ(m.runs, 6);
    CHECK_EQ(m.ratios.n, 6);
    sn_measured_free(&m);
    sn_subject_close(&now);
    question_close(&q);
}

TEST_MAIN()
