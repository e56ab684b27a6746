/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read, not mapped, into a context's memory, and written as they should be. */
#include <sys/stat.h>
#include <unistd.h>

#include "sonde/experimental/file.h"
#include "sonde/experimental/tensor_file.h"
#include "temp_folder.h"
#include "test.h"

static sonde_context *limited(size_t bytes)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_context *c = NULL;
    o.threads = 1;
    o.max_memory = bytes;
    return sonde_context_create(&o, &c, NULL) ? NULL : c;
}

TEST(what_is_written_is_read_as_bytes)
{
    sonde_error err = {0};
    sonde_value *v = NULL;
    CHECK_OK(sonde_file_write(in_dir("text"), "one\ntwo\n", 8, &err));
    CHECK_OK(sonde_file_read(NULL, in_dir("text"), 8, &v, &err));
    CHECK_EQ(sonde_tensor_dtype(v), SONDE_DTYPE_U8);
    CHECK_EQ(sonde_tensor_bytes(v), 8);
    CHECK(memcmp(sonde_tensor_data(v), "one\ntwo\n", 8) == 0);
    sonde_value_release(v);
    CHECK_EQ(sonde_file_read(NULL, in_dir("text"), 7, &v, &err), SONDE_LIMIT);
    CHECK_HAS(err.message, "more than the 7 bytes");
    CHECK(v == NULL);
    CHECK_EQ(sonde_file_read(NULL, in_dir("absent"), 0, &v, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_file_read(NULL, NULL, 0, &v, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_file_write(NULL, "x", 1, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_file_write(in_dir("text"), NULL, 1, &err), SONDE_INVALID_ARGUMENT);
}

TEST(a_file_without_an_end_is_refused_within_the_memory_of_the_context)
{
    sonde_error err = {0};
    sonde_value *v = NULL;
    sonde_context *c = limited(1 << 20);
    CHECK(c != NULL);
    CHECK_EQ(sonde_file_read(c, "/dev/zero", 0, &v, &err), SONDE_OUT_OF_MEMORY);
    CHECK_HAS(err.message, "'/dev/zero'");
    CHECK_HAS(err.message, "the memory limit is 1048576");
    sonde_context_release(c);
}

TEST(an_image_plan_has_the_defaults_filled_in)
{
    const float mean[3] = {0.5f, 0.25f, 0.125f};
    sonde_error err;
    sonde_image_options o = SONDE_INIT(sonde_image_options);
    sonde_image_plan p = SONDE_INIT(sonde_image_plan);
    CHECK_OK(sonde_image_plan_get(NULL, &p, &err));
    CHECK(p.width == 224 && p.height == 224 && p.resize == 256);
    CHECK(p.mean[0] == 0.485f && p.deviation[2] == 0.225f);
    o.width = 299;
    o.height = 100;
    o.mean = mean;
    CHECK_OK(sonde_image_plan_get(&o, &p, &err));
    CHECK(p.width == 299 && p.height == 100 && p.resize == 342);
    CHECK(p.mean[1] == 0.25f && p.deviation[1] == 0.224f);
    o.resize = 320;
    o.no_normalize = 1;
    CHECK_OK(sonde_image_plan_get(&o, &p, &err));
    CHECK(p.resize == 320 && p.mean[1] == 0 && p.deviation[1] == 1);
    o = (sonde_image_options)SONDE_INIT(sonde_image_options);
    o.dtype = SONDE_DTYPE_I8; /* the bytes less 128, told as of values / 255 */
    CHECK_OK(sonde_image_plan_get(&o, &p, &err));
    CHECK(p.mean[2] == 128 / 255.0F && p.deviation[0] == 1 / 255.0F);
    o.dtype = SONDE_DTYPE_STRING;
    CHECK_EQ(sonde_image_plan_get(&o, &p, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "not of str");
    o.dtype = SONDE_DTYPE_F32;
    o.width = -1;
    CHECK_EQ(sonde_image_plan_get(&o, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_image_plan_get(NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
}

TEST(tensors_and_images_that_are_read_are_those_that_are_mapped)
{
    sonde_error err = {0};
    const float x[] = {1, 2, 3};
    const int64_t n = 3;
    const char *name = "x";
    sonde_value *v = NULL, *images[2] = {NULL, NULL};
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, &n, 1, x, sizeof x, &v, &err));
    CHECK_OK(sonde_values_save(in_dir("x.npy"), &name, &v, 1, &err));
    CHECK_OK(sonde_file_write(in_dir("x.ppm"), "P6 2 1 255\nabcdef", 17, &err));
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        sonde_load_options o = SONDE_INIT(sonde_load_options);
        sonde_image_options image = SONDE_INIT(sonde_image_options);
        sonde_value_set *set = NULL;
        o.no_mmap = image.no_mmap = no_mmap;
        image.width = image.height = 2;
        CHECK_OK(sonde_values_load_with(NULL, in_dir("x.npy"), &o, &set, &err));
        CHECK(memcmp(sonde_tensor_data(sonde_value_set_value(set, 0)), x, sizeof x) == 0);
        CHECK_OK(sonde_image_load(NULL, in_dir("x.ppm"), &image, &images[no_mmap], &err));
        CHECK(truncate(in_dir("x.npy"), 0) == 0); /* nothing of it is looked at any more */
        CHECK(memcmp(sonde_tensor_data(sonde_value_set_value(set, 0)), x, sizeof x) == 0);
        sonde_value_set_release(set);
        CHECK(sonde_values_load_with(NULL, in_dir("x.npy"), &o, &set, &err) != SONDE_OK);
        CHECK_HAS(err.message, "x.npy");
        CHECK_OK(sonde_values_save(in_dir("x.npy"), &name, &v, 1, &err));
    }
    CHECK_EQ(sonde_tensor_bytes(images[0]), sonde_tensor_bytes(images[1]));
    CHECK(memcmp(sonde_tensor_data(images[0]), sonde_tensor_data(images[1]),
                 sonde_tensor_bytes(images[0])) == 0);
    sonde_value_release(images[0]);
    sonde_value_release(images[1]);
    sonde_value_release(v);
}

TEST_MAIN()
