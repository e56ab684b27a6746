/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising through the public API: every allocation may fail, it can be cancelled, calibration in
 * small groups gives the same model, and what makes no sense is refused. */
#include <math.h>

#include "api/counting_alloc.h"
#include "api/zoo_session.h"
#include "sonde/experimental/quantize.h"
#include "temp_folder.h"
#include "zoo/builder.h"

typedef struct setup {
    sonde_context *c;
    sonde_model *model;
    sonde_samples *samples;
} setup;

static void close_setup(setup *s)
{
    sonde_samples_release(s->samples);
    sonde_model_release(s->model);
    sonde_context_release(s->c);
}

/* A zoo model and `n` samples for it, in a context of one thread. */
static sonde_status open_setup(setup *s, counting *count, const char *name, int n, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    if (count)
        counting_options(&o, count);
    *s = (setup){NULL, NULL, NULL};
    sonde_session *session = NULL;
    sonde_value *in[MAX_PORTS] = {0};
    size_t n_in = 0;
    sonde_status st = sonde_context_create(&o, &s->c, err);
    if (!st)
        st = zoo_model(s->c, name, &s->model, err);
    if (!st)
        st = sonde_session_create(s->model, NULL, &session, err);
    if (!st)
        st = sonde_samples_create(s->model, &s->samples, err);
    for (int i = 0; i < n && !st; i++) {
        const char *names[MAX_PORTS];
        st = random_inputs(s->c, session, 1, in, &n_in, err);
        for (size_t k = 0; k < n_in; k++)
            names[k] = sonde_session_input_name(session, k);
        if (!st)
            st = sonde_samples_add(s->samples, names, in, n_in, err);
        release_all(in, MAX_PORTS);
    }
    release_all(in, MAX_PORTS);
    sonde_session_release(session);
    return st;
}

static sonde_status whole(counting *count, const char *name, const sonde_quantize_options *o,
                          sonde_error *err)
{
    setup s;
    sonde_quantized *made = NULL;
    sonde_status st = open_setup(&s, count, name, 1, err);
    if (!st)
        st = sonde_quantize(s.model, s.samples, o, &made, err);
    sonde_quantized_release(made);
    close_setup(&s);
    return st;
}

/* Each allocation fails once, and all after it. */
static void walk(const char *name, const sonde_quantize_options *o)
{
    sonde_error err;
    for (long k = 0;; k++) {
        counting count = {.left = k};
        const sonde_status st = whole(&count, name, o, &err);
        CHECK_MSG(count.live == 0, "failing allocation %ld leaves %ld blocks", k, count.live);
        if (!count.failed) {
            CHECK_MSG(st == SONDE_OK, "%s", err.message);
            CHECK_MSG(k > 100, "only %ld allocations were walked", k);
            break;
        }
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY, "allocation %ld: status %d, %s", k, (int)st,
                  err.message);
    }
}

TEST(every_allocation_of_static_quantisation_may_fail)
{
    sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
    o.equalize = 1;
    walk("tiny_cnn", &o);
}

TEST(every_allocation_of_a_search_for_a_goal_may_fail)
{
    sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
    o.goal_db = 200;
    walk("tiny_mlp", &o);
}

TEST(every_allocation_of_dynamic_quantisation_may_fail)
{
    sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
    o.kind = SONDE_QUANTIZE_DYNAMIC;
    walk("tiny_mlp", &o);
}

TEST(every_allocation_of_weights_in_blocks_may_fail)
{
    sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
    o.kind = SONDE_QUANTIZE_WEIGHTS;
    walk("tiny_mlp", &o);
}

/* ------------------------------------------------------------------ */
/* Which values are asked for decides what is fused, so sums may round in another way. */
TEST(calibration_one_tensor_at_a_time_gives_a_model_as_good)
{
    setup s;
    sonde_error err;
    double sqnr_db[2] = {0, 0};
    CHECK_OK(open_setup(&s, NULL, "tiny_efficientnet", 3, &err));
    for (int k = 0; k < 2; k++) {
        sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
        sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
        sonde_quantized *made = NULL;
        o.group_bytes = k ? 1 : 0;
        CHECK_OK(sonde_quantize(s.model, s.samples, &o, &made, &err));
        CHECK_OK(sonde_quantized_info_get(made, &info, &err));
        sqnr_db[k] = info.sqnr_db;
        sonde_quantized_release(made);
    }
    CHECK_MSG(fabs(sqnr_db[0] - sqnr_db[1]) < 1, "%g dB and %g dB", sqnr_db[0], sqnr_db[1]);
    close_setup(&s);
}

static int stop_at(void *user, const char *what, double done)
{
    (void)done;
    return strcmp(what, user) == 0;
}

TEST(progress_can_cancel_at_every_stage)
{
    static char stages[][16] = {"preparing", "calibrating", "writing", "comparing"};
    setup s;
    sonde_error err;
    CHECK_OK(open_setup(&s, NULL, "tiny_cnn", 2, &err));
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
        sonde_quantized *made = NULL;
        o.progress = stop_at;
        o.progress_user = stages[i];
        CHECK_EQ(sonde_quantize(s.model, s.samples, &o, &made, &err), SONDE_CANCELLED);
        CHECK(!made);
    }
    close_setup(&s);
}

TEST(rows_and_figures_tell_of_every_node)
{
    setup s;
    sonde_error err;
    sonde_quantized *made = NULL;
    sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
    CHECK_OK(open_setup(&s, NULL, "tiny_mobilenet", 2, &err));
    CHECK_OK(sonde_quantize(s.model, s.samples, NULL, &made, &err));
    CHECK_OK(sonde_quantized_info_get(made, &info, &err));
    CHECK_EQ(sonde_quantized_count(made), info.nodes);
    CHECK_EQ(info.products, info.products_quantized);
    CHECK_EQ(info.nodes, info.nodes_quantized);
    CHECK_EQ(info.samples, 2);
    CHECK(info.sqnr_db > 15 && info.weight_bytes_after < info.weight_bytes_before);
    for (size_t i = 0; i < info.nodes; i++) {
        sonde_quantized_row row = SONDE_INIT(sonde_quantized_row);
        CHECK_OK(sonde_quantized_row_get(made, i, &row, &err));
        CHECK_STR(row.made, "int8");
        CHECK(isnan(row.weight_sqnr_db) == !*row.weight_shape);
    }
    sonde_quantized_row none = SONDE_INIT(sonde_quantized_row);
    CHECK_EQ(sonde_quantized_row_get(made, info.nodes, &none, &err), SONDE_NOT_FOUND);
    sonde_quantized_release(made);
    close_setup(&s);
}

enum { SIDE = 32, WEIGHT_BYTES = SIDE * SIDE * (int)sizeof(float) };

/* x @ shared[0] @ … @ shared[n - 1] */
static sn_graph *branch(sn_builder *b, const char *name, sn_value *x, sn_value *const *shared,
                        size_t n)
{
    sn_builder body;
    const sn_dim dims[2] = {1, SIDE};
    sn_b_init_body(&body, b, name);
    sn_value *y = sn_b_outer(&body, x);
    for (size_t i = 0; i < n; i++)
        y = sn_b_op(&body, name, "MatMul", SN_IN(y, sn_b_outer(&body, shared[i])), SN_NO_ATTRS);
    char output[32];
    snprintf(output, sizeof output, "y_%s", name);
    sn_b_output(&body, y, output, SONDE_DTYPE_F32, dims, 2);
    return body.graph;
}

/* Three weights, which both branches of an If read and the main graph, too. */
static sonde_status model_with_shared_weights(sonde_context *c, sonde_model **model,
                                              sonde_error *err)
{
    static const char *const names[] = {"first", "second", "third"};
    const int64_t weight[2] = {SIDE, SIDE};
    const sn_dim dims[2] = {1, SIDE};
    sn_builder b;
    sn_model *m = NULL;
    SN_TRY(sn_model_new(&m, &c->core, err));
    sn_b_init(&b, m, 17, 1, err);
    sn_value *shared[3];
    sn_value *condition = sn_b_input(&b, "condition", SONDE_DTYPE_BOOL, NULL, 0);
    sn_value *x = sn_b_input(&b, "x", SONDE_DTYPE_F32, dims, 2);
    for (size_t i = 0; i < 3; i++)
        shared[i] = sn_b_uniform(&b, names[i], weight, 2, 0, 0.3f);
    sn_value *h = sn_b_op(&b, "", "MatMul", SN_IN(x, shared[1]), SN_NO_ATTRS);
    sn_value *y = sn_b_op(&b, "", "If", SN_IN(condition),
                          SN_ATTRS(sn_a_graph("then_branch", branch(&b, "then", h, shared, 3)),
                                   sn_a_graph("else_branch", branch(&b, "else", h, shared, 2))));
    sn_b_output(&b, y, "y", SONDE_DTYPE_F32, dims, 2);
    sonde_status st = *b.status;
    if (!st)
        st = sn_model_finish(m, err);
    if (st) {
        sn_model_unref(m);
        return st;
    }
    return sn_api_model(c, m, "shared", model, err);
}

/* The main graph's, and those of two bodies within, are one and the same. */
TEST(weights_that_bodies_share_count_once)
{
    static const sonde_quantize_kind kinds[] = {SONDE_QUANTIZE_DYNAMIC, SONDE_QUANTIZE_WEIGHTS};
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_error err;
    CHECK_OK(sonde_context_create(NULL, &c, &err));
    CHECK_OK(model_with_shared_weights(c, &model, &err));
    for (size_t k = 0; k < 2; k++) {
        sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
        sonde_quantized *made = NULL;
        sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
        o.kind = kinds[k];
        CHECK_OK(sonde_quantize(model, NULL, &o, &made, &err));
        CHECK_OK(sonde_quantized_info_get(made, &info, &err));
        CHECK_EQ(info.products_quantized, 6);
        CHECK_EQ(info.body_products_quantized, 5);
        CHECK_EQ(info.weight_bytes_before, 3 * WEIGHT_BYTES);
        /* 8 or 4 bits of each weight, once; scales and zero points are smaller than that. */
        CHECK(info.weight_bytes_after < 2 * 3 * WEIGHT_BYTES / 4);
        sonde_quantized_release(made);
    }
    sonde_model_release(model);
    sonde_context_release(c);
}

TEST(both_models_are_measured_on_the_same_inputs)
{
    setup s;
    sonde_error err;
    sonde_quantized *made = NULL;
    sonde_quantized_speed speed = SONDE_INIT(sonde_quantized_speed);
    sonde_value_set *set = NULL;
    CHECK_OK(open_setup(&s, NULL, "tiny_cnn", 1, &err));
    CHECK_OK(sonde_quantize(s.model, s.samples, NULL, &made, &err));
    CHECK_OK(sonde_samples_get(s.samples, 0, &set, &err));
    const char *name = sonde_value_set_name(set, 0);
    sonde_value *value = sonde_value_set_value(set, 0);
    CHECK_OK(sonde_quantized_measure(made, &name, &value, 1, &speed, &err));
    CHECK(speed.runs > 0 && speed.before_ms > 0 && speed.after_ms > 0);
    sonde_value_set_release(set);
    sonde_quantized_release(made);
    close_setup(&s);
}

TEST(the_result_outlives_model_and_samples)
{
    setup s;
    sonde_error err;
    sonde_quantized *made = NULL;
    char dir[TEMP_PATH], path[TEMP_PATH + 16];
    sonde_model *back = NULL;
    temp_make(dir);
    snprintf(path, sizeof path, "%s/q.onnx", dir);
    CHECK_OK(open_setup(&s, NULL, "tiny_resnet", 1, &err));
    CHECK_OK(sonde_quantize(s.model, s.samples, NULL, &made, &err));
    close_setup(&s);
    CHECK_OK(sonde_quantized_save(made, path, NULL, &err));
    CHECK_EQ(sonde_quantized_save(made, "/dev/full", NULL, &err), SONDE_IO);
    sonde_quantized_release(made);
    CHECK_OK(sonde_model_load(NULL, path, NULL, &back, &err));
    sonde_model_release(back);
    temp_remove(dir);
}

TEST(what_makes_no_sense_is_refused)
{
    setup s;
    sonde_error err;
    sonde_quantized *made = NULL;
    const char *nobody = NULL, *name = "nowhere";
    CHECK_OK(open_setup(&s, NULL, "tiny_cnn", 0, &err));
    sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
    CHECK_EQ(sonde_quantize(NULL, NULL, NULL, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_quantize(s.model, NULL, NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_quantize(s.model, NULL, NULL, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_quantize(s.model, s.samples, NULL, &made, &err), SONDE_INVALID_ARGUMENT);
    o.bits = 5;
    CHECK_EQ(sonde_quantize(s.model, s.samples, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    o = (sonde_quantize_options)SONDE_INIT(sonde_quantize_options);
    o.except = &nobody;
    o.except_count = 1;
    CHECK_EQ(sonde_quantize(s.model, s.samples, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    o.except = &name;
    CHECK_EQ(sonde_quantize(s.model, s.samples, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "no node and no weight 'nowhere'");
    o.kind = (sonde_quantize_kind)7;
    CHECK_EQ(sonde_quantize(s.model, s.samples, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_samples_add_path(s.samples, "/nonexistent", NULL, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_samples_add_path(s.samples, "/dev/null", NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_samples_add(s.samples, &name, NULL, 1, &err), SONDE_INVALID_ARGUMENT);
    sonde_value_set *set = NULL;
    CHECK_EQ(sonde_samples_get(s.samples, 0, &set, &err), SONDE_NOT_FOUND);
    CHECK(!made);
    sonde_quantized_release(NULL);
    sonde_samples_release(NULL);
    close_setup(&s);
}

TEST(numbers_out_of_range_are_refused_with_the_range)
{
    setup s;
    sonde_error err;
    sonde_quantized *made = NULL;
    CHECK_OK(open_setup(&s, NULL, "tiny_mlp", 1, &err));
    const struct {
        double percentile, goal_db;
        int bits, block_size;
        const char *said;
    } cases[] = {
        {50, 0, 0, 0, "above 50 and at most 100"},
        {-1, 0, 0, 0, "above 50 and at most 100"},
        {(double)NAN, 0, 0, 0, "above 50 and at most 100"},
        {0, -1, 0, 0, "must be above 0"},
        {0, (double)NAN, 0, 0, "must be above 0"},
        {0, (double)INFINITY, 0, 0, "must be above 0"},
        {0, 0, 2, 0, "4 or 8 bits, not 2"},
        {0, 0, 0, 8, "from 16 to 1048576, not 8"},
        {0, 0, 0, 48, "power of two"},
        {0, 0, 0, -32, "power of two"},
        {0, 0, 0, 1 << 21, "from 16 to 1048576"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
        o.percentile = cases[i].percentile;
        o.goal_db = cases[i].goal_db;
        o.bits = cases[i].bits;
        o.block_size = cases[i].block_size;
        CHECK_EQ(sonde_quantize(s.model, s.samples, &o, &made, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, cases[i].said);
    }
    CHECK(!made);
    close_setup(&s);
}

TEST(a_limit_holds_for_every_source_of_samples)
{
    setup s;
    sonde_error err;
    sonde_quantized *made = NULL;
    sonde_value_set *set = NULL;
    sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
    CHECK_OK(open_setup(&s, NULL, "tiny_mlp", 5, &err));
    CHECK_OK(sonde_samples_limit(s.samples, 2, &err));
    CHECK_EQ(sonde_samples_count(s.samples), 2);
    CHECK_EQ(sonde_samples_get(s.samples, 2, &set, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "there are 2 samples");
    CHECK_OK(sonde_quantize(s.model, s.samples, NULL, &made, &err));
    CHECK_OK(sonde_quantized_info_get(made, &info, &err));
    CHECK_EQ(info.samples, 2);
    CHECK_OK(sonde_samples_limit(s.samples, 0, &err));
    CHECK_EQ(sonde_samples_count(s.samples), 5);
    CHECK_EQ(sonde_samples_left_over(s.samples), 0);
    CHECK_EQ(sonde_samples_limit(NULL, 1, &err), SONDE_INVALID_ARGUMENT);
    sonde_quantized_release(made);
    close_setup(&s);
}

TEST_MAIN()
