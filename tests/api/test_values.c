/* SPDX-License-Identifier: Apache-2.0 */
/* Values through the public API: making them, looking at them, and everything that may be wrong. */
#include "sonde/experimental/compare.h"
#include "sonde/sonde.h"

#include "test.h"

TEST(a_tensor_copies_the_memory_it_was_made_from)
{
    sonde_error err;
    float data[6] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[2] = {2, 3};
    sonde_value *v = NULL;
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 2, data, sizeof data, &v, &err));
    data[0] = 99;
    CHECK_EQ(sonde_value_kind(v), SONDE_KIND_TENSOR);
    CHECK_EQ(sonde_tensor_dtype(v), SONDE_DTYPE_F32);
    CHECK_EQ(sonde_tensor_rank(v), 2);
    CHECK_EQ(sonde_tensor_dims(v)[1], 3);
    CHECK_EQ(sonde_tensor_count(v), 6);
    CHECK_EQ(sonde_tensor_bytes(v), 24);
    CHECK(((const float *)sonde_tensor_data(v))[0] == 1.0f);
    sonde_value_release(v);
}

TEST(a_borrowed_tensor_is_the_callers_memory)
{
    sonde_error err;
    int64_t data[2] = {7, 8};
    const int64_t dims[1] = {2};
    sonde_value *v = NULL;
    CHECK_OK(sonde_tensor_borrow(NULL, SONDE_DTYPE_I64, dims, 1, data, sizeof data, &v, &err));
    CHECK(sonde_tensor_data(v) == data);
    sonde_value_release(v);
}

TEST(scalars_and_empty_tensors_are_tensors)
{
    sonde_error err;
    sonde_value *scalar = NULL, *empty = NULL;
    const double x = 2.5;
    const int64_t none[2] = {0, 4};
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F64, NULL, 0, &x, sizeof x, &scalar, &err));
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, none, 2, NULL, 0, &empty, &err));
    CHECK_EQ(sonde_tensor_count(scalar), 1);
    CHECK_EQ(sonde_tensor_count(empty), 0);
    double got = 0;
    CHECK_EQ(sonde_tensor_read(scalar, 0, 1, &got), 1);
    CHECK(got == 2.5);
    sonde_value_release(scalar);
    sonde_value_release(empty);
}

TEST(a_tensor_made_of_nothing_is_zero)
{
    sonde_error err;
    sonde_value *v = NULL;
    const int64_t dims[1] = {3};
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I32, dims, 1, NULL, 12, &v, &err));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(((const int32_t *)sonde_tensor_data(v))[i], 0);
    sonde_value_release(v);
}

TEST(wrong_sizes_types_and_ranks_are_refused_with_a_sentence)
{
    sonde_error err;
    sonde_value *v = (sonde_value *)&err;
    const int64_t two[1] = {2}, negative[1] = {-2}, huge[2] = {INT64_MAX, 4};
    int64_t many[20] = {0};
    float x[2] = {0, 0};
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, two, 1, x, 7, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "7 bytes");
    CHECK(v == NULL);
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, negative, 1, x, 8, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, huge, 2, x, 8, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, many, 20, x, 0, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_create(NULL, (sonde_dtype)99, two, 1, x, 8, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_STRING, two, 1, x, 32, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, NULL, 1, x, 8, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_borrow(NULL, SONDE_DTYPE_F32, two, 1, NULL, 8, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_borrow(NULL, SONDE_DTYPE_F32, two, 1, (char *)x + 1, 8, &v, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "aligned");
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, two, 1, x, 8, NULL, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_tensor_create(NULL, SONDE_DTYPE_F32, two, 1, x, 7, &v, NULL),
             SONDE_INVALID_ARGUMENT);
}

TEST(nothing_can_be_asked_of_null)
{
    CHECK_EQ(sonde_value_kind(NULL), SONDE_KIND_NONE);
    CHECK_EQ(sonde_tensor_dtype(NULL), SONDE_DTYPE_UNDEFINED);
    CHECK_EQ(sonde_tensor_rank(NULL), 0);
    CHECK(sonde_tensor_dims(NULL) == NULL);
    CHECK(sonde_tensor_data(NULL) == NULL);
    CHECK_EQ(sonde_tensor_count(NULL), 0);
    CHECK_EQ(sonde_tensor_bytes(NULL), 0);
    CHECK_EQ(sonde_value_count(NULL), 0);
    CHECK(sonde_value_retain(NULL) == NULL);
    sonde_value_release(NULL);
    sonde_value_set_release(NULL);
    CHECK_EQ(sonde_value_set_count(NULL), 0);
    CHECK(sonde_value_set_name(NULL, 0) == NULL);
    CHECK(sonde_value_set_value(NULL, 0) == NULL);
}

TEST(string_tensors_copy_their_texts)
{
    sonde_error err;
    char word[6] = "hello";
    const sonde_string elements[2] = {{word, 5}, {NULL, 0}};
    const int64_t dims[1] = {2};
    sonde_value *v = NULL;
    CHECK_OK(sonde_tensor_create_strings(NULL, dims, 1, elements, &v, &err));
    word[0] = 'J';
    const sonde_string *got = sonde_tensor_data(v);
    CHECK_EQ(got[0].size, 5);
    CHECK_EQ(memcmp(got[0].data, "hello", 5), 0);
    CHECK_EQ(got[1].size, 0);
    CHECK_EQ(sonde_tensor_bytes(v), 2 * sizeof(sonde_string));
    sonde_value_release(v);
}

TEST(sequences_and_optionals_hold_their_items)
{
    sonde_error err;
    float data[2] = {1, 2};
    const int64_t dims[1] = {2};
    sonde_value *items[2] = {NULL, NULL}, *sequence = NULL, *some = NULL, *nothing = NULL,
                *got = NULL;
    CHECK_OK(
        sonde_tensor_borrow(NULL, SONDE_DTYPE_F32, dims, 1, data, sizeof data, &items[0], &err));
    CHECK_OK(
        sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 1, data, sizeof data, &items[1], &err));
    CHECK_OK(sonde_sequence_create(NULL, items, 2, &sequence, &err));
    CHECK_OK(sonde_optional_create(NULL, items[0], &some, &err));
    CHECK_OK(sonde_optional_create(NULL, NULL, &nothing, &err));
    sonde_value_release(items[0]);
    sonde_value_release(items[1]);
    data[0] = 99; /* the borrowed one was copied in */
    CHECK_EQ(sonde_value_kind(sequence), SONDE_KIND_SEQUENCE);
    CHECK_EQ(sonde_value_count(sequence), 2);
    CHECK_EQ(sonde_value_count(some), 1);
    CHECK_EQ(sonde_value_count(nothing), 0);
    CHECK_OK(sonde_value_item(sequence, 0, &got, &err));
    CHECK(((const float *)sonde_tensor_data(got))[0] == 1.0f);
    sonde_value_release(sequence);
    CHECK(((const float *)sonde_tensor_data(got))[1] == 2.0f);
    sonde_value_release(got);
    CHECK_EQ(sonde_value_item(nothing, 0, &got, &err), SONDE_INVALID_ARGUMENT);
    CHECK(got == NULL);
    sonde_value_release(some);
    sonde_value_release(nothing);
}

TEST(a_map_holds_keys_and_values)
{
    sonde_error err;
    const int64_t dims[1] = {2}, numbers[2] = {3, 5};
    const sonde_string words[2] = {{"a", 1}, {"bc", 2}};
    const float data[2] = {0.5f, 1.5f};
    sonde_value *keys = NULL, *texts = NULL, *values = NULL, *map = NULL, *got = NULL;
    CHECK_OK(
        sonde_tensor_create(NULL, SONDE_DTYPE_I64, dims, 1, numbers, sizeof numbers, &keys, &err));
    CHECK_OK(sonde_tensor_create_strings(NULL, dims, 1, words, &texts, &err));
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 1, data, sizeof data, &values, &err));
    CHECK_OK(sonde_map_create(NULL, keys, values, &map, &err));
    CHECK_EQ(sonde_value_kind(map), SONDE_KIND_MAP);
    CHECK_EQ(sonde_value_count(map), 2);
    CHECK_OK(sonde_value_item(map, 0, &got, &err));
    CHECK_EQ(((const int64_t *)sonde_tensor_data(got))[1], 5);
    sonde_value_release(got);
    CHECK_OK(sonde_value_item(map, 1, &got, &err));
    CHECK(((const float *)sonde_tensor_data(got))[0] == 0.5f);
    sonde_value_release(got);
    sonde_value_release(map);
    CHECK_OK(sonde_map_create(NULL, texts, values, &map, &err));
    sonde_value_release(map);
    CHECK_EQ(sonde_map_create(NULL, values, keys, &map, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "integers or strings");
    sonde_value_release(values);
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, NULL, 0, NULL, 4, &values, &err));
    CHECK_EQ(sonde_map_create(NULL, keys, values, &map, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "as many elements");
    CHECK_EQ(sonde_map_create(NULL, keys, NULL, &map, &err), SONDE_INVALID_ARGUMENT);
    CHECK(map == NULL);
    sonde_value_release(keys);
    sonde_value_release(texts);
    sonde_value_release(values);
}

TEST(a_sequence_of_mixed_types_is_refused)
{
    sonde_error err;
    sonde_value *items[2] = {NULL, NULL}, *sequence = NULL;
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, NULL, 0, NULL, 4, &items[0], &err));
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_I64, NULL, 0, NULL, 8, &items[1], &err));
    CHECK_EQ(sonde_sequence_create(NULL, items, 2, &sequence, &err), SONDE_INVALID_ARGUMENT);
    sonde_value_release(items[1]);
    items[1] = NULL;
    CHECK_EQ(sonde_sequence_create(NULL, items, 2, &sequence, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_sequence_create(NULL, NULL, 0, &sequence, &err));
    sonde_value_release(items[0]);
    sonde_value_release(sequence);
}

static sonde_value *floats(float a, float b)
{
    const float data[2] = {a, b};
    const int64_t dims[1] = {2};
    sonde_value *v = NULL;
    (void)sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 1, data, sizeof data, &v, NULL);
    return v;
}

TEST(comparing_knows_tolerance_nan_and_infinity)
{
    sonde_error err;
    sonde_value *a = floats(1.0f, NAN), *b = floats(1.0005f, NAN), *c = floats(1.1f, NAN);
    sonde_value *inf = floats(INFINITY, 0), *minus = floats(-INFINITY, 0);
    CHECK_OK(sonde_value_compare(b, a, 1e-3, 1e-7, &err));
    CHECK_EQ(sonde_value_compare(c, a, 1e-3, 1e-7, &err), SONDE_RUNTIME);
    CHECK_HAS(err.message, "1 of 2 elements differ, first at 0");
    CHECK_OK(sonde_value_compare(inf, inf, 0, 0, &err));
    CHECK_EQ(sonde_value_compare(inf, minus, 1, 1, &err), SONDE_RUNTIME);
    CHECK_EQ(sonde_value_compare(inf, a, 1, 1, &err), SONDE_RUNTIME);
    sonde_value_release(a);
    sonde_value_release(b);
    sonde_value_release(c);
    sonde_value_release(inf);
    sonde_value_release(minus);
}

TEST(comparing_names_differing_shapes)
{
    sonde_error err;
    sonde_value *a = floats(1, 2), *b = NULL;
    CHECK_OK(sonde_tensor_create(NULL, SONDE_DTYPE_F32, NULL, 0, NULL, 4, &b, &err));
    CHECK_EQ(sonde_value_compare(a, b, 1, 1, &err), SONDE_RUNTIME);
    CHECK_HAS(err.message, "f32[2]");
    CHECK_EQ(sonde_value_compare(a, NULL, 1, 1, &err), SONDE_INVALID_ARGUMENT);
    sonde_value_release(a);
    sonde_value_release(b);
}

TEST(every_type_has_texts_and_a_size)
{
    for (int t = 0; t < SONDE_DTYPE_COUNT; t++) {
        CHECK(sonde_dtype_text((sonde_dtype)t)[0] != 0);
        CHECK(sonde_dtype_onnx_text((sonde_dtype)t)[0] != 0);
    }
    CHECK_STR(sonde_dtype_text(SONDE_DTYPE_F32), "f32");
    CHECK_STR(sonde_dtype_onnx_text(SONDE_DTYPE_F32), "float");
    CHECK_EQ(sonde_dtype_bytes(SONDE_DTYPE_I4), 1);
    CHECK_EQ(sonde_dtype_bytes((sonde_dtype)-1), 0);
    CHECK_STR(sonde_status_text(SONDE_INVALID_MODEL), "invalid model");
    CHECK_STR(sonde_status_text((sonde_status)77), "unknown status");
}

TEST(values_keep_their_context_alive)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    sonde_context *c = NULL;
    CHECK_OK(sonde_context_create(&o, &c, &err));
    CHECK_EQ(sonde_context_threads(c), 1);
    sonde_value *v = NULL;
    CHECK_OK(sonde_tensor_create(c, SONDE_DTYPE_F32, NULL, 0, NULL, 4, &v, &err));
    sonde_context_release(c);
    CHECK(*(const float *)sonde_tensor_data(v) == 0.0f);
    sonde_value_release(v);
}

TEST(a_context_refuses_nonsense)
{
    sonde_error err;
    sonde_context *c = NULL;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = -1;
    CHECK_EQ(sonde_context_create(&o, &c, &err), SONDE_INVALID_ARGUMENT);
    o.threads = 1;
    o.cpu = "z80";
    CHECK(sonde_context_create(&o, &c, &err) != SONDE_OK);
    CHECK_HAS(err.message, "z80");
    sonde_context_options unset = {0};
    CHECK_EQ(sonde_context_create(&unset, &c, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "struct_size");
    CHECK(c == NULL);
}

TEST(a_context_keeps_to_its_memory_limit)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    o.max_memory = 1 << 20;
    sonde_context *c = NULL;
    CHECK_OK(sonde_context_create(&o, &c, &err));
    const int64_t dims[1] = {1 << 20};
    sonde_value *v = NULL;
    CHECK_EQ(sonde_tensor_create(c, SONDE_DTYPE_F32, dims, 1, NULL, 4 << 20, &v, &err),
             SONDE_OUT_OF_MEMORY);
    sonde_context_release(c);
}

TEST_MAIN()
