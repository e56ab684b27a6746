/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms against the defining sum, windows, and the mel matrix. */
#include "ops/one_node.h"

#define PI 3.14159265358979323846

static void transform(const double *x, double *y, int n, double sign)
{
    for (int k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int i = 0; i < n; i++) {
            const double a = sign * 2 * PI * (double)((int64_t)i * k % n) / n;
            re += x[2 * i] * cos(a) - x[2 * i + 1] * sin(a);
            im += x[2 * i] * sin(a) + x[2 * i + 1] * cos(a);
        }
        y[2 * k] = re;
        y[2 * k + 1] = im;
    }
}

TEST(transforms_of_every_length_match_the_sum)
{
    enum { MOST = 260 };
    static double x[2 * MOST], want[2 * MOST];
    for (int n = 1; n <= MOST; n += n < 40 ? 1 : 11)
        for (int inverse = 0; inverse < 2; inverse++) {
            one_node c;
            for (int i = 0; i < 2 * n; i++)
                x[i] = (double)test_randf();
            transform(x, want, n, inverse ? 1 : -1);
            node_begin(&c, "DFT", 17, 1, 1);
            node_int(&c, "inverse", inverse);
            node_tensor(&c, 0, SONDE_DTYPE_F64, SHAPE(1, n, 2), x);
            node_run(&c);
            NODE_OK(&c);
            const double *y = c.out[0].t.data, scale = inverse ? 1.0 / n : 1.0;
            for (int i = 0; i < 2 * n; i++)
                CHECK_MSG(fabs(y[i] - want[i] * scale) < 1e-11 * n,
                          "length %d, element %d: got %g, expected %g", n, i, y[i],
                          want[i] * scale);
            node_end(&c);
        }
}

TEST(half_a_spectrum_gives_the_real_signal_back)
{
    for (int n = 2; n < 20; n++) {
        one_node c, d;
        node_begin(&c, "DFT", 20, 1, 1);
        node_int(&c, "onesided", 1);
        node_count_up(&c, 0, SHAPE(2, n, 1));
        node_run(&c);
        NODE_OK(&c);
        CHECK(has_shape(&c.out[0], SHAPE(2, n / 2 + 1, 2)));
        node_begin(&d, "DFT", 20, 2, 1);
        node_int(&d, "onesided", 1);
        node_int(&d, "inverse", 1);
        node_tensor(&d, 0, SONDE_DTYPE_F32, SHAPE(2, n / 2 + 1, 2), c.out[0].t.data);
        node_i64(&d, 1, SCALAR, n);
        node_run(&d);
        NODE_OK(&d);
        CHECK(has_shape(&d.out[0], SHAPE(2, n, 1)));
        for (int i = 0; i < 2 * n; i++)
            CHECK(fabsf(((float *)d.out[0].t.data)[i] - (float)i) < 1e-4f);
        node_end(&c);
        node_end(&d);
    }
}

TEST(the_axis_of_complex_numbers_cannot_be_transformed)
{
    one_node c;
    node_begin(&c, "DFT", 20, 3, 1);
    node_f32(&c, 0, SHAPE(1, 2, 2), 1, 2, 3, 4);
    node_i64(&c, 2, SCALAR, -1);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(short_time_transforms_step_over_the_signal_and_apply_the_window)
{
    one_node c;
    node_begin(&c, "STFT", 17, 4, 1);
    node_f32(&c, 0, SHAPE(1, 6, 1), 1, 2, 3, 4, 5, 6);
    node_i64(&c, 1, SCALAR, 2);
    node_f32(&c, 2, SHAPE(2), 1, 10);
    node_i64(&c, 3, SCALAR, 2);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 3, 2, 2)));
    CHECK(IS_F32(&c.out[0], 21, 0, -19, 0, 43, 0, -37, 0, 65, 0, -55, 0));
    node_end(&c);
}

TEST(a_real_signal_needs_no_axis_of_parts)
{
    for (int batch = 1; batch <= 2; batch++) {
        one_node c;
        node_begin(&c, "STFT", 17, 4, 1);
        node_f32(&c, 0, SHAPE(batch, 6), 1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6);
        node_i64(&c, 1, SCALAR, 2);
        node_f32(&c, 2, SHAPE(2), 1, 10);
        node_i64(&c, 3, SCALAR, 2);
        node_run(&c);
        NODE_OK(&c);
        CHECK(has_shape(&c.out[0], SHAPE(batch, 3, 2, 2)));
        const float want[] = {21, 0, -19, 0, 43, 0, -37, 0, 65, 0, -55, 0};
        for (int i = 0; i < 12 * batch; i++)
            CHECK_EQ(((const float *)c.out[0].t.data)[i], i < 12 ? want[i] : -want[i - 12]);
        node_end(&c);
    }
}

TEST(a_signal_without_a_batch_is_refused)
{
    one_node c;
    node_begin(&c, "STFT", 17, 4, 1);
    node_f32(&c, 0, SHAPE(6), 1, 2, 3, 4, 5, 6);
    node_i64(&c, 1, SCALAR, 2);
    node_i64(&c, 3, SCALAR, 2);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(a_frame_longer_than_the_signal_is_refused)
{
    one_node c;
    node_begin(&c, "STFT", 17, 4, 1);
    node_f32(&c, 0, SHAPE(1, 2, 1), 1, 2);
    node_i64(&c, 1, SCALAR, 1);
    node_i64(&c, 3, SCALAR, 8);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(windows_follow_their_formulas)
{
    static const struct {
        const char *name;
        int periodic;
        float want[4];
    } cases[] = {{"HannWindow", 1, {0, 0.5f, 1, 0.5f}},
                 {"HannWindow", 0, {0, 0.75f, 0.75f, 0}},
                 {"HammingWindow", 1, {4.0f / 46, 25.0f / 46, 1, 25.0f / 46}},
                 {"BlackmanWindow", 1, {0, 0.34f, 1, 0.34f}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        one_node c;
        node_begin(&c, cases[k].name, 17, 1, 1);
        node_int(&c, "periodic", cases[k].periodic);
        node_i64(&c, 0, SCALAR, 4);
        node_run(&c);
        NODE_OK(&c);
        for (int i = 0; i < 4; i++)
            CHECK_MSG(fabsf(((float *)c.out[0].t.data)[i] - cases[k].want[i]) < 1e-6f,
                      "%s[%d] is %g", cases[k].name, i, (double)((float *)c.out[0].t.data)[i]);
        node_end(&c);
    }
}

TEST(a_negative_window_and_an_absurd_one_are_refused)
{
    static const int64_t sizes[] = {-1, INT64_MAX / 2};
    for (int i = 0; i < 2; i++) {
        one_node c;
        node_begin(&c, "HannWindow", 17, 1, 1);
        node_i64(&c, 0, SCALAR, sizes[i]);
        CHECK(node_run(&c) != SONDE_OK);
        node_end(&c);
    }
}

TEST(mel_bands_beyond_the_spectrum_are_cut)
{
    one_node c;
    node_begin(&c, "MelWeightMatrix", 17, 5, 1);
    node_i64(&c, 0, SCALAR, 3);
    node_i64(&c, 1, SCALAR, 8);
    node_i64(&c, 2, SCALAR, 100);
    node_f32(&c, 3, SCALAR, -5000);
    node_f32(&c, 4, SCALAR, 1e30f);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(5, 3)));
    node_end(&c);
}

TEST_MAIN()
