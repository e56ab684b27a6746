/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes no exporter writes but a file can contain, found by the fuzzers: each is refused with a
 * sentence, or means the same as without its oddity. */
#include "ops/one_node.h"

#define REFUSED(c, status, part)                                                                   \
    do {                                                                                           \
        CHECK_EQ(node_run(c), status);                                                             \
        CHECK_HAS((c)->err.message, part);                                                         \
        node_end(c);                                                                               \
    } while (0)

TEST(inputs_left_empty_at_the_end_do_not_count)
{
    one_node c;
    node_begin(&c, "Add", 14, 5, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    node_f32(&c, 1, SHAPE(2), 3, 4);
    CHECK_EQ(node_run(&c), SONDE_OK);
    CHECK(IS_F32(&c.out[0], 4, 6));
    node_end(&c);
}

TEST(a_graph_as_attribute_of_an_operator_without_bodies_is_refused)
{
    one_node c;
    node_begin(&c, "Add", 14, 3, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    node_f32(&c, 1, SHAPE(2), 3, 4);
    node_f32(&c, 2, SHAPE(2), 5, 6); /* what the graph reads from outside */
    c.n->n_formal_in = 2;
    REFUSED(&c, SONDE_INVALID_MODEL, "takes none");
}

TEST(an_axis_before_the_first_is_refused)
{
    one_node c;
    node_begin(&c, "Softmax", 11, 1, 1);
    node_int(&c, "axis", -2);
    node_f32(&c, 0, SHAPE(3), 1, 2, 3);
    REFUSED(&c, SONDE_INVALID_MODEL, "axis -2");
}

/* They were added up to see whether they are 0 and 1. */
TEST(axes_of_any_size_that_do_not_exist_are_refused)
{
    static const int64_t pairs[][2] = {
        {INT64_MAX, 1}, {INT64_MIN, INT64_MAX}, {0, 0}, {1, 1}, {2, -1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        one_node c;
        node_begin(&c, "ReverseSequence", 10, 2, 1);
        node_int(&c, "batch_axis", pairs[i][0]);
        node_int(&c, "time_axis", pairs[i][1]);
        node_f32(&c, 0, SHAPE(1, 2), 1, 2);
        node_i64(&c, 1, SHAPE(1), 2);
        REFUSED(&c, SONDE_INVALID_MODEL, "must be 0 and 1");
    }
}

TEST(blocks_that_only_the_layout_pass_can_make_are_refused)
{
    one_node c;
    node_begin(&c, "Reorder", 1, 1, 1);
    c.n->domain = "sonde";
    node_int(&c, "block", 8);
    node_count_up(&c, 0, SHAPE(1, 4, 5, 5));
    REFUSED(&c, SONDE_UNSUPPORTED, "layout pass");
}

TEST(a_training_mode_without_elements_is_refused)
{
    one_node c;
    node_begin(&c, "Dropout", 13, 3, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    node_f32(&c, 1, SCALAR, 0.5f);
    node_tensor(&c, 2, SONDE_DTYPE_BOOL, SHAPE(0), NULL);
    REFUSED(&c, SONDE_RUNTIME, "expected 1");
}

TEST(a_range_of_mixed_types_is_refused)
{
    one_node c;
    node_begin(&c, "Range", 11, 3, 1);
    node_i64(&c, 0, SCALAR, 0);
    node_tensor(&c, 1, SONDE_DTYPE_I32, SCALAR, (int32_t[]){3});
    node_i64(&c, 2, SCALAR, 1);
    REFUSED(&c, SONDE_INVALID_MODEL, "int32");
}

TEST(a_residual_that_does_not_broadcast_with_the_product_is_refused)
{
    one_node c;
    node_begin(&c, "FusedGemm", 1, 4, 1);
    c.n->domain = "sonde";
    node_count_up(&c, 0, SHAPE(2, 5, 4));
    node_count_up(&c, 1, SHAPE(4, 3));
    node_count_up(&c, 3, SHAPE(7, 3));
    REFUSED(&c, SONDE_INVALID_MODEL, "broadcast");
}

/* Two heads of two numbers, three positions; keys and values are the second half of the columns. */
static void attention_node(one_node *c)
{
    node_begin(c, "FusedAttention", 1, 4, 1);
    c->n->domain = "sonde";
    node_int(c, "heads", 2);
    node_int(c, "kv_heads", 1);
    node_int(c, "head_size", 2);
    node_int(c, "v_head_size", 2);
    for (uint32_t i = 0; i < 3; i++)
        node_count_up(c, i, SHAPE(1, 3, 4));
}

TEST(heads_outside_of_what_they_are_read_from_are_refused)
{
    one_node c;
    for (int k = 0; k < 7; k++) {
        attention_node(&c);
        /* An axis that is not there, a head or a key beyond the last column, one axis for two
         * things, positions without a place in the result, batches with two. */
        node_ints(&c, "q_view", k == 0 ? 2 : 0, -1, 1, k == 1 ? 3 : 2, 0);
        node_ints(&c, "k_view", 0, -1, 1, 0, k == 2 ? 3 : 2);
        node_ints(&c, "v_view", k == 3 ? 1 : 0, -1, 1, 0, 2);
        node_ints(&c, "y_axes", 1, k == 4 ? 0 : k == 5 ? 31 : 3, 24);
        if (k == 6)
            node_count_up(&c, 3, SHAPE(1, 1, 3, 2)); /* a mask over two of three keys */
        const sonde_status st = node_run(&c);
        CHECK_MSG(st == SONDE_INVALID_MODEL, "case %d gives status %d", k, st);
        node_end(&c);
    }
}

TEST(integers_scaled_beyond_their_range_saturate)
{
    one_node c;
    for (int k = 0; k < 2; k++) {
        node_begin(&c, "Gemm", 13, 2, 1);
        node_float(&c, "alpha", k ? 1e30f : (float)NAN);
        node_tensor(&c, 0, SONDE_DTYPE_I64, SHAPE(1, 1), (int64_t[]){3});
        node_tensor(&c, 1, SONDE_DTYPE_I64, SHAPE(1, 1), (int64_t[]){2});
        CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
        CHECK(IS_I64(&c.out[0], k ? INT64_MAX : 0));
        node_end(&c);
    }
}

TEST(parts_of_any_size_are_counted_without_overflow)
{
    one_node c;
    node_begin(&c, "SplitToSequence", 11, 2, 1);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    node_i64(&c, 1, SCALAR, INT64_MAX);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK_EQ(c.out[0].list->n, 1);
    node_end(&c);
}

TEST(a_transposed_convolution_to_no_channels_gives_nothing)
{
    one_node c;
    node_begin(&c, "ConvTranspose", 11, 2, 1);
    node_count_up(&c, 0, SHAPE(1, 1, 3, 3));
    node_count_up(&c, 1, SHAPE(1, 0, 3, 3));
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(has_shape(&c.out[0], SHAPE(1, 0, 5, 5)));
    node_end(&c);
}

TEST(a_kept_aspect_ratio_that_leads_beyond_any_size_is_refused)
{
    one_node c;
    node_begin(&c, "Resize", 19, 4, 1);
    node_text(&c, "keep_aspect_ratio_policy", "not_smaller");
    node_f32(&c, 0, SHAPE(1, 4), 1, 2, 3, 4);
    node_list(&c, 3, INT64_MAX, 4);
    REFUSED(&c, SONDE_INVALID_MODEL, "invalid");
}

TEST(padding_that_cuts_everything_off_leaves_only_the_fill)
{
    one_node c;
    node_begin(&c, "Pad", 18, 3, 1);
    node_f32(&c, 0, SHAPE(2, 2), 1, 2, 3, 4);
    node_list(&c, 1, -((int64_t)1 << 62), 0, (int64_t)1 << 62, 0);
    node_f32(&c, 2, SCALAR, 7);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2)));
    CHECK(IS_F32(&c.out[0], 7, 7, 7, 7));
    node_end(&c);
}

/* Inference writes symbols as numbers near the lowest; data and arithmetic may end there too. */
TEST(numbers_that_look_like_symbols_are_not_taken_for_them)
{
    static const sn_dim one = 1, two = 2, low = SN_DIM_FIRST_KNOWN, less = -5;
    one_node c;
    node_begin(&c, "Add", 14, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_I64, 1, &one, &low, 1);
    node_fact(&c, 1, SONDE_DTYPE_I64, 1, &one, &less, 1);
    CHECK_MSG(node_infer(&c) == SONDE_OK, "%s", c.err.message);
    const sn_fact *f = node_fact_of(&c, 0);
    CHECK(f->ints && f->ints[0] == SN_DIM_UNKNOWN);
    node_end(&c);

    int64_t fill = INT64_MIN + 2;
    sn_tensor value = {
        .dtype = SONDE_DTYPE_I64, .rank = 1, .dims = {1}, .data = &fill, .bytes = sizeof fill};
    node_begin(&c, "ConstantOfShape", 9, 1, 1);
    node_attr(&c, (sn_attr){.name = "value", .kind = SN_ATTR_TENSOR, .n = 1, .tensor = &value});
    node_fact(&c, 0, SONDE_DTYPE_I64, 1, &one, &two, 1);
    CHECK_MSG(node_infer(&c) == SONDE_OK, "%s", c.err.message);
    f = node_fact_of(&c, 0);
    CHECK(f->ints && f->n_ints == 2 && sn_dim_known(f->ints[0]));
    node_end(&c);
}

/* Without elements a dim may be of any size: no loop may go over it. */
TEST(an_empty_tensor_with_a_huge_dim_ends_at_once)
{
    one_node c;
    node_begin(&c, "MaxPool", 12, 1, 1);
    node_ints(&c, "kernel_shape", 2, 6);
    node_text(&c, "auto_pad", "SAME_LOWER");
    node_f32(&c, 0, SHAPE(1, 2, (int64_t)1 << 49, 0), 0);
    CHECK_MSG(node_run(&c) == SONDE_OK, "%s", c.err.message);
    CHECK(has_shape(&c.out[0], SHAPE(1, 2, (int64_t)1 << 49, 0)));
    node_end(&c);
}

TEST(a_declared_shape_beyond_any_memory_is_refused)
{
    static const sn_dim huge[3] = {1, ((int64_t)1 << 62) + 2, 8}, small[3] = {1, 3, 8};
    one_node c;
    node_begin(&c, "MultiHeadAttention", 1, 3, 1);
    c.n->domain = "com.microsoft";
    node_int(&c, "num_heads", 4);
    node_fact(&c, 0, SONDE_DTYPE_F32, 3, huge, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_F32, 3, small, NULL, 0);
    node_fact(&c, 2, SONDE_DTYPE_F32, 3, small, NULL, 0);
    CHECK_EQ(node_infer(&c), SONDE_LIMIT);
    CHECK_HAS(c.err.message, "too large");
    node_end(&c);
}

/* A list without entries has no unknown ones: the shape is that of a scalar, which needs an
 * element. */
TEST(nothing_is_not_reshaped_into_a_scalar_by_an_empty_shape_that_is_fed)
{
    static const sn_dim none[3] = {0, 3, 7}, one[2] = {1, 1}, length[1] = {0};
    one_node c;
    node_begin(&c, "Reshape", 14, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_F16, 3, none, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_I64, 1, length, NULL, 0);
    CHECK(node_infer(&c) != SONDE_OK);
    CHECK_HAS(c.err.message, "cannot reshape 0 elements into 1");
    node_end(&c);
    node_begin(&c, "Reshape", 14, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_F16, 2, one, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_I64, 1, length, NULL, 0);
    CHECK_EQ(node_infer(&c), SONDE_OK);
    node_end(&c);
}

/* Inputs of every rank, also those that make no sense: an operator looks at ranks before it looks
 * at dims. AddressSanitizer sees those that do not. */
TEST(no_operator_reads_dims_that_are_not_there)
{
    static const sn_dtype types[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F32,  SONDE_DTYPE_I64,
                                     SONDE_DTYPE_U8,  SONDE_DTYPE_BOOL, SONDE_DTYPE_I8};
    for (size_t k = 0; sn_op_row(k); k++) {
        const sn_op *op = sn_op_row(k);
        if (op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR))
            continue;
        for (int i = 0; i < 60; i++) {
            one_node c;
            const int most = op->max_in < 0 || op->max_in > 8 ? 8 : op->max_in;
            const uint32_t n = (uint32_t)(op->min_in > most || i % 2 ? op->min_in : most);
            const sn_dtype same = types[test_rand() % 6];
            node_begin(&c, op->name, op->since, n > NODE_MAX ? NODE_MAX : n, 1);
            c.n->domain = op->domain;
            for (uint32_t j = 0; j < c.n->n_in; j++) {
                const int rank = i < 7 ? i : (int)(test_rand() % 7);
                sn_dim dims[7];
                for (int d = 0; d < rank; d++)
                    dims[d] = (sn_dim)(test_rand() % 4);
                node_fact(&c, j, i % 3 ? same : types[test_rand() % 6], rank, dims, NULL, 0);
            }
            (void)node_infer(&c);
            node_end(&c);
        }
    }
}

TEST_MAIN()
