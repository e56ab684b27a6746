/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers: every element type in every way a file may hold it, and what must be refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/tensor_source.h"
#include "proto.h"
#include "temp_folder.h"

static pb with_initializer(pb t)
{
    pb g = pb_relu_graph();
    pb_msg(&g, 5, t);
    return pb_model(10, g);
}

static const sn_tensor *data_of(const fixture *f, const char *name)
{
    const sn_value *v = find_value(f->m->graph, name);
    return v ? v->fact.data : NULL;
}

TEST(raw_data_of_every_element_type_is_read)
{
    fixture f;
    fixture_init(&f);
    int64_t dims[] = {2, 2};
    uint8_t raw[64];
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (uint8_t)(i * 37 + 1);
    for (int t = 1; t < SONDE_DTYPE_COUNT; t++) {
        size_t bytes = 0;
        if (t == SONDE_DTYPE_STRING)
            continue;
        CHECK(sn_dtype_file_bytes((sn_dtype)t, 4, &bytes));
        CHECK_MSG(fixture_load(&f, with_initializer(pb_tensor_raw("w", t, 2, dims, raw, bytes))) ==
                      SONDE_OK,
                  "%s: %s", sn_dtype_name((sn_dtype)t), f.err.message);
        const sn_tensor *w = data_of(&f, "w");
        CHECK(w != NULL);
        CHECK_EQ(w->dtype, t);
        CHECK_EQ(w->bytes, 4 * sn_dtype_bytes((sn_dtype)t));
        CHECK_EQ((uintptr_t)w->data % sn_dtype_align((sn_dtype)t), 0);
        if (t == SONDE_DTYPE_BOOL) {
            for (int i = 0; i < 4; i++)
                CHECK_EQ(((const uint8_t *)w->data)[i], 1);
        } else if (sn_dtype_bits((sn_dtype)t) >= 8) {
            CHECK_EQ(memcmp(w->data, raw, bytes), 0);
        }
    }
    CHECK(fixture_free(&f));
}

TEST(sub_byte_elements_unpack_low_bits_first_and_signed_ones_extend)
{
    static const struct {
        int dtype;
        uint8_t raw[2];
        int8_t want[3];
    } cases[] = {
        {SONDE_DTYPE_U4, {0xF1, 0x08}, {1, 15, 8}},     {SONDE_DTYPE_I4, {0xF1, 0x08}, {1, -1, -8}},
        {SONDE_DTYPE_F4E2M1, {0xF1, 0x08}, {1, 15, 8}}, {SONDE_DTYPE_U2, {0x39, 0}, {1, 2, 3}},
        {SONDE_DTYPE_I2, {0x39, 0}, {1, -2, -1}},
    };
    fixture f;
    int64_t three = 3;
    fixture_init(&f);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (int typed = 0; typed < 2; typed++) {
            size_t bytes = 0;
            CHECK(sn_dtype_file_bytes((sn_dtype)cases[k].dtype, 3, &bytes));
            pb t = pb_tensor("w", cases[k].dtype, 1, &three);
            for (size_t i = 0; typed && i < bytes; i++)
                pb_int(&t, 5, cases[k].raw[i]);
            if (!typed)
                pb_bytes(&t, 9, cases[k].raw, bytes);
            CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
            CHECK_EQ(memcmp(data_of(&f, "w")->data, cases[k].want, 3), 0);
        }
    CHECK(fixture_free(&f));
}

TEST(typed_fields_hold_the_same_values_packed_or_not)
{
    fixture f;
    int64_t two = 2;
    fixture_init(&f);
    for (int packed = 0; packed < 2; packed++) {
        pb t = pb_tensor("w", SONDE_DTYPE_I64, 1, &two);
        if (packed) {
            pb run = {0};
            pb_varint(&run, (uint64_t)-3), pb_varint(&run, 1ull << 40);
            pb_msg(&t, 7, run);
        } else {
            pb_int(&t, 7, (uint64_t)-3), pb_int(&t, 7, 1ull << 40);
        }
        CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
        const int64_t *v = data_of(&f, "w")->data;
        CHECK(v[0] == -3 && v[1] == (int64_t)1 << 40);

        float fl[2] = {1.5f, -2};
        t = pb_tensor("w", SONDE_DTYPE_F32, 1, &two);
        if (packed)
            pb_bytes(&t, 4, fl, 8);
        else
            pb_float(&t, 4, fl[0]), pb_float(&t, 4, fl[1]);
        CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
        CHECK_EQ(memcmp(data_of(&f, "w")->data, fl, 8), 0);
    }
    static const int in_int32[] = {SONDE_DTYPE_I32,   SONDE_DTYPE_I16,  SONDE_DTYPE_I8,
                                   SONDE_DTYPE_U8,    SONDE_DTYPE_U16,  SONDE_DTYPE_BOOL,
                                   SONDE_DTYPE_F16,   SONDE_DTYPE_BF16, SONDE_DTYPE_F8E4M3FN,
                                   SONDE_DTYPE_F8E8M0};
    for (size_t k = 0; k < sizeof in_int32 / sizeof in_int32[0]; k++) {
        pb t = pb_tensor("w", in_int32[k], 1, &two);
        pb_int(&t, 5, 1), pb_int(&t, 5, in_int32[k] == SONDE_DTYPE_BOOL ? 0 : 0x7F);
        CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
        const sn_tensor *w = data_of(&f, "w");
        uint64_t second = 0;
        memcpy(&second, (const uint8_t *)w->data + w->bytes / 2, w->bytes / 2);
        CHECK_EQ(second, in_int32[k] == SONDE_DTYPE_BOOL ? 0 : 0x7F);
    }
    pb t = pb_tensor("w", SONDE_DTYPE_U32, 1, &two);
    pb_int(&t, 11, 1), pb_int(&t, 11, UINT32_MAX);
    CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(((const uint32_t *)data_of(&f, "w")->data)[1], UINT32_MAX);
    double d[4] = {1, 2, 3, 4};
    t = pb_tensor("w", SONDE_DTYPE_C128, 1, &two);
    pb_bytes(&t, 10, d, sizeof d);
    CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(memcmp(data_of(&f, "w")->data, d, sizeof d), 0);
    CHECK(fixture_free(&f));
}

TEST(strings_point_at_their_bytes)
{
    fixture f;
    int64_t two = 2;
    fixture_init(&f);
    pb t = pb_tensor("w", SONDE_DTYPE_STRING, 1, &two);
    pb_bytes(&t, 6, "a\0b", 3), pb_text(&t, 6, "");
    CHECK_MSG(fixture_load(&f, with_initializer(t)) == SONDE_OK, "%s", f.err.message);
    const sonde_string *s = data_of(&f, "w")->data;
    CHECK_EQ(s[0].size, 3);
    CHECK_EQ(memcmp(s[0].data, "a\0b", 3), 0);
    CHECK_EQ(s[1].size, 0);
    CHECK(fixture_free(&f));
}

TEST(a_small_initializer_is_aligned_at_once)
{
    fixture f;
    static float big[3000];
    int64_t dims = 3000;
    fixture_init(&f);
    for (int shift = 0; shift < 4; shift++) {
        char name[16] = "wwwwwwww";
        name[shift + 1] = 0;
        pb model =
            with_initializer(pb_tensor_raw(name, SONDE_DTYPE_F32, 1, &dims, big, sizeof big));
        CHECK_MSG(fixture_load(&f, model) == SONDE_OK, "%s", f.err.message);
        const sn_tensor *w = data_of(&f, name);
        CHECK_EQ((uintptr_t)w->data % 4, 0);
    }
    CHECK(fixture_free(&f));
}

TEST(a_large_initializer_is_aligned_only_when_someone_reads_it)
{
    fixture f;
    static float big[5000];
    int64_t dims = 5000;
    int misaligned = 0;
    fixture_init(&f);
    for (int i = 0; i < 5000; i++)
        big[i] = (float)i;
    for (int shift = 0; shift < 4; shift++) {
        char name[16] = "wwwwwwww";
        sn_model *m;
        name[shift + 1] = 0;
        pb model =
            with_initializer(pb_tensor_raw(name, SONDE_DTYPE_F32, 1, &dims, big, sizeof big));
        uint8_t *aligned = aligned_alloc(64, sn_round_up(model.n, 64));
        memcpy(aligned, model.data, model.n);
        CHECK_MSG(sn_model_load_memory(&f.ctx, aligned, model.n, NULL, NULL, &m, &f.err) ==
                      SONDE_OK,
                  "%s", f.err.message);
        sn_value *v = find_value(m->graph, name);
        const sn_tensor *w = v->fact.data;
        CHECK(w->owner == NULL);
        misaligned += (uintptr_t)w->data % 4 != 0;
        CHECK_EQ(sn_value_make_readable(m->graph, v, &m->buffers, &f.err), SONDE_OK);
        w = v->fact.data;
        CHECK_EQ((uintptr_t)w->data % 4, 0);
        CHECK_EQ(memcmp(w->data, big, sizeof big), 0);
        sn_model_unref(m);
        free(aligned);
        free(model.data);
    }
    CHECK(misaligned > 0);
    CHECK(fixture_free(&f));
}

TEST(an_empty_tensor_needs_no_data)
{
    fixture f;
    int64_t dims[] = {0, 4};
    fixture_init(&f);
    CHECK_MSG(fixture_load(&f, with_initializer(pb_tensor("w", SONDE_DTYPE_F32, 2, dims))) ==
                  SONDE_OK,
              "%s", f.err.message);
    CHECK_EQ(data_of(&f, "w")->bytes, 0);
    CHECK(data_of(&f, "w")->data != NULL);
    CHECK(fixture_free(&f));
}

TEST(shapes_that_do_not_match_the_data_are_refused_by_name)
{
    fixture f;
    fixture_init(&f);
    int64_t three = 3, minus = -1, huge[] = {INT64_MAX, 4}, many[17] = {0};
    float two[2] = {1, 2};
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor_raw("odd", 1, 1, &three, two, 8))),
                SONDE_INVALID_MODEL, "'odd' has 8 bytes of data, but its type and shape need 12");
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor("odd", 1, 1, &three))),
                SONDE_INVALID_MODEL, "'odd' has 0 data entries");
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor("odd", 1, 1, &minus))),
                SONDE_INVALID_MODEL, "'odd' has the negative dimension -1");
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor("odd", 1, 2, huge))),
                SONDE_INVALID_MODEL, "'odd' is too large");
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor("odd", 1, 17, many))),
                SONDE_UNSUPPORTED, "'odd' has more than 16 dimensions");
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor("odd", 27, 0, NULL))),
                SONDE_INVALID_MODEL, "'odd' has the unknown dtype 27");
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor_raw("odd", SONDE_DTYPE_STRING, 1,
                                                                &three, "abc", 3))),
                SONDE_INVALID_MODEL, "which strings cannot have");
    CHECK(fixture_free(&f));
}

TEST(a_claim_of_many_elements_costs_no_memory)
{
    fixture f;
    int64_t dims[] = {1 << 20, 1 << 10};
    fixture_init(&f);
    CHECK_FAILS(fixture_load(&f, with_initializer(pb_tensor("odd", 1, 2, dims))),
                SONDE_INVALID_MODEL, "'odd'");
    CHECK(atomic_load(&f.alloc.peak_bytes) < 1 << 20);
    CHECK(fixture_free(&f));
}

/* ---- sparse ---- */

static pb with_sparse(pb s)
{
    pb g = pb_relu_graph();
    pb_msg(&g, 15, s);
    return pb_model(10, g);
}

static pb sparse_of(int64_t nnz, const float *values, int rank, const int64_t *index_dims,
                    const int64_t *indices, size_t n_indices, const int64_t *dims, int dims_n)
{
    pb s = {0};
    pb_msg(&s, 1, pb_tensor_raw("w", SONDE_DTYPE_F32, 1, &nnz, values, (size_t)nnz * 4));
    pb_msg(&s, 2, pb_tensor_raw("", SONDE_DTYPE_I64, rank, index_dims, indices, n_indices * 8));
    for (int i = 0; i < dims_n; i++)
        pb_int(&s, 3, (uint64_t)dims[i]);
    return s;
}

TEST(sparse_initializers_become_dense_from_either_kind_of_index)
{
    fixture f;
    float values[] = {5, 7}, want[6] = {0, 5, 0, 0, 7, 0};
    int64_t linear[] = {1, 4}, pairs[] = {0, 1, 1, 1}, dims[] = {2, 3}, one_d[] = {2},
            two_d[] = {2, 2};
    fixture_init(&f);
    CHECK_MSG(fixture_load(&f, with_sparse(sparse_of(2, values, 1, one_d, linear, 2, dims, 2))) ==
                  SONDE_OK,
              "%s", f.err.message);
    CHECK_EQ(memcmp(data_of(&f, "w")->data, want, sizeof want), 0);
    CHECK_MSG(fixture_load(&f, with_sparse(sparse_of(2, values, 2, two_d, pairs, 4, dims, 2))) ==
                  SONDE_OK,
              "%s", f.err.message);
    CHECK_EQ(memcmp(data_of(&f, "w")->data, want, sizeof want), 0);
    CHECK(fixture_free(&f));
}

TEST(sparse_indices_outside_the_shape_and_bombs_are_refused)
{
    fixture f;
    float value = 1;
    int64_t one = 1, six = 6, minus = -1, pair[] = {0, 3}, pair_dims[] = {1, 2}, dims[] = {2, 3};
    int64_t bomb[] = {1 << 20, 1 << 10}, zero = 0;
    fixture_init(&f);
    CHECK_FAILS(fixture_load(&f, with_sparse(sparse_of(1, &value, 1, &one, &six, 1, dims, 2))),
                SONDE_INVALID_MODEL, "outside its shape");
    CHECK_FAILS(fixture_load(&f, with_sparse(sparse_of(1, &value, 1, &one, &minus, 1, dims, 2))),
                SONDE_INVALID_MODEL, "outside its shape");
    CHECK_FAILS(fixture_load(&f, with_sparse(sparse_of(1, &value, 2, pair_dims, pair, 2, dims, 2))),
                SONDE_INVALID_MODEL, "outside its shape");
    CHECK_FAILS(fixture_load(&f, with_sparse(sparse_of(1, &value, 1, &one, &zero, 1, bomb, 2))),
                SONDE_LIMIT, "too much for");
    CHECK(atomic_load(&f.alloc.peak_bytes) < 1 << 20);
    /* Many small ones count together. */
    pb g = pb_relu_graph();
    int64_t half[] = {1 << 23};
    for (int k = 0; k < 4; k++) {
        pb s = {0};
        char name[4] = {'w', (char)('0' + k), 0};
        pb_msg(&s, 1, pb_tensor_raw(name, SONDE_DTYPE_F32, 1, &one, &value, 4));
        pb_msg(&s, 2, pb_tensor_raw("", SONDE_DTYPE_I64, 1, &one, &zero, 8));
        pb_int(&s, 3, (uint64_t)half[0]);
        pb_msg(&g, 15, s);
    }
    CHECK_FAILS(fixture_load(&f, pb_model(10, g)), SONDE_LIMIT, "too much for");
    CHECK(fixture_free(&f));
}

/* ---- external data ---- */

static pb external(const char *location, const char *offset, const char *length)
{
    int64_t two = 2;
    pb t = pb_tensor("w", SONDE_DTYPE_F32, 1, &two);
    const char *pairs[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    for (int k = 0; k < 3; k++) {
        pb e = {0};
        if (!pairs[k][1])
            continue;
        pb_text(&e, 1, pairs[k][0]);
        pb_text(&e, 2, pairs[k][1]);
        pb_msg(&t, 13, e);
    }
    pb_int(&t, 14, 1);
    return with_initializer(t);
}

/* Loads a model with external data from a folder that holds "data" (16 bytes) and "out", a link. */
static char folder[TEMP_PATH];
static sonde_status load_external(fixture *f, pb model)
{
    char path[128];
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    FILE *file = fopen(path, "wb");
    fwrite(model.data, 1, model.n, file);
    fclose(file);
    free(model.data);
    sn_model_unref(f->m);
    f->m = NULL;
    return sn_model_load_file(&f->ctx, path, NULL, &f->m, &f->err);
}

TEST(external_data_is_read_from_the_models_folder_only)
{
    fixture f;
    float values[4] = {1, 2, 3, 4};
    char path[128];
    fixture_init(&f);
    temp_make(folder);
    snprintf(path, sizeof path, "%s/data", folder);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(values, 4, 4, file) == 4);
    fclose(file);
    snprintf(path, sizeof path, "%s/out", folder);
    CHECK_EQ(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof path, "%s/in", folder);
    CHECK_EQ(symlink("data", path), 0);

    CHECK_MSG(load_external(&f, external("data", "8", "8")) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(memcmp(data_of(&f, "w")->data, values + 2, 8), 0);
    CHECK(data_of(&f, "w")->owner == NULL);
    CHECK_MSG(load_external(&f, external("./in", NULL, NULL)) == SONDE_OK, "%s", f.err.message);
    CHECK_EQ(memcmp(data_of(&f, "w")->data, values, 8), 0);
    CHECK_EQ(f.m->files.n, 2);

    CHECK_FAILS(load_external(&f, external("/etc/passwd", NULL, NULL)), SONDE_INVALID_MODEL,
                "absolute");
    CHECK_FAILS(load_external(&f, external("../data", NULL, NULL)), SONDE_INVALID_MODEL,
                "outside the model's folder");
    CHECK_FAILS(load_external(&f, external("a/../../data", NULL, NULL)), SONDE_INVALID_MODEL,
                "outside the model's folder");
    CHECK_FAILS(load_external(&f, external("out", NULL, NULL)), SONDE_INVALID_MODEL, "link");
    CHECK_FAILS(load_external(&f, external(".", NULL, NULL)), SONDE_INVALID_MODEL, "'w'");
    CHECK_FAILS(load_external(&f, external("absent", NULL, NULL)), SONDE_NOT_FOUND, "absent");
    CHECK_FAILS(load_external(&f, external("data", "12", "8")), SONDE_INVALID_MODEL,
                "which has only 16");
    CHECK_FAILS(load_external(&f, external("data", "18446744073709551615", "8")),
                SONDE_INVALID_MODEL, "which has only 16");
    CHECK_FAILS(load_external(&f, external("data", "0", "4")), SONDE_INVALID_MODEL, "need 8");
    CHECK_FAILS(load_external(&f, external("data", "x", NULL)), SONDE_INVALID_MODEL,
                "not a number");
    CHECK_FAILS(load_external(&f, external(NULL, NULL, NULL)), SONDE_INVALID_MODEL, "no location");
    CHECK_FAILS(fixture_load(&f, external("data", NULL, NULL)), SONDE_INVALID_MODEL, "no folder");
    CHECK(temp_remove(folder));
    CHECK(fixture_free(&f));
}

TEST_MAIN()
