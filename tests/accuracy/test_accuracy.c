/* SPDX-License-Identifier: Apache-2.0 */
/* Two models compared tensor by tensor through the public functions: what is equal is said to be
 * equal, groups of tensors change no figure, damage is found where it was done, and nothing leaks
 * when memory runs out. */
#include "sonde/experimental/accuracy.h"

#include "api/counting_alloc.h"
#include "api/zoo_session.h"
#include "graph/tensor.h"

typedef struct pair_of {
    sonde_context *context;
    sonde_model *a, *b;
    sonde_session *session;
    sonde_value *in[MAX_PORTS];
    size_t n_in;
} pair_of;

static sonde_status open_pair(pair_of *p, counting *count, const char *a, const char *b,
                              sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_session_options look = SONDE_INIT(sonde_session_options);
    look.plan_only = look.no_optimize = 1;
    o.threads = 1;
    if (count)
        counting_options(&o, count);
    *p = (pair_of){.n_in = 0};
    sonde_status st = sonde_context_create(&o, &p->context, err);
    if (!st)
        st = zoo_model(p->context, a, &p->a, err);
    if (!st)
        st = zoo_model(p->context, b, &p->b, err);
    if (!st)
        st = sonde_session_create(p->a, &look, &p->session, err);
    if (!st)
        st = random_inputs(p->context, p->session, 1, p->in, &p->n_in, err);
    return st;
}

static void close_pair(pair_of *p)
{
    release_all(p->in, MAX_PORTS);
    sonde_session_release(p->session);
    sonde_model_release(p->a);
    sonde_model_release(p->b);
    sonde_context_release(p->context);
}

static sonde_status run_all(const pair_of *p, const sonde_accuracy_options *options,
                            const sonde_session_options *how, sonde_accuracy **acc,
                            sonde_error *err)
{
    sonde_accuracy_side a = SONDE_INIT(sonde_accuracy_side), b = SONDE_INIT(sonde_accuracy_side);
    a.model = p->a;
    b.model = p->b;
    b.session = how;
    sonde_status st = sonde_accuracy_create(&a, &b, options, NULL, p->in, p->n_in, acc, err);
    for (size_t pass = 0; !st && pass < sonde_accuracy_pass_count(*acc); pass++)
        st = sonde_accuracy_add(*acc, pass, NULL, p->in, p->n_in, err);
    return st;
}

static sonde_accuracy_tensor row(const sonde_accuracy *acc, size_t i)
{
    sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
    if (sonde_accuracy_tensor_get(acc, i, &t, NULL))
        abort();
    return t;
}

TEST(a_model_is_equal_to_itself)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc = NULL;
    CHECK_OK(open_pair(&p, NULL, "tiny_resnet", "tiny_resnet", &err));
    CHECK_OK(run_all(&p, NULL, NULL, &acc, &err));
    CHECK(sonde_accuracy_tensor_count(acc) > 50);
    for (size_t i = 0; i < sonde_accuracy_tensor_count(acc); i++) {
        const sonde_accuracy_tensor t = row(acc, i);
        CHECK_MSG(isinf(t.error.sqnr_db) && t.error.sqnr_db > 0 && t.error.mismatches == 0, "%s",
                  t.name);
        CHECK(!t.over && !t.different && t.samples == 1);
    }
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    CHECK_OK(sonde_accuracy_summary_get(acc, &s, &err));
    CHECK(s.first == -1 && s.only_a == 0 && s.outputs == 1 && !s.quantized);
    CHECK(s.agree && s.complete && s.compared > 0 && s.weights == 0);
    CHECK_EQ(sonde_accuracy_leave_in_float(acc, 0), -1);
    CHECK_EQ(sonde_accuracy_worst(acc, 0), -1);
    sonde_accuracy_release(acc);
    close_pair(&p);
}

/* Programs with other outputs may fuse other nodes, so figures agree but for rounding. */
TEST(groups_that_fit_into_memory_give_the_same_figures)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc[2] = {NULL};
    sonde_session_options bf16 = SONDE_INIT(sonde_session_options);
    bf16.precision = SONDE_PRECISION_BF16;
    CHECK_OK(open_pair(&p, NULL, "tiny_cnn", "tiny_cnn", &err));
    for (int k = 0; k < 2; k++) {
        sonde_accuracy_options o = SONDE_INIT(sonde_accuracy_options);
        o.group_bytes = k ? 1 : 0;
        CHECK_OK(run_all(&p, &o, &bf16, &acc[k], &err));
    }
    CHECK_EQ(sonde_accuracy_pass_count(acc[0]), 2);
    CHECK_EQ(sonde_accuracy_pass_count(acc[1]), 1 + sonde_accuracy_tensor_count(acc[1]));
    for (size_t i = 0; i < sonde_accuracy_tensor_count(acc[0]); i++) {
        const sonde_accuracy_tensor x = row(acc[0], i), y = row(acc[1], i);
        CHECK_STR(x.name, y.name);
        CHECK_MSG(fabs(x.error.sqnr_db - y.error.sqnr_db) < 3, "%s: %g and %g dB", x.name,
                  x.error.sqnr_db, y.error.sqnr_db);
        CHECK(x.error.elements == y.error.elements && x.local_known && y.local_known);
    }
    sonde_accuracy_release(acc[0]);
    sonde_accuracy_release(acc[1]);
    close_pair(&p);
}

/* B has other weights in one node: they are changed where they lie, in the zoo's own memory. */
static void damage(sonde_model *m, const char *op_type, int which)
{
    for (sn_node *n = m->core->graph->first; n; n = n->next) {
        if (strcmp(n->op_type, op_type) != 0 || which--)
            continue;
        float *w = n->in[1].value->fact.data->data;
        for (int64_t i = 0; i < sn_tensor_count(n->in[1].value->fact.data); i += 2)
            w[i] *= 1.5f;
        return;
    }
}

TEST(a_damaged_layer_is_the_first_over_the_bound_and_the_worst)
{
    static const struct {
        const char *model, *op_type;
        int which;
    } cases[] = {{"tiny_resnet", "Conv", 5}, {"tiny_bert", "MatMul", 9}, {"tiny_vit", "MatMul", 4}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        pair_of p;
        sonde_error err;
        sonde_accuracy *acc = NULL;
        CHECK_OK(open_pair(&p, NULL, cases[k].model, cases[k].model, &err));
        damage(p.b, cases[k].op_type, cases[k].which);
        CHECK_OK(run_all(&p, NULL, NULL, &acc, &err));
        sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
        CHECK_OK(sonde_accuracy_summary_get(acc, &s, &err));
        CHECK_MSG(s.first >= 0 && s.first == sonde_accuracy_worst(acc, 0), "%s", cases[k].model);
        const sonde_accuracy_tensor t = row(acc, (size_t)s.first);
        CHECK_STR(t.op_type, cases[k].op_type);
        CHECK(t.local_known && t.local.sqnr_db < 30);
        CHECK_EQ(sonde_accuracy_worst(acc, 1), -1); /* the others add rounding alone */
        sonde_accuracy_weight w = SONDE_INIT(sonde_accuracy_weight);
        CHECK(s.weights == 1 && sonde_accuracy_weight_count(acc) == 1 && !s.agree);
        CHECK_OK(sonde_accuracy_weight_get(acc, 0, &w, &err));
        CHECK_STR(w.node, t.node);
        CHECK(w.error.mismatches > 0 && w.error.sqnr_db < 30 && !w.exact);
        CHECK_EQ(sonde_accuracy_weight_get(acc, 1, &w, &err), SONDE_INVALID_ARGUMENT);
        sonde_accuracy_release(acc);
        close_pair(&p);
    }
}

TEST(not_a_number_is_counted_and_hides_nothing)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc = NULL;
    CHECK_OK(open_pair(&p, NULL, "tiny_mlp", "tiny_mlp", &err));
    for (sn_node *n = p.b->core->graph->first; n; n = n->next)
        if (strcmp(n->op_type, "Gemm") == 0) { /* one column of the first product */
            ((float *)n->in[2].value->fact.data->data)[0] = NAN;
            ((float *)n->in[2].value->fact.data->data)[1] += 0.25f;
            break;
        }
    CHECK_OK(run_all(&p, NULL, NULL, &acc, &err));
    const sonde_accuracy_tensor t = row(acc, 0);
    CHECK_STR(t.op_type, "Gemm");
    CHECK(t.error.nan_a == 0 && t.error.nan_b == 1 && t.error.not_finite == 1 && t.over);
    CHECK_MSG(fabs(t.error.max_abs - 0.25) < 1e-6, "%g", t.error.max_abs);
    CHECK(isfinite(t.error.sqnr_db) && isfinite(t.error.rms) && isfinite(t.error.cosine));
    const sonde_accuracy_bound loose = {.sqnr_db = 0.001};
    size_t index = 0;
    CHECK_EQ(sonde_accuracy_fails(acc, &loose, &index), 1);
    CHECK(row(acc, index).output);
    sonde_accuracy_release(acc);
    close_pair(&p);
}

TEST(a_quantised_model_is_compared_behind_its_quantisers)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc = NULL;
    CHECK_OK(open_pair(&p, NULL, "tiny_resnet", "tiny_resnet_int8", &err));
    CHECK_OK(run_all(&p, NULL, NULL, &acc, &err));
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    CHECK_OK(sonde_accuracy_summary_get(acc, &s, &err));
    CHECK(s.quantized && s.shared > 20 && s.only_a > 0);
    size_t behind = 0, tried = 0;
    for (size_t i = 0; i < s.shared; i++) {
        const sonde_accuracy_tensor t = row(acc, i);
        behind += strcmp(t.name, t.name_b) ? 1 : 0;
        tried += isnan(t.at_outputs) ? 0 : 1;
        CHECK_MSG(t.error.sqnr_db > 15 && t.local_known && t.local.sqnr_db > 20, "%s: %g, %g dB",
                  t.name, t.error.sqnr_db, t.local.sqnr_db);
    }
    CHECK(behind > 10 && tried > 10);
    sonde_accuracy_release(acc);
    close_pair(&p);
}

static void take(void *user, const char *text, size_t size)
{
    char *all = user;
    const size_t n = strlen(all), room = 8000 - n;
    memcpy(all + n, text, size < room ? size : room);
}

TEST(what_was_compared_before_it_was_cancelled_can_be_written)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc = NULL;
    sonde_accuracy_options o = SONDE_INIT(sonde_accuracy_options);
    sonde_accuracy_side side = SONDE_INIT(sonde_accuracy_side);
    sonde_accuracy_summary s = SONDE_INIT(sonde_accuracy_summary);
    static char text[8192];
    CHECK_OK(open_pair(&p, NULL, "tiny_mlp", "tiny_mlp", &err));
    CHECK_OK(sonde_cancel_token_create(&o.cancel, &err));
    side.model = p.a;
    CHECK_OK(sonde_accuracy_create(&side, &side, &o, NULL, p.in, p.n_in, &acc, &err));
    CHECK_EQ(sonde_accuracy_write(acc, ".json", take, text, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "nothing was compared");
    CHECK_OK(sonde_accuracy_add(acc, 0, NULL, p.in, p.n_in, &err));
    CHECK_EQ(sonde_accuracy_write(acc, ".json", take, text, &err), SONDE_INVALID_ARGUMENT);
    sonde_cancel(o.cancel);
    CHECK_EQ(sonde_accuracy_add(acc, 1, NULL, p.in, p.n_in, &err), SONDE_CANCELLED);
    CHECK_OK(sonde_accuracy_write(acc, ".json", take, text, &err));
    CHECK_HAS(text, "\"complete\":false");
    CHECK_OK(sonde_accuracy_summary_get(acc, &s, &err));
    CHECK(!s.complete && s.samples == 1 && s.compared > 0);
    sonde_accuracy_release(acc);
    sonde_cancel_token_release(o.cancel);
    close_pair(&p);
}

TEST(models_without_a_common_tensor_are_refused)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc = NULL;
    CHECK_OK(open_pair(&p, NULL, "tiny_mlp", "tiny_text", &err));
    CHECK_EQ(run_all(&p, NULL, NULL, &acc, &err), SONDE_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "share no tensor"));
    CHECK(!acc);
    close_pair(&p);
}

TEST(wrong_arguments_are_said)
{
    pair_of p;
    sonde_error err;
    sonde_accuracy *acc = NULL;
    sonde_accuracy_side side = SONDE_INIT(sonde_accuracy_side);
    sonde_accuracy_tensor t = SONDE_INIT(sonde_accuracy_tensor);
    CHECK_OK(open_pair(&p, NULL, "tiny_mlp", "tiny_mlp", &err));
    CHECK_EQ(sonde_accuracy_create(&side, &side, NULL, NULL, NULL, 0, &acc, &err),
             SONDE_INVALID_ARGUMENT);
    side.model = p.a;
    CHECK_OK(sonde_accuracy_create(&side, &side, NULL, NULL, p.in, p.n_in, &acc, &err));
    CHECK_EQ(sonde_accuracy_add(acc, 99, NULL, p.in, p.n_in, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_accuracy_tensor_get(acc, 99999, &t, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_accuracy_add(acc, 0, NULL, p.in, p.n_in, &err));
    CHECK_EQ(sonde_accuracy_save(acc, "/tmp/half.json", &err), SONDE_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "not complete"));
    CHECK_EQ(sonde_accuracy_save(acc, "/tmp/x.txt", &err), SONDE_INVALID_ARGUMENT);
    CHECK(strstr(err.message, ".json or .csv"));
    CHECK_OK(sonde_accuracy_add(acc, 1, NULL, p.in, p.n_in, &err));
    CHECK_EQ(sonde_accuracy_save(acc, "/dev/full", &err), SONDE_INVALID_ARGUMENT);
    sonde_accuracy_release(acc);
    sonde_accuracy_release(NULL);
    CHECK(sonde_accuracy_tensor_count(NULL) == 0 && sonde_accuracy_pass_count(NULL) == 0);
    close_pair(&p);
}

static sonde_status whole_life(counting *count, const char *a, const char *b, sonde_error *err)
{
    pair_of p;
    sonde_accuracy *acc = NULL;
    sonde_status st = open_pair(&p, count, a, b, err);
    if (!st && strcmp(a, b) == 0)
        damage(p.b, "Gemm", 0);
    if (!st)
        st = run_all(&p, NULL, NULL, &acc, err);
    sonde_accuracy_release(acc);
    close_pair(&p);
    return st;
}

TEST(every_allocation_may_fail)
{
    static const char *const models[][2] = {
        {"tiny_mlp", "tiny_mlp"}, {"tiny_loop", "tiny_loop"}, {"tiny_cnn", "tiny_cnn_int8"}};
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        sonde_error err;
        counting count = {.left = -1};
        CHECK_OK(whole_life(&count, models[m][0], models[m][1], &err));
        CHECK_EQ(count.live, 0);
        const long step = m == 2 ? 7 : 1; /* there are thousands */
        for (long k = 0;; k += step) {
            count = (counting){.left = k};
            const sonde_status st = whole_life(&count, models[m][0], models[m][1], &err);
            CHECK_MSG(count.live == 0, "%s: failing allocation %ld leaves %ld blocks", models[m][1],
                      k, count.live);
            if (!count.failed)
                break;
            CHECK_MSG(st == SONDE_OUT_OF_MEMORY || st == SONDE_OK, "%s: allocation %ld: %d, %s",
                      models[m][1], k, (int)st, err.message);
        }
    }
}

TEST_MAIN()
