/* SPDX-License-Identifier: Apache-2.0 */
/* Resize against positions computed in whole numbers: every mode of coordinates and of rounding, by
 * sizes and by scales that binary numbers hold exactly. */
#include "compute/resize_axis.h"
#include "ops/one_node.h"

/* The source position of output o for the scale p / q is num / den. */
typedef struct fraction {
    int64_t num, den;
} fraction;

static fraction position(sn_resize_coords coords, int64_t in, int64_t out, int64_t p, int64_t q,
                         int64_t o, double roi_begin, double roi_end)
{
    const int64_t eighths = (int64_t)(8 * roi_begin), size = (int64_t)(8 * roi_end) - eighths;
    const bool single = in * p == q;
    switch (coords) {
    case SN_COORDS_ALIGN_CORNERS:
        return single ? (fraction){0, 1} : (fraction){o * (in - 1) * q, in * p - q};
    case SN_COORDS_ASYMMETRIC:
        return (fraction){o * q, p};
    case SN_COORDS_TF_HALF_PIXEL_FOR_NN:
        return (fraction){(2 * o + 1) * q, 2 * p};
    case SN_COORDS_TF_CROP_AND_RESIZE:
        return single ? (fraction){(2 * eighths + size) * (in - 1), 16}
                      : (fraction){(in - 1) * (eighths * (in * p - q) + o * size * q),
                                   8 * (in * p - q)};
    case SN_COORDS_PYTORCH_HALF_PIXEL:
        if (single)
            return (fraction){0, 1};
        break;
    case SN_COORDS_HALF_PIXEL_SYMMETRIC:
        return (fraction){(in - 1) * p + (2 * o + 1 - out) * q, 2 * p};
    default:
        break;
    }
    return (fraction){(2 * o + 1) * q - p, 2 * p};
}

static int64_t expected(sn_resize_coords coords, sn_resize_round round, fraction x, int64_t in)
{
    if (x.den < 0)
        x = (fraction){-x.num, -x.den};
    if (coords == SN_COORDS_TF_CROP_AND_RESIZE && (x.num < 0 || x.num > (in - 1) * x.den))
        return -1;
    const int64_t low = x.num / x.den - (x.num % x.den < 0), part = x.num - low * x.den;
    const bool up = round == SN_ROUND_PREFER_FLOOR  ? 2 * part > x.den
                    : round == SN_ROUND_PREFER_CEIL ? 2 * part >= x.den
                                                    : round == SN_ROUND_CEIL && part > 0;
    const int64_t i = low + up;
    return i < 0 ? 0 : i >= in ? in - 1 : i;
}

/* All modes on one axis. The scale is p / q, given as this fraction or as a float. */
static void check_axis(int64_t in, int64_t out, int64_t p, int64_t q, bool by_scale)
{
    int64_t index[256];
    sn_resize_axis a = {.in = in, .out = out, .roi_begin = 0.125, .roi_end = 0.875};
    if (by_scale)
        sn_resize_by_scale(&a, (double)p / (double)q);
    else
        sn_resize_by_ratio(&a, p, q);
    for (int c = 0; c < SN_COORDS_COUNT; c++)
        for (int r = 0; r < SN_ROUND_COUNT; r++) {
            const sn_resize_how how = {.coords = (sn_resize_coords)c, .round = (sn_resize_round)r};
            sn_resize_nearest(&how, &a, index);
            for (int64_t o = 0; o < out; o++) {
                const int64_t want =
                    expected(how.coords, how.round,
                             position(how.coords, in, out, p, q, o, a.roi_begin, a.roi_end), in);
                CHECK_MSG(index[o] == want,
                          "%lld to %lld by %lld/%lld, coordinates %d, rounding %d, position %lld: "
                          "%lld, expected %lld",
                          (long long)in, (long long)out, (long long)p, (long long)q, c, r,
                          (long long)o, (long long)index[o], (long long)want);
            }
        }
}

TEST(nearest_by_size_takes_the_element_that_exact_arithmetic_names)
{
    for (int64_t in = 1; in <= 64; in++)
        for (int64_t out = 1; out <= 64; out++)
            check_axis(in, out, out, in, false);
}

TEST(nearest_by_scale_takes_the_element_that_exact_arithmetic_names)
{
    for (int64_t in = 1; in <= 64; in++)
        for (int64_t p = 1; p <= 32; p++)
            if (in * p / 8 > 0)
                check_axis(in, in * p / 8, p, 8, true);
}

TEST(a_kept_ratio_rounds_sizes_from_the_exact_ratio)
{
    for (int64_t in = 1; in <= 64; in++)
        for (int64_t p = 1; p <= 64; p++)
            for (int64_t q = 1; q <= 16; q++) {
                sn_resize_axis a = {.in = in};
                int64_t out = -1;
                sn_resize_by_ratio(&a, p, q);
                CHECK(sn_resize_rounded(&a, &out));
                CHECK_EQ(out, (2 * in * p + q) / (2 * q));
            }
}

TEST(the_middle_of_a_shortened_axis_is_found_exactly)
{
    one_node c;
    node_begin(&c, "Resize", 19, 3, 1);
    node_f32(&c, 0, SHAPE(7), 0, 1, 2, 3, 4, 5, 6);
    node_f32(&c, 2, SHAPE(1), 0.5f);
    node_text(&c, "mode", "nearest");
    node_text(&c, "nearest_mode", "ceil");
    node_text(&c, "coordinate_transformation_mode", "half_pixel_symmetric");
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(3), 1, 3, 5);
    node_end(&c);
}

TEST(scales_and_regions_of_any_size_name_elements_of_the_input)
{
    static const double scales[] = {0x1p-60, 1e-30, 0.1, 1.0 / 3, 0.7, 1e9, 0x1p60, 1e37};
    static const double rois[] = {-1e38, -1e-40, 0, 1e-40, 1e-7, 0.3, 1, 1e9, 1e38, NAN, INFINITY};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
        for (size_t b = 0; b < sizeof rois / sizeof rois[0]; b++)
            for (size_t e = 0; e < sizeof rois / sizeof rois[0]; e++)
                for (int c = 0; c < SN_COORDS_COUNT; c++) {
                    int64_t index[50];
                    const sn_resize_how how = {.coords = (sn_resize_coords)c};
                    sn_resize_axis a = {
                        .in = 1000003, .out = 50, .roi_begin = rois[b], .roi_end = rois[e]};
                    sn_resize_by_scale(&a, scales[s]);
                    sn_resize_nearest(&how, &a, index);
                    for (int o = 0; o < 50; o++)
                        CHECK(index[o] >= -1 && index[o] < a.in);
                }
}

/* Every element type: an element is written whole, where it may lie. */
#define OUTSIDE(D, T, value)                                                                       \
    do {                                                                                           \
        one_node c;                                                                                \
        node_begin(&c, "Resize", 19, 4, 1);                                                        \
        NODE_INPUT(&c, 0, D, T, SHAPE(3), 1, 2, 3);                                                \
        node_f32(&c, 1, SHAPE(2), -1, 1);                                                          \
        node_i64(&c, 3, SHAPE(1), 5);                                                              \
        node_text(&c, "mode", "nearest");                                                          \
        node_text(&c, "coordinate_transformation_mode", "tf_crop_and_resize");                     \
        node_float(&c, "extrapolation_value", 7);                                                  \
        NODE_CHECK(&c, node_run(&c));                                                              \
        CHECK_OUT(&c, 0, D, T, SHAPE(5), value, value, 1, 2, 3);                                   \
        node_end(&c);                                                                              \
    } while (0)

TEST(outside_of_a_cropped_region_lies_the_extrapolation_value)
{
    OUTSIDE(F32, float, 7);
    OUTSIDE(F64, double, 7);
    OUTSIDE(I8, int8_t, 7);
    OUTSIDE(I16, int16_t, 7);
    OUTSIDE(I32, int32_t, 7);
    OUTSIDE(I64, int64_t, 7);
    OUTSIDE(U64, uint64_t, 7);
}

TEST_MAIN()
