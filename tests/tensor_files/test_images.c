/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures become inputs: decoded, resized, cut, normalised. */
#include "files.h"
#include "pictures.h"

/* A PPM in which every pixel is rgb. */
static size_t plain_ppm(uint8_t *out, int width, int height, const uint8_t rgb[3])
{
    int n = sprintf((char *)out, "P6\n# a comment\n%d %d\n255\n", width, height);
    for (int i = 0; i < width * height; i++)
        memcpy(out + n + 3 * i, rgb, 3);
    return (size_t)(n + 3 * width * height);
}

TEST(a_plain_picture_stays_plain)
{
    static uint8_t ppm[3 * 40 * 30 + 64];
    const uint8_t rgb[3] = {255, 128, 0};
    files f;
    sn_slot s = {0};
    files_init(&f);
    files_put(&f, "a.ppm", ppm, plain_ppm(ppm, 40, 30, rgb));
    sn_image_options o;
    sn_image_options_default(&o, SONDE_DTYPE_F32);
    CHECK_MSG(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err) == SONDE_OK, "%s",
              f.err.message);
    CHECK(s.t.rank == 4 && s.t.dims[1] == 3 && s.t.dims[2] == 224 && s.t.dims[3] == 224);
    const float *v = s.t.data;
    for (int c = 0; c < 3; c++) {
        float want = ((float)rgb[c] / 255 - o.mean[c]) / o.deviation[c];
        for (int i = 0; i < 224 * 224; i++)
            CHECK_MSG(fabsf(v[c * 224 * 224 + i] - want) < 1e-4f, "channel %d: %g, expected %g", c,
                      (double)v[c * 224 * 224 + i], (double)want);
    }
    sn_slot_clear(&s);
    CHECK(files_free(&f));
}

TEST(layout_order_and_scale_follow_the_options)
{
    static uint8_t ppm[3 * 8 * 8 + 64];
    const uint8_t rgb[3] = {255, 51, 0};
    files f;
    sn_slot s = {0};
    files_init(&f);
    files_put(&f, "a.ppm", ppm, plain_ppm(ppm, 8, 8, rgb));
    sn_image_options o;
    sn_image_options_raw(&o, SONDE_DTYPE_F32);
    o.width = 5;
    o.height = 3;
    o.nhwc = o.bgr = true;
    CHECK_MSG(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err) == SONDE_OK, "%s",
              f.err.message);
    CHECK(s.t.dims[1] == 3 && s.t.dims[2] == 5 && s.t.dims[3] == 3);
    const float *v = s.t.data;
    CHECK(fabsf(v[0]) < 1e-6f && fabsf(v[1] - 0.2f) < 1e-6f && fabsf(v[2] - 1) < 1e-6f);
    sn_slot_clear(&s);
    CHECK(files_free(&f));
}

TEST(every_type_of_number_holds_a_picture)
{
    static uint8_t ppm[3 * 4 * 4 + 64];
    const uint8_t rgb[3] = {255, 100, 3};
    const size_t n = plain_ppm(ppm, 4, 4, rgb);
    size_t types = 0;
    for (int64_t number = 1; number < 32; number++) {
        const sn_dtype dtype = (sn_dtype)number;
        if (!sn_dtype_valid(number) || !sn_image_dtype(dtype))
            continue;
        files f;
        sn_slot s = {0};
        sn_image_options o;
        files_init(&f);
        files_put(&f, "a.ppm", ppm, n);
        sn_image_options_default(&o, dtype);
        o.width = o.height = 2;
        CHECK_EQ(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err), SONDE_OK);
        CHECK_EQ(s.t.dtype, dtype);
        CHECK_EQ(sn_tensor_count(&s.t), 12);
        if (dtype == SONDE_DTYPE_I8)
            CHECK_EQ(((const int8_t *)s.t.data)[4], 100 - 128);
        if (dtype == SONDE_DTYPE_U16)
            CHECK_EQ(((const uint16_t *)s.t.data)[0], 255);
        if (dtype == SONDE_DTYPE_F64)
            CHECK(fabs(((const double *)s.t.data)[8] - (3 / 255.0 - 0.406) / 0.225) < 1e-6);
        sn_slot_clear(&s);
        CHECK(files_free(&f));
        types++;
    }
    CHECK_EQ(types, 12);
}

TEST(integers_stay_within_their_type_and_wrong_options_are_refused)
{
    static uint8_t ppm[3 * 4 * 4 + 64];
    const uint8_t rgb[3] = {255, 100, 0};
    files f;
    sn_slot s = {0};
    sn_image_options o;
    files_init(&f);
    files_put(&f, "a.ppm", ppm, plain_ppm(ppm, 4, 4, rgb));
    sn_image_options_default(&o, SONDE_DTYPE_U8);
    o.width = o.height = 1;
    o.scale = 3;
    o.mean[2] = 7;
    CHECK_EQ(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err), SONDE_OK);
    const uint8_t *v = s.t.data;
    CHECK(v[0] == 255 && v[1] == 255 && v[2] == 0);
    sn_slot_clear(&s);
    o.scale = NAN;
    CHECK_EQ(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err), SONDE_INVALID_ARGUMENT);
    o.scale = 1;
    o.deviation[1] = 0;
    CHECK_EQ(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(f.err.message, "channel 1");
    sn_image_options_default(&o, SONDE_DTYPE_STRING);
    CHECK_EQ(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err), SONDE_UNSUPPORTED);
    CHECK_HAS(f.err.message, "tensors of str");
    CHECK(files_free(&f));
}

TEST(shrinking_averages_and_keeps_the_centre)
{
    /* Columns 0 and 255 in turn shrink to grey; a plain decimation would keep only one of them. */
    static uint8_t ppm[3 * 64 * 64 + 64];
    const uint8_t rgb[3] = {0};
    files f;
    sn_slot s = {0};
    files_init(&f);
    size_t n = plain_ppm(ppm, 64, 64, rgb);
    for (size_t i = 0; i < 64 * 64; i += 2)
        memset(ppm + n - 3 * 64 * 64 + 3 * i, 255, 3);
    files_put(&f, "a.ppm", ppm, n);
    sn_image_options o;
    sn_image_options_raw(&o, SONDE_DTYPE_F32);
    o.width = o.height = o.resize = 8;
    CHECK_MSG(sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err) == SONDE_OK, "%s",
              f.err.message);
    for (int i = 0; i < 3 * 8 * 8; i++)
        CHECK_MSG(fabsf(((const float *)s.t.data)[i] - 0.5f) < 0.07f, "%g",
                  (double)((const float *)s.t.data)[i]);
    sn_slot_clear(&s);
    CHECK(files_free(&f));
}

TEST(png_and_jpeg_show_the_same_picture)
{
    for (int jpeg = 0; jpeg < 2; jpeg++) {
        files f;
        sn_slot s = {0};
        files_init(&f);
        files_put(&f, jpeg ? "a.jpg" : "a.png", jpeg ? picture_jpg : picture_png,
                  jpeg ? sizeof picture_jpg : sizeof picture_png);
        sn_image_options o;
        sn_image_options_raw(&o, SONDE_DTYPE_F32);
        o.width = 32;
        o.height = o.resize = 16;
        sonde_status st = sn_tensor_file_read_image(f.path, &o, &f.alloc, &s, &f.err);
        if (st == SONDE_UNSUPPORTED) {
            CHECK_HAS(f.err.message, "this build has no");
        } else {
            CHECK_MSG(st == SONDE_OK, "%s", f.err.message);
            const float *v = s.t.data;
            static const float left[3] = {200, 40, 30}, right[3] = {20, 40, 180};
            for (int c = 0; c < 3; c++) {
                CHECK_MSG(fabsf(v[c * 512 + 4] * 255 - left[c]) < 6, "%g",
                          (double)v[c * 512 + 4] * 255);
                CHECK_MSG(fabsf(v[c * 512 + 28] * 255 - right[c]) < 6, "%g",
                          (double)v[c * 512 + 28] * 255);
            }
        }
        sn_slot_clear(&s);
        CHECK(files_free(&f));
    }
}

TEST(the_type_of_the_input_sets_the_size)
{
    static uint8_t ppm[3 * 8 * 8 + 64];
    const uint8_t rgb[3] = {0};
    files f;
    sn_dim dims[] = {1, 20, 30, 3};
    sn_type as = {.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 4, .dims = dims};
    files_init(&f);
    files_put(&f, "a.ppm", ppm, plain_ppm(ppm, 8, 8, rgb));
    CHECK_MSG(sn_tensor_file_read(f.path, &as, &f.list, &f.err) == SONDE_OK, "%s", f.err.message);
    const sn_tensor *t = &f.list.list.data[0].slot.t;
    CHECK(t->dims[1] == 20 && t->dims[2] == 30 && t->dims[3] == 3);
    CHECK(files_free(&f));
}

static sonde_status decode(const uint8_t *data, size_t bytes, const sn_type *as, sn_named_list *out,
                           sonde_error *err)
{
    sn_picture p;
    (void)as;
    SN_TRY(sn_picture_decode(data, bytes, out->alloc, &p, err));
    sn_picture_free(&p, out->alloc);
    return SONDE_OK;
}

TEST(damaged_pictures_are_read_or_refused)
{
    static uint8_t ppm[3 * 4 * 4 + 64];
    const uint8_t rgb[3] = {1, 2, 3};
    files f;
    files_init(&f);
    CHECK(hurt(&f, ppm, plain_ppm(ppm, 4, 4, rgb), decode) > 0);
    CHECK(hurt(&f, picture_png, sizeof picture_png, decode) > 0);
    CHECK(hurt(&f, picture_jpg, sizeof picture_jpg, decode) > 0);
    CHECK_EQ(decode((const uint8_t *)"P6 60000 60000 255 ", 19, NULL, &f.list, &f.err),
             SONDE_LIMIT);
    CHECK_HAS(f.err.message, "60000 x 60000");
    CHECK_EQ(decode((const uint8_t *)"GIF89a....", 10, NULL, &f.list, &f.err), SONDE_UNSUPPORTED);
    CHECK(files_free(&f));
}

TEST_MAIN()
