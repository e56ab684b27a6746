/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, rotary embedding and caches, on cases small enough to check by hand. */
#include "ops/one_node.h"

static bool near(const sn_slot *s, const float *want, int64_t n)
{
    if (s->kind != SN_KIND_TENSOR || sn_tensor_count(&s->t) != n)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(((const float *)s->t.data)[i] - want[i]) < 1e-5f)) {
            fprintf(stderr, "element %lld is %g, expected %g\n", (long long)i,
                    (double)((const float *)s->t.data)[i], (double)want[i]);
            return false;
        }
    return true;
}
#define NEAR(slot, ...)                                                                            \
    near(slot, (float[]){__VA_ARGS__}, (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))

TEST(equal_scores_give_the_mean_of_the_values)
{
    one_node c;
    node_begin(&c, "Attention", 23, 3, 1);
    node_f32(&c, 0, SHAPE(1, 1, 1, 2), 0, 0);
    node_f32(&c, 1, SHAPE(1, 1, 3, 2), 1, 2, 3, 4, 5, 6);
    node_f32(&c, 2, SHAPE(1, 1, 3, 1), 3, 6, 9);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(has_shape(&c.out[0], SHAPE(1, 1, 1, 1)));
    CHECK(NEAR(&c.out[0], 6));
    node_end(&c);
}

TEST(a_causal_query_sees_its_past_and_itself)
{
    one_node c;
    node_begin(&c, "Attention", 24, 6, 3);
    node_int(&c, "is_causal", 1);
    node_f32(&c, 0, SHAPE(1, 1, 2, 1), 0, 0);
    node_f32(&c, 1, SHAPE(1, 1, 2, 1), 1, 1);
    node_f32(&c, 2, SHAPE(1, 1, 2, 1), 6, 12);
    node_f32(&c, 4, SHAPE(1, 1, 1, 1), 1);
    node_f32(&c, 5, SHAPE(1, 1, 1, 1), 0);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 3, 6)); /* (0 + 6) / 2, (0 + 6 + 12) / 3 */
    CHECK(has_shape(&c.out[1], SHAPE(1, 1, 3, 1)));
    CHECK(NEAR(&c.out[2], 0, 6, 12));
    node_end(&c);
}

TEST(a_mask_shorter_than_the_keys_hides_the_rest)
{
    one_node c;
    node_begin(&c, "Attention", 24, 4, 1);
    node_f32(&c, 0, SHAPE(1, 1, 1, 1), 0);
    node_f32(&c, 1, SHAPE(1, 1, 4, 1), 1, 1, 1, 1);
    node_f32(&c, 2, SHAPE(1, 1, 4, 1), 2, 4, 100, 100);
    node_tensor(&c, 3, SONDE_DTYPE_BOOL, SHAPE(1, 2), (uint8_t[]){1, 1});
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 3));
    node_end(&c);
}

/* Five queries with equal scores for five keys, whose values are 1, 2, 4, 8 and 16. */
static void run_window(one_node *c, int64_t left, int64_t right, int64_t causal)
{
    node_begin(c, "Attention", 25, 3, 1);
    node_int(c, "left_window_size", left);
    node_int(c, "right_window_size", right);
    node_int(c, "is_causal", causal);
    node_f32(c, 0, SHAPE(1, 1, 5, 1), 0, 0, 0, 0, 0);
    node_f32(c, 1, SHAPE(1, 1, 5, 1), 1, 1, 1, 1, 1);
    node_f32(c, 2, SHAPE(1, 1, 5, 1), 1, 2, 4, 8, 16);
    node_run(c);
}

TEST(windows_bound_what_a_query_sees_on_either_side)
{
    static const struct {
        int64_t left, right, causal;
        float y[5];
    } cases[] = {
        {1, 2, 0, {2.3333333f, 3.75f, 7.5f, 9.3333333f, 12}},
        {1, 2, 1, {1, 1.5f, 3, 6, 12}},
        {0, -1, 0, {6.2f, 7.5f, 9.3333333f, 12, 16}},
        {-1, 0, 0, {1, 1.5f, 2.3333333f, 3.75f, 6.2f}},
        {-1, -1, 0, {6.2f, 6.2f, 6.2f, 6.2f, 6.2f}},
        {INT64_MAX, INT64_MAX, 0, {6.2f, 6.2f, 6.2f, 6.2f, 6.2f}},
    };
    one_node c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_window(&c, cases[i].left, cases[i].right, cases[i].causal);
        CHECK_MSG(c.st == SONDE_OK, "%s", c.err.message);
        CHECK_MSG(near(&c.out[0], cases[i].y, 5), "case %zu", i);
        node_end(&c);
    }
    run_window(&c, -2, 0, 0);
    CHECK_EQ(c.st, SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "window size is -2");
    node_end(&c);
}

TEST(a_window_counts_from_the_end_of_the_past)
{
    one_node c;
    node_begin(&c, "Attention", 25, 6, 1);
    node_int(&c, "is_causal", 1);
    node_int(&c, "left_window_size", 1);
    node_f32(&c, 0, SHAPE(1, 1, 2, 1), 0, 0);
    node_f32(&c, 1, SHAPE(1, 1, 2, 1), 1, 1);
    node_f32(&c, 2, SHAPE(1, 1, 2, 1), 1, 2);
    node_f32(&c, 4, SHAPE(1, 1, 3, 1), 1, 1, 1);
    node_f32(&c, 5, SHAPE(1, 1, 3, 1), 32, 64, 128);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 64.5f, 1.5f));
    node_end(&c);
}

/* Two batches of two queries against a cache of four, filled so far. */
static void begin_filled(one_node *c, int64_t first, int64_t second)
{
    node_begin(c, "Attention", 25, 7, 1);
    node_f32(c, 0, SHAPE(2, 1, 2, 1), 0, 0, 0, 0);
    node_f32(c, 1, SHAPE(2, 1, 4, 1), 1, 1, 1, 1, 1, 1, 1, 1);
    node_f32(c, 2, SHAPE(2, 1, 4, 1), 1, 2, 4, 8, 1, 2, 4, 8);
    node_i64(c, 6, SHAPE(2), first, second);
}

TEST(causal_queries_are_the_last_of_a_cache_that_is_kept_outside)
{
    one_node c;
    begin_filled(&c, 3, 1);
    node_int(&c, "is_causal", 1);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    /* The second batch has fewer keys than queries: the first query has none. */
    CHECK(NEAR(&c.out[0], 1.5f, 2.3333333f, 0, 1));
    node_end(&c);
    begin_filled(&c, 3, 4);
    node_int(&c, "left_window_size", 1);
    node_int(&c, "right_window_size", 0);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 1.5f, 3, 3, 6));
    node_end(&c);
    begin_filled(&c, INT64_MIN, INT64_MAX);
    node_int(&c, "is_causal", 1);
    node_int(&c, "left_window_size", INT64_MAX);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 0, 0, 3.75f, 3.75f));
    node_end(&c);
}

/* The first query may see no key at all; `kind` is the mask's element type. */
static void run_masked(one_node *c, int opset, sn_dtype kind, float query, bool scores)
{
    static const uint8_t keep[6] = {0, 0, 0, 1, 0, 1};
    static const float bias[6] = {-INFINITY, -INFINITY, -INFINITY, 0, -INFINITY, 0};
    node_begin(c, "Attention", opset, 4, scores ? 4 : 1);
    node_int(c, "qk_matmul_output_mode", 3);
    node_f32(c, 0, SHAPE(1, 1, 2, 1), 0, query);
    node_f32(c, 1, SHAPE(1, 1, 3, 1), 1, 1, 1);
    node_f32(c, 2, SHAPE(1, 1, 3, 1), 1, 2, 4);
    node_tensor(c, 3, kind, SHAPE(2, 3), kind == SONDE_DTYPE_BOOL ? (const void *)keep : bias);
    node_run(c);
}

TEST(a_query_all_of_whose_keys_are_masked_gives_zeros)
{
    one_node c;
    for (int i = 0; i < 8; i++) {
        const sn_dtype kind = i & 1 ? SONDE_DTYPE_BOOL : SONDE_DTYPE_F32;
        run_masked(&c, i & 4 ? 25 : 23, kind, 0, i & 2);
        CHECK_MSG(c.st == SONDE_OK, "%s", c.err.message);
        CHECK(NEAR(&c.out[0], 0, 2.5f));
        if (i & 2)
            CHECK(NEAR(&c.out[3], 0, 0, 0, 0.5f, 0, 0.5f));
        node_end(&c);
    }
}

TEST(a_query_of_nan_still_gives_nan)
{
    one_node c;
    for (int scores = 0; scores < 2; scores++) {
        run_masked(&c, 25, SONDE_DTYPE_BOOL, NAN, scores);
        CHECK_MSG(c.st == SONDE_OK, "%s", c.err.message);
        const float *y = c.out[0].t.data;
        CHECK(y[0] == 0 && isnan(y[1]));
        node_end(&c);
    }
}

TEST(heads_that_do_not_divide_are_refused)
{
    one_node c;
    node_begin(&c, "Attention", 23, 3, 1);
    node_count_up(&c, 0, SHAPE(1, 3, 2, 4));
    node_count_up(&c, 1, SHAPE(1, 2, 2, 4));
    node_count_up(&c, 2, SHAPE(1, 2, 2, 4));
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "share");
    node_end(&c);
}

TEST(symbolic_lengths_go_through_attention)
{
    one_node c;
    node_begin(&c, "Attention", 23, 6, 3);
    node_int(&c, "q_num_heads", 2);
    node_int(&c, "kv_num_heads", 2);
    const sn_dim n = sn_dim_symbol(1), s = sn_dim_symbol(2);
    node_fact(&c, 0, SONDE_DTYPE_F16, 3, (sn_dim[]){n, s, 8}, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_F16, 3, (sn_dim[]){n, 4, 8}, NULL, 0);
    node_fact(&c, 2, SONDE_DTYPE_F16, 3, (sn_dim[]){n, 4, 12}, NULL, 0);
    node_fact(&c, 4, SONDE_DTYPE_F16, 4, (sn_dim[]){n, 2, 3, 4}, NULL, 0);
    node_fact(&c, 5, SONDE_DTYPE_F16, 4, (sn_dim[]){n, 2, 3, 6}, NULL, 0);
    CHECK_MSG(node_infer(&c) == SONDE_OK, "%s", c.err.message);
    const sn_type *y = &node_fact_of(&c, 0)->type, *k = &node_fact_of(&c, 1)->type;
    CHECK(y->rank == 3 && y->dims[0] == n && y->dims[1] == s && y->dims[2] == 12);
    CHECK(k->rank == 4 && k->dims[1] == 2 && k->dims[2] == 7 && k->dims[3] == 4);
    node_end(&c);
}

TEST(rotary_embedding_turns_by_the_angle_of_the_position)
{
    one_node c;
    node_begin(&c, "RotaryEmbedding", 23, 4, 1);
    node_f32(&c, 0, SHAPE(1, 1, 2, 2), 1, 0, 0, 1);
    node_f32(&c, 1, SHAPE(3, 1), 1, 0, -1); /* cosines of 0, 90 and 180 degrees */
    node_f32(&c, 2, SHAPE(3, 1), 0, 1, 0);
    node_i64(&c, 3, SHAPE(1, 2), 1, 2);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 0, 1, 0, -1));
    node_end(&c);
}

TEST(a_position_outside_of_the_rotary_tables_is_an_error)
{
    one_node c;
    node_begin(&c, "RotaryEmbedding", 23, 4, 1);
    node_f32(&c, 0, SHAPE(1, 1, 1, 2), 1, 0);
    node_f32(&c, 1, SHAPE(1, 1), 1);
    node_f32(&c, 2, SHAPE(1, 1), 0);
    node_i64(&c, 3, SHAPE(1, 1), -1);
    CHECK_EQ(node_run(&c), SONDE_RUNTIME);
    CHECK_HAS(c.err.message, "position -1");
    node_end(&c);
}

TEST(a_circular_cache_wraps_around)
{
    one_node c;
    node_begin(&c, "TensorScatter", 24, 3, 1);
    node_text(&c, "mode", "circular");
    node_f32(&c, 0, SHAPE(1, 3, 1), 1, 2, 3);
    node_f32(&c, 1, SHAPE(1, 2, 1), 8, 9);
    node_i64(&c, 2, SHAPE(1), 5);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 9, 2, 8));
    node_end(&c);
}

TEST(a_linear_cache_refuses_to_write_past_its_end)
{
    one_node c;
    node_begin(&c, "TensorScatter", 24, 3, 1);
    node_f32(&c, 0, SHAPE(1, 3, 1), 1, 2, 3);
    node_f32(&c, 1, SHAPE(1, 2, 1), 8, 9);
    node_i64(&c, 2, SHAPE(1), 2);
    CHECK_EQ(node_run(&c), SONDE_RUNTIME);
    node_end(&c);
}

static void begin_gqa(one_node *c, int32_t seqlen, int32_t total)
{
    node_begin(c, "GroupQueryAttention", 1, 7, 3);
    c->n->domain = "com.microsoft";
    node_int(c, "num_heads", 2);
    node_int(c, "kv_num_heads", 1);
    node_f32(c, 0, SHAPE(1, 1, 2), 0, 0);
    node_f32(c, 1, SHAPE(1, 1, 1), 1);
    node_f32(c, 2, SHAPE(1, 1, 1), 9);
    node_f32(c, 3, SHAPE(1, 1, 4, 1), 1, 1, 7, 7);
    node_f32(c, 4, SHAPE(1, 1, 4, 1), 3, 6, 7, 7);
    node_tensor(c, 5, SONDE_DTYPE_I32, SHAPE(1), &seqlen);
    node_tensor(c, 6, SONDE_DTYPE_I32, SHAPE(1), &total);
}

TEST(group_query_attention_writes_into_a_longer_cache)
{
    one_node c;
    begin_gqa(&c, 2, 3);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 6, 6)); /* the mean of 3, 6 and 9 */
    CHECK(NEAR(&c.out[1], 1, 1, 1, 0));
    CHECK(NEAR(&c.out[2], 3, 6, 9, 0));
    node_end(&c);
}

TEST(lengths_beyond_the_cache_are_refused)
{
    static const int32_t lies[][2] = {{3, 3}, {-1, 3}, {-2, 3}, {2147483647, 3}, {2, 0}, {2, -5}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        one_node c;
        begin_gqa(&c, lies[i][0], lies[i][1]);
        CHECK_MSG(node_run(&c) != SONDE_OK, "case %zu passed", i);
        node_end(&c);
    }
}

TEST(multi_head_attention_takes_packed_projections)
{
    one_node c;
    node_begin(&c, "MultiHeadAttention", 1, 1, 1);
    c.n->domain = "com.microsoft";
    node_int(&c, "num_heads", 1);
    /* Two positions of q, k, v; equal scores. */
    node_f32(&c, 0, SHAPE(1, 2, 1, 3, 1), 0, 1, 4, 0, 1, 8);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 6, 6));
    node_end(&c);
}

TEST(linear_attention_adds_outer_products)
{
    one_node c;
    node_begin(&c, "LinearAttention", 27, 3, 2);
    node_int(&c, "q_num_heads", 1);
    node_int(&c, "kv_num_heads", 1);
    node_float(&c, "scale", 1.0f);
    node_text(&c, "update_rule", "linear");
    node_f32(&c, 0, SHAPE(1, 2, 2), 1, 0, 1, 1);
    node_f32(&c, 1, SHAPE(1, 2, 2), 1, 0, 0, 1);
    node_f32(&c, 2, SHAPE(1, 2, 1), 5, 7);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 5, 12));
    CHECK(NEAR(&c.out[1], 5, 7));
    node_end(&c);
}

TEST(a_causal_convolution_hands_its_last_inputs_on)
{
    one_node c;
    node_begin(&c, "CausalConvWithState", 27, 4, 2);
    node_f32(&c, 0, SHAPE(1, 1, 2), 3, 4);
    node_f32(&c, 1, SHAPE(1, 1, 3), 1, 10, 100);
    node_f32(&c, 3, SHAPE(1, 1, 2), 1, 2);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(NEAR(&c.out[0], 321, 432));
    CHECK(NEAR(&c.out[1], 3, 4));
    node_end(&c);
}

TEST_MAIN()
