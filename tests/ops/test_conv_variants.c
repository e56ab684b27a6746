/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose, DeformConv and the integer convolutions and products. */
#include "ops/one_node.h"

/* ------------------------------------------------------------------ ConvTranspose */
TEST(a_transposed_convolution_spreads_each_pixel_over_its_kernel)
{
    one_node c;
    node_begin(&c, "ConvTranspose", 11, 3, 1);
    node_ints(&c, "strides", 2);
    node_f32(&c, 0, SHAPE(1, 1, 3), 1, 2, 3);
    node_f32(&c, 1, SHAPE(1, 1, 3), 1, 10, 100);
    node_f32(&c, 2, SHAPE(1), 1000);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 1, 7)));
    CHECK(IS_F32(&c.out[0], 1001, 1010, 1102, 1020, 1203, 1030, 1300));
    node_end(&c);
}

TEST(pads_cut_a_transposed_convolution_and_output_padding_extends_it)
{
    one_node c;
    node_begin(&c, "ConvTranspose", 11, 2, 1);
    node_ints(&c, "strides", 2);
    node_ints(&c, "pads", 1, 1);
    node_ints(&c, "output_padding", 1);
    node_f32(&c, 0, SHAPE(1, 1, 3), 1, 2, 3);
    node_f32(&c, 1, SHAPE(1, 1, 3), 1, 10, 100);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 10, 102, 20, 203, 30, 300));
    node_end(&c);
}

/* Random 2-d case by the definition, in double. */
typedef struct transpose_case {
    int n, groups, in, out, h, w, kh, kw, sh, sw, dh, dw, ph, pw;
} transpose_case;

static void transpose_reference(const transpose_case *t, const float *x, const float *w, double *y,
                                int oh, int ow)
{
    const int ic = t->in / t->groups, oc = t->out / t->groups;
    for (int b = 0; b < t->n; b++)
        for (int c = 0; c < t->in; c++)
            for (int k = 0; k < oc; k++)
                for (int i = 0; i < t->h * t->w; i++)
                    for (int tap = 0; tap < t->kh * t->kw; tap++) {
                        const int yy = i / t->w * t->sh + tap / t->kw * t->dh - t->ph;
                        const int xx = i % t->w * t->sw + tap % t->kw * t->dw - t->pw;
                        if (yy < 0 || yy >= oh || xx < 0 || xx >= ow)
                            continue;
                        y[((b * t->out + c / ic * oc + k) * oh + yy) * ow + xx] +=
                            (double)x[(b * t->in + c) * t->h * t->w + i] *
                            (double)w[(c * oc + k) * t->kh * t->kw + tap];
                    }
}

static void compare_transpose(const transpose_case *t, sn_dtype dtype, int threads)
{
    const int oh = t->sh * (t->h - 1) + t->dh * (t->kh - 1) + 1 - 2 * t->ph;
    const int ow = t->sw * (t->w - 1) + t->dw * (t->kw - 1) + 1 - 2 * t->pw;
    const int nx = t->n * t->in * t->h * t->w, nw = t->in * t->out / t->groups * t->kh * t->kw;
    const int ny = t->n * t->out * oh * ow;
    float *x = malloc((size_t)nx * sizeof *x), *w = malloc((size_t)nw * sizeof *w);
    double *wide = malloc((size_t)(nx + nw) * sizeof *wide),
           *want = calloc((size_t)ny, sizeof *want);
    for (int i = 0; i < nx; i++)
        wide[i] = (double)(x[i] = test_randf());
    for (int i = 0; i < nw; i++)
        wide[nx + i] = (double)(w[i] = test_randf());
    transpose_reference(t, x, w, want, oh, ow);
    one_node c;
    const bool f64 = dtype == SONDE_DTYPE_F64;
    node_begin(&c, "ConvTranspose", 11, 2, 1);
    if (threads > 1)
        c.st = sn_pool_create(&c.ctx.pool, threads, &c.alloc, &c.err);
    node_int(&c, "group", t->groups);
    node_ints(&c, "strides", t->sh, t->sw);
    node_ints(&c, "dilations", t->dh, t->dw);
    node_ints(&c, "pads", t->ph, t->pw, t->ph, t->pw);
    node_tensor(&c, 0, dtype, SHAPE(t->n, t->in, t->h, t->w), f64 ? (void *)wide : x);
    node_tensor(&c, 1, dtype, SHAPE(t->in, t->out / t->groups, t->kh, t->kw),
                f64 ? (void *)(wide + nx) : w);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(t->n, t->out, oh, ow)));
    for (int i = 0; i < ny; i++) {
        const double got =
            f64 ? ((double *)c.out[0].t.data)[i] : (double)((float *)c.out[0].t.data)[i];
        CHECK_MSG(fabs(got - want[i]) < (f64 ? 1e-12 : 1e-4), "element %d: got %g, expected %g", i,
                  got, want[i]);
    }
    sn_pool_free(c.ctx.pool);
    node_end(&c);
    free(x);
    free(w);
    free(wide);
    free(want);
}

TEST(transposed_convolutions_match_the_definition)
{
    static const transpose_case cases[] = {
        {1, 1, 3, 5, 4, 5, 3, 3, 1, 1, 1, 1, 0, 0},     {2, 2, 4, 6, 5, 4, 3, 2, 2, 3, 1, 1, 1, 0},
        {1, 3, 6, 3, 3, 7, 4, 4, 2, 2, 1, 1, 1, 1},     {1, 1, 2, 2, 6, 6, 2, 3, 1, 2, 3, 2, 0, 2},
        {1, 1, 32, 40, 33, 29, 4, 4, 2, 2, 1, 1, 1, 1}, {2, 4, 8, 4, 1, 1, 5, 5, 1, 1, 1, 1, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            compare_transpose(&cases[i], SONDE_DTYPE_F32, threads);
            compare_transpose(&cases[i], SONDE_DTYPE_F64, threads);
        }
}

TEST(a_transposed_convolution_that_pads_away_everything_is_refused)
{
    one_node c;
    node_begin(&c, "ConvTranspose", 11, 2, 1);
    node_ints(&c, "pads", 9, 9);
    node_f32(&c, 0, SHAPE(1, 1, 2), 1, 2);
    node_f32(&c, 1, SHAPE(1, 1, 2), 1, 2);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "the pads leave no elements");
    node_end(&c);
}

/* ------------------------------------------------------------------ DeformConv */
TEST(a_deformable_convolution_samples_between_pixels_and_zero_outside)
{
    one_node c;
    node_begin(&c, "DeformConv", 19, 5, 1);
    node_f32(&c, 0, SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(1, 1, 1, 1), 10);
    /* offsets (dy, dx) of the four output pixels: none; half right; half down and right; far away
     */
    node_f32(&c, 2, SHAPE(1, 2, 2, 2), 0, 0, -0.5f, 100, 0, -0.5f, 0.5f, NAN);
    node_f32(&c, 3, SHAPE(1), 1000);
    node_f32(&c, 4, SHAPE(1, 1, 2, 2), 1, 2, 1, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 1010, 1030, 1025, 1000));
    node_end(&c);
}

/* ------------------------------------------------------------------ integers */
TEST(an_integer_product_is_exact_beyond_what_f32_holds)
{
    enum { K = 5000 };
    one_node c;
    uint8_t a[K], b[K];
    memset(a, 255, sizeof a);
    memset(b, 255, sizeof b);
    b[7] = 254;
    node_begin(&c, "MatMulInteger", 10, 2, 1);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(1, K), a);
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(K, 1), b);
    node_run(&c);
    NODE_OK(&c);
    CHECK_EQ(((int32_t *)c.out[0].t.data)[0], 255 * 255 * K - 255);
    node_end(&c);
}

TEST(zero_points_of_a_product_may_differ_per_row_and_column)
{
    one_node c;
    node_begin(&c, "MatMulInteger", 10, 4, 1);
    node_tensor(&c, 0, SONDE_DTYPE_I8, SHAPE(2, 2), (int8_t[]){1, 2, 3, 4});
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(2, 2), (uint8_t[]){5, 6, 7, 8});
    node_tensor(&c, 2, SONDE_DTYPE_I8, SHAPE(2), (int8_t[]){1, 3});
    node_tensor(&c, 3, SONDE_DTYPE_U8, SHAPE(2), (uint8_t[]){5, 0});
    node_run(&c);
    NODE_OK(&c);
    /* [[0, 1], [0, 1]] · [[0, 6], [2, 8]] */
    const int32_t want[] = {2, 8, 2, 8};
    CHECK_EQ(memcmp(c.out[0].t.data, want, sizeof want), 0);
    node_end(&c);
}

TEST(an_integer_convolution_pads_with_its_zero_point)
{
    one_node c;
    node_begin(&c, "ConvInteger", 10, 3, 1);
    node_ints(&c, "pads", 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(1, 1, 3), (uint8_t[]){11, 12, 13});
    node_tensor(&c, 1, SONDE_DTYPE_I8, SHAPE(1, 1, 3), (int8_t[]){1, 10, 100});
    node_tensor(&c, 2, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){10});
    node_run(&c);
    NODE_OK(&c);
    const int32_t want[] = {210, 321, 32};
    CHECK_EQ(memcmp(c.out[0].t.data, want, sizeof want), 0);
    node_end(&c);
}

TEST(many_channels_and_large_kernels_of_an_integer_convolution_agree_with_plain_sums)
{
    static const int sizes[][3] = {{700, 1, 9}, {3, 300, 310}}; /* channels, taps, length */
    for (size_t k = 0; k < 2; k++) {
        const int ch = sizes[k][0], taps = sizes[k][1], n = sizes[k][2];
        uint8_t *x = malloc((size_t)(ch * n)), *w = malloc((size_t)(ch * taps));
        for (int i = 0; i < ch * n; i++)
            x[i] = (uint8_t)test_rand();
        for (int i = 0; i < ch * taps; i++)
            w[i] = (uint8_t)test_rand();
        one_node c;
        node_begin(&c, "ConvInteger", 10, 4, 1);
        node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(1, ch, n), x);
        node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(1, ch, taps), w);
        node_tensor(&c, 2, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){3});
        node_tensor(&c, 3, SONDE_DTYPE_U8, SHAPE(1), (uint8_t[]){200});
        node_run(&c);
        NODE_OK(&c);
        for (int o = 0; o + taps <= n; o++) {
            int64_t sum = 0;
            for (int i = 0; i < ch; i++)
                for (int t = 0; t < taps; t++)
                    sum += (int64_t)(x[i * n + o + t] - 3) * (w[i * taps + t] - 200);
            CHECK_EQ(((int32_t *)c.out[0].t.data)[o], sum);
        }
        node_end(&c);
        free(x);
        free(w);
    }
}

TEST(a_quantized_convolution_rounds_to_even_and_saturates)
{
    one_node c;
    node_begin(&c, "QLinearConv", 10, 8, 1);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(1, 1, 4), (uint8_t[]){1, 3, 255, 0});
    node_f32(&c, 1, SCALAR, 0.5f);
    node_tensor(&c, 2, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){0});
    node_tensor(&c, 3, SONDE_DTYPE_I8, SHAPE(1, 1, 1), (int8_t[]){1});
    node_f32(&c, 4, SHAPE(1), 1);
    node_tensor(&c, 5, SONDE_DTYPE_I8, SHAPE(1), (int8_t[]){0});
    node_f32(&c, 6, SCALAR, 1);
    node_tensor(&c, 7, SONDE_DTYPE_I8, SCALAR, (int8_t[]){10});
    node_run(&c);
    NODE_OK(&c);
    const int8_t want[] = {10, 12, 127, 10};
    CHECK_EQ(memcmp(c.out[0].t.data, want, sizeof want), 0);
    node_end(&c);
}

/* The product of the scales is no f32 here. */
TEST(sums_of_zero_stay_zero_however_large_the_scales)
{
    one_node c;
    node_begin(&c, "QLinearConv", 10, 8, 1);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(1, 1, 3), (uint8_t[]){3, 4, 2});
    node_f32(&c, 1, SCALAR, 1e30f);
    node_tensor(&c, 2, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){3});
    node_tensor(&c, 3, SONDE_DTYPE_I8, SHAPE(1, 1, 1), (int8_t[]){1});
    node_f32(&c, 4, SHAPE(1), 1e30f);
    node_tensor(&c, 5, SONDE_DTYPE_I8, SHAPE(1), (int8_t[]){0});
    node_f32(&c, 6, SCALAR, 1);
    node_tensor(&c, 7, SONDE_DTYPE_I8, SCALAR, (int8_t[]){10});
    node_run(&c);
    NODE_OK(&c);
    CHECK_EQ(memcmp(c.out[0].t.data, (int8_t[]){10, 127, -128}, 3), 0);
    node_end(&c);
}

TEST(an_empty_zero_point_is_refused)
{
    one_node c;
    node_begin(&c, "ConvInteger", 10, 3, 1);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(1, 1, 1), (uint8_t[]){1});
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(1, 1, 1), (uint8_t[]){1});
    node_tensor(&c, 2, SONDE_DTYPE_U8, SHAPE(0), NULL);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST_MAIN()
