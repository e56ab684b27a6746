/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid, RoiAlign, MaxRoiPool, Col2Im, MaxUnpool and Det on cases small enough to
 * check by hand, and on positions no model should have. */
#include "ops/one_node.h"

static void grid_case(one_node *c, const char *mode, const char *padding, int align,
                      const float *grid, int n)
{
    node_begin(c, "GridSample", 20, 2, 1);
    node_text(c, "mode", mode);
    node_text(c, "padding_mode", padding);
    node_int(c, "align_corners", align);
    node_f32(c, 0, SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    node_tensor(c, 1, SONDE_DTYPE_F32, SHAPE(1, 1, n, 2), grid);
    node_run(c);
}

TEST(a_grid_position_mixes_the_pixels_around_it)
{
    one_node c;
    const float grid[] = {0, 0, -1, -1, 1, 0};
    grid_case(&c, "linear", "zeros", 1, grid, 3);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2.5f, 1, 3));
    node_end(&c);
}

TEST(outside_of_the_image_lie_zeros_the_border_or_a_mirror)
{
    one_node c;
    const float grid[] = {-1.5f, -0.5f}; /* one pixel left of the first row's first pixel */
    grid_case(&c, "nearest", "zeros", 0, grid, 1);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0));
    node_end(&c);
    grid_case(&c, "nearest", "border", 0, grid, 1);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 1));
    node_end(&c);
    const float mirrored[] = {-2.5f,
                              -0.5f}; /* two pixels left: mirrored at the edge it is the second */
    grid_case(&c, "nearest", "reflection", 0, mirrored, 1);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2));
    node_end(&c);
}

TEST(absurd_grid_positions_are_outside_and_harmless)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"}, *const paddings[] = {
                                                                           "zeros", "border",
                                                                           "reflection"};
    const float grid[] = {NAN, 0, INFINITY, -INFINITY, 1e30f, -1e30f, 3e38f, 3e38f};
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 3; p++)
            for (int align = 0; align < 2; align++) {
                one_node c;
                grid_case(&c, modes[m], paddings[p], align, grid, 4);
                NODE_OK(&c);
                for (int i = 0; i < 4; i++) {
                    const float v = ((float *)c.out[0].t.data)[i];
                    CHECK_MSG(p == 0 ? v == 0 : v > -4 && v < 9, "%s %s: %g", modes[m], paddings[p],
                              (double)v);
                }
                node_end(&c);
            }
}

TEST(nearest_sampling_takes_strings)
{
    one_node c;
    const sonde_string words[] = {{"a", 1}, {"bc", 2}};
    node_begin(&c, "GridSample", 20, 2, 1);
    node_text(&c, "mode", "nearest");
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(1, 1, 1, 2), words);
    node_f32(&c, 1, SHAPE(1, 1, 2, 2), 0.5f, 0, 9, 9);
    node_run(&c);
    NODE_OK(&c);
    const sonde_string *y = c.out[0].t.data;
    CHECK_EQ(y[0].size, 2);
    CHECK_EQ(y[0].data[0], 'b');
    CHECK_EQ(y[1].size, 0);
    node_end(&c);
}

TEST(an_affine_grid_of_the_identity_is_the_pixel_centres)
{
    one_node c;
    node_begin(&c, "AffineGrid", 20, 2, 1);
    node_f32(&c, 0, SHAPE(1, 2, 3), 1, 0, 0, 0, 1, 0);
    node_list(&c, 1, 1, 3, 2, 2);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 2, 2, 2)));
    CHECK(IS_F32(&c.out[0], -0.5f, -0.5f, 0.5f, -0.5f, -0.5f, 0.5f, 0.5f, 0.5f));
    node_end(&c);
}

/* ------------------------------------------------------------------ regions */
static void roi_case(one_node *c, const char *mode, const float *roi, int64_t image)
{
    node_begin(c, "RoiAlign", 16, 3, 1);
    node_text(c, "mode", mode);
    node_text(c, "coordinate_transformation_mode", "output_half_pixel");
    node_int(c, "sampling_ratio", 0);
    node_f32(c, 0, SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    node_tensor(c, 1, SONDE_DTYPE_F32, SHAPE(1, 4), roi);
    node_tensor(c, 2, SONDE_DTYPE_I64, SHAPE(1), &image);
    node_run(c);
}

TEST(a_region_is_sampled_at_the_middle_of_its_bins)
{
    one_node c;
    roi_case(&c, "avg", (float[]){0, 0, 1, 1}, 0);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2.5f));
    node_end(&c);
}

TEST(absurd_regions_end_and_stay_inside)
{
    static const float regions[][4] = {
        {-1e30f, -1e30f, 1e30f, 1e30f}, {NAN, 0, 1, 1}, {0, 0, INFINITY, INFINITY},
        {1e9f, 1e9f, 2e9f, 2e9f},       {5, 5, -5, -5}, {-INFINITY, -INFINITY, 0, 0}};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
        for (int max = 0; max < 2; max++) {
            one_node c;
            roi_case(&c, max ? "max" : "avg", regions[i], 0);
            NODE_OK(&c);
            const float v = ((float *)c.out[0].t.data)[0];
            CHECK_MSG(v >= 0 && v <= 4, "region %zu gives %g", i, (double)v);
            node_end(&c);
            node_begin(&c, "MaxRoiPool", 1, 2, 1);
            node_ints(&c, "pooled_shape", 2, 2);
            node_f32(&c, 0, SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
            node_f32(&c, 1, SHAPE(1, 5), 0, regions[i][0], regions[i][1], regions[i][2],
                     regions[i][3]);
            node_run(&c);
            NODE_OK(&c);
            node_end(&c);
        }
}

TEST(a_region_of_an_image_that_is_not_there_is_refused)
{
    one_node c;
    roi_case(&c, "avg", (float[]){0, 0, 1, 1}, 1);
    CHECK_EQ(c.st, SONDE_RUNTIME);
    node_end(&c);
    roi_case(&c, "avg", (float[]){0, 0, 1, 1}, -1);
    CHECK_EQ(c.st, SONDE_RUNTIME);
    node_end(&c);
}

TEST(max_pooling_of_a_region_takes_its_largest_pixels)
{
    one_node c;
    node_begin(&c, "MaxRoiPool", 1, 2, 1);
    node_ints(&c, "pooled_shape", 1, 2);
    node_f32(&c, 0, SHAPE(1, 1, 2, 3), 1, 5, 2, 4, 3, 6);
    node_f32(&c, 1, SHAPE(1, 5), 0, 0, 0, 1, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 4, 5));
    node_end(&c);
}

/* ------------------------------------------------------------------ back into images */
TEST(overlapping_columns_add_up)
{
    one_node c;
    node_begin(&c, "Col2Im", 18, 3, 1);
    node_f32(&c, 0, SHAPE(1, 2, 2), 1, 2, 10, 20);
    node_list(&c, 1, 1, 3);
    node_list(&c, 2, 1, 2);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 1, 1, 3)));
    CHECK(IS_F32(&c.out[0], 1, 12, 20));
    node_end(&c);
}

TEST(columns_of_integers_keep_their_type)
{
    one_node c;
    node_begin(&c, "Col2Im", 18, 3, 1);
    node_i64(&c, 0, SHAPE(1, 2, 2), INT64_MAX - 5, 2, 3, 20);
    node_list(&c, 1, 1, 3);
    node_list(&c, 2, 1, 2);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_I64(&c.out[0], INT64_MAX - 5, 5, 20));
    node_end(&c);
}

TEST(maxima_return_to_where_they_were_found)
{
    one_node c;
    node_begin(&c, "MaxUnpool", 11, 3, 1);
    node_ints(&c, "kernel_shape", 2, 2);
    node_ints(&c, "strides", 2, 2);
    node_f32(&c, 0, SHAPE(1, 1, 1, 1), 7);
    node_i64(&c, 1, SHAPE(1, 1, 1, 1), 3);
    node_list(&c, 2, 1, 1, 3, 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 0, 0, 0, 7, 0, 0, 0, 0));
    node_end(&c);
}

TEST(indices_outside_of_the_pooled_image_are_refused)
{
    static const int64_t wrong[] = {4, -1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        one_node c;
        node_begin(&c, "MaxUnpool", 11, 2, 1);
        node_ints(&c, "kernel_shape", 2, 2);
        node_ints(&c, "strides", 2, 2);
        node_f32(&c, 0, SHAPE(1, 1, 1, 1), 7);
        node_i64(&c, 1, SHAPE(1, 1, 1, 1), wrong[i]);
        CHECK_EQ(node_run(&c), SONDE_RUNTIME);
        node_end(&c);
    }
}

TEST(determinants_change_sign_with_rows_and_vanish_when_singular)
{
    one_node c;
    node_begin(&c, "Det", 11, 1, 1);
    node_f32(&c, 0, SHAPE(3, 2, 2), 1, 2, 3, 4, 0, 2, 3, 4, 1, 2, 2, 4);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], -2, -6, 0));
    node_end(&c);
}

TEST_MAIN()
