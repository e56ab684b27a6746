/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements: results on small tensors, shape arithmetic with symbols, and inputs
 * that must be refused instead of crashing. */
#include "one_node.h"

/* ------------------------------------------------------------------ values */
TEST(transpose_swaps_the_axes_of_a_batch)
{
    one_node c;
    node_begin(&c, "Transpose", 13, 1, 1);
    node_ints(&c, "perm", 0, 2, 1);
    node_count_up(&c, 0, SHAPE(2, 2, 3));
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 3, 2)));
    CHECK(IS_F32(&c.out[0], 0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
    node_end(&c);
}

TEST(transpose_of_strings_owns_its_text)
{
    one_node c;
    sonde_string text[4] = {{"a", 1}, {"bb", 2}, {"ccc", 3}, {"", 0}};
    node_begin(&c, "Transpose", 13, 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(2, 2), text);
    node_run(&c);
    NODE_OK(&c);
    sn_slot_clear(&c.in[0]);
    const sonde_string *y = c.out[0].t.data;
    CHECK(y[1].size == 3 && memcmp(y[1].data, "ccc", 3) == 0 && y[2].size == 2);
    node_end(&c);
}

TEST(space_to_depth_orders_blocks_before_or_behind_the_channels)
{
    one_node c;
    node_begin(&c, "SpaceToDepth", 28, 1, 1);
    node_int(&c, "blocksize", 2);
    node_text(&c, "mode", "CRD");
    node_count_up(&c, 0, SHAPE(1, 2, 2, 4));
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 8, 1, 2)));
    CHECK(IS_F32(&c.out[0], 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    node_end(&c);
    node_begin(&c, "SpaceToDepth", 28, 1, 1);
    node_int(&c, "blocksize", 2);
    node_text(&c, "mode", "DCR");
    node_count_up(&c, 0, SHAPE(1, 2, 2, 4));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15));
    node_end(&c);
}

TEST(slice_takes_negative_steps_and_clamps)
{
    one_node c;
    node_begin(&c, "Slice", 13, 5, 1);
    node_count_up(&c, 0, SHAPE(3, 4));
    node_list(&c, 1, 100, -100);
    node_list(&c, 2, INT64_MIN, INT64_MAX);
    node_list(&c, 3, 0, -1);
    node_list(&c, 4, -2, 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2)));
    CHECK(IS_F32(&c.out[0], 8, 11, 0, 3));
    node_end(&c);
}

TEST(concat_joins_an_inner_axis)
{
    one_node c;
    node_begin(&c, "Concat", 13, 2, 1);
    node_int(&c, "axis", -1);
    node_count_up(&c, 0, SHAPE(2, 2));
    node_f32(&c, 1, SHAPE(2, 1), 10, 20);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 1, 10, 2, 3, 20));
    node_end(&c);
}

TEST(split_without_sizes_gives_a_smaller_last_part)
{
    one_node c;
    node_begin(&c, "Split", 18, 1, 2);
    node_int(&c, "num_outputs", 2);
    node_count_up(&c, 0, SHAPE(5));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 1, 2));
    CHECK(IS_F32(&c.out[1], 3, 4));
    node_end(&c);
}

TEST(gather_takes_negative_indices)
{
    one_node c;
    node_begin(&c, "Gather", 13, 2, 1);
    node_int(&c, "axis", 1);
    node_count_up(&c, 0, SHAPE(2, 3));
    node_list(&c, 1, -1, 0);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2, 0, 5, 3));
    node_end(&c);
}

TEST(scatter_elements_adds_where_indices_repeat)
{
    one_node c;
    node_begin(&c, "ScatterElements", 18, 3, 1);
    node_text(&c, "reduction", "add");
    node_f32(&c, 0, SHAPE(3), 1, 2, 3);
    node_list(&c, 1, 1, 1, -1);
    node_f32(&c, 2, SHAPE(3), 10, 20, 30);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 1, 32, 33));
    node_end(&c);
}

TEST(pad_reflects_wraps_and_repeats_the_edge)
{
    static const struct {
        const char *mode;
        float want[7];
    } cases[] = {{"reflect", {2, 1, 0, 1, 2, 1, 0}},
                 {"edge", {0, 0, 0, 1, 2, 2, 2}},
                 {"wrap", {1, 2, 0, 1, 2, 0, 1}},
                 {"constant", {0, 0, 0, 1, 2, 0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        one_node c;
        node_begin(&c, "Pad", 19, 2, 1);
        node_text(&c, "mode", cases[i].mode);
        node_count_up(&c, 0, SHAPE(3));
        node_list(&c, 1, 2, 2);
        node_run(&c);
        NODE_OK(&c);
        CHECK_MSG(has_elems(&c.out[0], cases[i].want, sizeof cases[i].want, true), "mode %s",
                  cases[i].mode);
        node_end(&c);
    }
}

TEST(pad_with_negative_pads_crops)
{
    one_node c;
    node_begin(&c, "Pad", 13, 2, 1);
    node_count_up(&c, 0, SHAPE(2, 4));
    node_list(&c, 1, 0, -1, 1, -2);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(3, 1)));
    CHECK(IS_F32(&c.out[0], 1, 5, 0));
    node_end(&c);
}

TEST(topk_of_equal_elements_takes_the_lower_index)
{
    one_node c;
    node_begin(&c, "TopK", 11, 2, 2);
    node_f32(&c, 0, SHAPE(5), 1, 3, 3, 2, 3);
    node_list(&c, 1, 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 3, 3, 3));
    CHECK(IS_I64(&c.out[1], 1, 2, 4));
    node_end(&c);
}

TEST(unique_keeps_first_appearances_when_unsorted)
{
    one_node c;
    node_begin(&c, "Unique", 11, 1, 4);
    node_int(&c, "sorted", 0);
    node_f32(&c, 0, SHAPE(6), 2, 1, 1, 3, 4, 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2, 1, 3, 4));
    CHECK(IS_I64(&c.out[1], 0, 1, 3, 4));
    CHECK(IS_I64(&c.out[2], 0, 1, 1, 2, 3, 2));
    CHECK(IS_I64(&c.out[3], 1, 2, 2, 1));
    node_end(&c);
}

TEST(resize_doubles_an_image_bilinearly)
{
    one_node c;
    node_begin(&c, "Resize", 19, 3, 1);
    node_text(&c, "mode", "linear");
    node_f32(&c, 0, SHAPE(1, 1, 1, 2), 0, 4);
    node_f32(&c, 2, SHAPE(4), 1, 1, 1, 2);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 1, 3, 4));
    node_end(&c);
}

TEST(einsum_multiplies_batched_matrices)
{
    one_node c;
    node_begin(&c, "Einsum", 12, 2, 1);
    node_text(&c, "equation", "...ij, ...kj -> ...ik");
    node_count_up(&c, 0, SHAPE(2, 1, 2));
    node_count_up(&c, 1, SHAPE(2, 2));
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 1, 2)));
    CHECK(IS_F32(&c.out[0], 1, 3, 3, 13));
    node_end(&c);
}

TEST(random_numbers_with_a_seed_repeat)
{
    float first[64];
    for (int run = 0; run < 2; run++) {
        one_node c;
        node_begin(&c, "RandomNormal", 1, 0, 1);
        node_ints(&c, "shape", 64);
        node_float(&c, "seed", 7.0f);
        node_run(&c);
        NODE_OK(&c);
        if (run == 0)
            memcpy(first, c.out[0].t.data, sizeof first);
        CHECK(memcmp(first, c.out[0].t.data, sizeof first) == 0);
        node_end(&c);
    }
}

/* ------------------------------------------------------------------ shapes */
TEST(reshape_cancels_symbols_to_find_the_missing_dim)
{
    one_node c;
    sn_dim n = sn_dim_symbol(1), s = sn_dim_symbol(2);
    node_begin(&c, "Reshape", 14, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_F32, 3, (sn_dim[]){n, s, 768}, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_I64, 1, (sn_dim[]){4}, (sn_dim[]){0, s, 12, -1}, 4);
    node_infer(&c);
    NODE_OK(&c);
    const sn_type *t = &node_fact_of(&c, 0)->type;
    CHECK_EQ(t->rank, 4);
    CHECK(t->dims[0] == n && t->dims[1] == s && t->dims[2] == 12 && t->dims[3] == 64);
    node_end(&c);
}

TEST(shape_arithmetic_keeps_symbols_through_gather_and_concat)
{
    one_node c;
    sn_dim n = sn_dim_symbol(5);
    node_begin(&c, "Gather", 13, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_I64, 1, (sn_dim[]){3}, (sn_dim[]){8, n, 2}, 3);
    node_fact(&c, 1, SONDE_DTYPE_I64, 0, NULL, (sn_dim[]){-2}, 1);
    node_infer(&c);
    NODE_OK(&c);
    CHECK(node_fact_of(&c, 0)->n_ints == 1 && node_fact_of(&c, 0)->ints[0] == n);
    node_end(&c);
    node_begin(&c, "Concat", 13, 2, 1);
    node_int(&c, "axis", 0);
    node_fact(&c, 0, SONDE_DTYPE_I64, 1, (sn_dim[]){1}, (sn_dim[]){n}, 1);
    node_fact(&c, 1, SONDE_DTYPE_I64, 1, (sn_dim[]){2}, NULL, 0);
    node_infer(&c);
    NODE_OK(&c);
    const sn_fact *f = node_fact_of(&c, 0);
    CHECK(f->n_ints == 3 && f->ints[0] == n && f->ints[1] == SN_DIM_UNKNOWN);
    node_end(&c);
}

TEST(slice_to_the_end_keeps_a_symbolic_dim)
{
    one_node c;
    sn_dim n = sn_dim_symbol(3);
    node_begin(&c, "Slice", 13, 4, 1);
    node_fact(&c, 0, SONDE_DTYPE_F32, 2, (sn_dim[]){n, 10}, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_I64, 1, (sn_dim[]){2}, (sn_dim[]){0, 2}, 2);
    node_fact(&c, 2, SONDE_DTYPE_I64, 1, (sn_dim[]){2}, (sn_dim[]){INT64_MAX, -3}, 2);
    node_fact(&c, 3, SONDE_DTYPE_I64, 1, (sn_dim[]){2}, (sn_dim[]){0, 1}, 2);
    node_infer(&c);
    NODE_OK(&c);
    CHECK(node_fact_of(&c, 0)->type.dims[0] == n && node_fact_of(&c, 0)->type.dims[1] == 5);
    node_end(&c);
}

TEST(range_up_to_a_symbol_has_that_many_elements)
{
    one_node c;
    sn_dim n = sn_dim_symbol(9);
    node_begin(&c, "Range", 11, 3, 1);
    node_fact(&c, 0, SONDE_DTYPE_I64, 0, NULL, (sn_dim[]){0}, 1);
    node_fact(&c, 1, SONDE_DTYPE_I64, 0, NULL, &n, 1);
    node_fact(&c, 2, SONDE_DTYPE_I64, 0, NULL, (sn_dim[]){1}, 1);
    node_infer(&c);
    NODE_OK(&c);
    CHECK(node_fact_of(&c, 0)->type.dims[0] == n);
    node_end(&c);
}

/* ------------------------------------------------------------------ refusals */
TEST(an_index_out_of_range_is_an_error_that_names_the_node)
{
    static const char *const ops[] = {"Gather", "GatherElements", "GatherND"};
    for (size_t i = 0; i < 3; i++) {
        one_node c;
        node_begin(&c, ops[i], 13, 2, 1);
        node_count_up(&c, 0, SHAPE(3));
        node_i64(&c, 1, SHAPE(1), 3);
        CHECK(node_run(&c) != SONDE_OK);
        CHECK_HAS(c.err.message, "'it'");
        node_end(&c);
    }
}

TEST(a_huge_range_is_refused)
{
    one_node c;
    node_begin(&c, "Range", 11, 3, 1);
    node_i64(&c, 0, SCALAR, INT64_MIN);
    node_i64(&c, 1, SCALAR, INT64_MAX);
    node_i64(&c, 2, SCALAR, 1);
    CHECK(node_run(&c) != SONDE_OK);
    node_end(&c);
    node_begin(&c, "Range", 11, 3, 1);
    node_f32(&c, 0, SCALAR, 0);
    node_f32(&c, 1, SCALAR, 1e30f);
    node_f32(&c, 2, SCALAR, 1e-30f);
    CHECK(node_run(&c) != SONDE_OK);
    node_end(&c);
}

TEST(shapes_that_overflow_are_refused)
{
    static const char *const ops[] = {"Expand", "Reshape", "Tile"};
    for (size_t i = 0; i < 3; i++) {
        one_node c;
        node_begin(&c, ops[i], 13, 2, 1);
        node_count_up(&c, 0, SHAPE(1, 1));
        node_list(&c, 1, INT64_MAX / 2, 16);
        CHECK_MSG(node_run(&c) != SONDE_OK, "%s", ops[i]);
        node_end(&c);
    }
    one_node c;
    node_begin(&c, "ConstantOfShape", 9, 1, 1);
    node_list(&c, 0, INT64_MAX, INT64_MAX);
    CHECK(node_run(&c) != SONDE_OK);
    node_end(&c);
    node_begin(&c, "Pad", 13, 2, 1);
    node_count_up(&c, 0, SHAPE(1));
    node_list(&c, 1, INT64_MAX, INT64_MAX);
    CHECK(node_run(&c) != SONDE_OK);
    node_end(&c);
}

TEST(resize_refuses_scales_that_are_no_scales)
{
    static const float bad[] = {0, -1, NAN, INFINITY, 1e38f};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        one_node c;
        node_begin(&c, "Resize", 13, 3, 1);
        node_count_up(&c, 0, SHAPE(2));
        node_f32(&c, 2, SHAPE(1), bad[i]);
        CHECK_MSG(node_run(&c) != SONDE_OK, "scale %g", (double)bad[i]);
        node_end(&c);
    }
}

TEST(empty_tensors_move_without_touching_memory)
{
    static const char *const ops[] = {"Transpose", "Flatten", "NonZero",
                                      "Identity",  "Shape",   "Unique"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        one_node c;
        node_begin(&c, ops[i], 13, 1, 1);
        node_tensor(&c, 0, SONDE_DTYPE_F32, SHAPE(2, 0, 3), NULL);
        node_run(&c);
        CHECK_MSG(c.st == SONDE_OK, "%s: %s", ops[i], c.err.message);
        node_end(&c);
    }
}

TEST_MAIN()
