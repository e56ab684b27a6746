/* SPDX-License-Identifier: Apache-2.0 */
/* .npy, .npz, .safetensors and folders of .pb: what is written comes back, what is broken is
 * refused. */
#include "files.h"

static const sn_dtype numbers[] = {
    SONDE_DTYPE_F32, SONDE_DTYPE_F64,  SONDE_DTYPE_F16, SONDE_DTYPE_I8,   SONDE_DTYPE_I16,
    SONDE_DTYPE_I32, SONDE_DTYPE_I64,  SONDE_DTYPE_U8,  SONDE_DTYPE_U16,  SONDE_DTYPE_U32,
    SONDE_DTYPE_U64, SONDE_DTYPE_BOOL, SONDE_DTYPE_C64, SONDE_DTYPE_BF16,
};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static const uint8_t pattern[96] = {1, 0, 1, 1, 0, 1};

/* A list with one tensor of each type, an empty one and a scalar. */
static void fill(files *f, bool strings)
{
    int64_t dims[] = {2, 3}, empty[] = {0, 5};
    for (size_t k = 0; k < N_NUMBERS; k++)
        add_tensor(f, sn_dtype_name(numbers[k]), numbers[k], 2, dims, pattern);
    add_tensor(f, "empty \"quoted\" \xC3\xA9", SONDE_DTYPE_F32, 2, empty, pattern);
    add_tensor(f, "scalar", SONDE_DTYPE_I64, 0, NULL, pattern);
    sonde_string words[] = {{"one", 3}, {"", 0}, {"\xC3\xA9t\xC3\xA9 \xF0\x9F\x8E\x88", 10}};
    int64_t three = 3;
    if (strings)
        add_tensor(f, "words", SONDE_DTYPE_STRING, 1, &three, words);
}

static bool writes_and_reads(files *f, const char *name)
{
    sn_named_list back;
    sn_named_init(&back, &f->alloc);
    const char *path = files_path(f, name);
    bool ok = sn_tensor_file_write(path, &f->list, &f->err) == SONDE_OK &&
              sn_tensor_file_read(path, NULL, &back, &f->err) == SONDE_OK &&
              back.list.n == f->list.list.n;
    for (size_t i = 0; ok && i < back.list.n; i++) {
        ok = same_tensor(&f->list.list.data[i].slot.t, &back.list.data[i].slot.t) &&
             strcmp(f->list.list.data[i].name, back.list.data[i].name) == 0;
        if (!ok)
            snprintf(f->err.message, sizeof f->err.message, "'%s' differs",
                     f->list.list.data[i].name);
    }
    sn_named_free(&back);
    return ok;
}

TEST(values_written_to_each_format_come_back)
{
    static const char *const names[] = {"a.npz", "a.safetensors", "folder/"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        files f;
        files_init(&f);
        fill(&f, k != 1);
        CHECK_MSG(writes_and_reads(&f, names[k]), "%s: %s", names[k], f.err.message);
        CHECK(files_free(&f));
    }
}

TEST(one_tensor_goes_to_npy_and_comes_back)
{
    int64_t dims[] = {2, 3};
    for (size_t k = 0; k < N_NUMBERS; k++) {
        files f;
        files_init(&f);
        add_tensor(&f, "", numbers[k], 2, dims, pattern);
        CHECK_MSG(writes_and_reads(&f, "a.npy"), "%s: %s", sn_dtype_name(numbers[k]),
                  f.err.message);
        add_tensor(&f, "", numbers[k], 2, dims, pattern);
        CHECK_EQ(sn_tensor_file_write(files_path(&f, "two.npy"), &f.list, &f.err),
                 SONDE_INVALID_ARGUMENT);
        CHECK_HAS(f.err.message, "one tensor");
        CHECK(files_free(&f));
    }
}

TEST(sub_byte_and_small_float_types_come_back_when_the_type_is_known)
{
    static const sn_dtype small[] = {SONDE_DTYPE_I4, SONDE_DTYPE_U4,       SONDE_DTYPE_I2,
                                     SONDE_DTYPE_U2, SONDE_DTYPE_F8E4M3FN, SONDE_DTYPE_F4E2M1};
    int64_t dims[] = {2, 3};
    for (size_t k = 0; k < sizeof small / sizeof small[0]; k++) {
        files f;
        sn_named_list back;
        sn_type as = {.kind = SN_KIND_TENSOR, .dtype = small[k], .rank = -1};
        files_init(&f);
        sn_named_init(&back, &f.alloc);
        add_tensor(&f, "", small[k], 2, dims, pattern);
        CHECK_MSG(sn_tensor_file_write(files_path(&f, "a.npy"), &f.list, &f.err) == SONDE_OK, "%s",
                  f.err.message);
        CHECK_MSG(sn_tensor_file_read(f.path, &as, &back, &f.err) == SONDE_OK, "%s", f.err.message);
        CHECK(same_tensor(&f.list.list.data[0].slot.t, &back.list.data[0].slot.t));
        sn_named_free(&back);
        CHECK(files_free(&f));
    }
    files f;
    sn_type as = {.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_U4, .rank = -1};
    int64_t one = 1;
    files_init(&f);
    add_tensor(&f, "", SONDE_DTYPE_U8, 1, &one, "\x10");
    CHECK_EQ(sn_tensor_file_write(files_path(&f, "a.npy"), &f.list, &f.err), SONDE_OK);
    CHECK_EQ(sn_tensor_file_read(f.path, &as, &f.list, &f.err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(f.err.message, "the value 16, which is outside the range of uint4");
    CHECK(files_free(&f));
}

/* ---- .npy by hand ---- */

static size_t npy(uint8_t *out, int version, const char *header, const void *data, size_t bytes)
{
    size_t n = strlen(header), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (uint8_t)n;
    memcpy(out + start, header, n);
    if (bytes)
        memcpy(out + start + n, data, bytes);
    return start + n + bytes;
}

static sonde_status read_npy(files *f, int version, const char *header, const void *data,
                             size_t bytes)
{
    uint8_t file[512];
    files_clear(f);
    files_put(f, "a.npy", file, npy(file, version, header, data, bytes));
    return sn_tensor_file_read(f->path, NULL, &f->list, &f->err);
}

TEST(npy_versions_orders_and_shapes_are_understood)
{
    files f;
    int32_t by_columns[] = {1, 4, 2, 5, 3, 6}, by_rows[] = {1, 2, 3, 4, 5, 6};
    files_init(&f);
    for (int version = 1; version <= 3; version++)
        for (int fortran = 0; fortran < 2; fortran++) {
            const char *header =
                fortran ? "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n"
                        : "{\"shape\":(2L,3L),\"descr\":\"<i4\",\"fortran_order\":False}";
            CHECK_MSG(read_npy(&f, version, header, fortran ? by_columns : by_rows, 24) == SONDE_OK,
                      "%s", f.err.message);
            const sn_tensor *t = &f.list.list.data[0].slot.t;
            CHECK(t->rank == 2 && t->dims[0] == 2 && t->dims[1] == 3);
            CHECK_EQ(memcmp(t->data, by_rows, 24), 0);
        }
    CHECK_MSG(read_npy(&f, 1, "{'descr': '|S4', 'fortran_order': False, 'shape': (2,)}",
                       "ab\0\0abcd", 8) == SONDE_OK,
              "%s", f.err.message);
    const sonde_string *s = f.list.list.data[0].slot.t.data;
    CHECK(s[0].size == 2 && s[1].size == 4 && memcmp(s[1].data, "abcd", 4) == 0);
    CHECK(files_free(&f));
}

TEST(npy_files_that_cannot_be_tensors_get_a_sentence)
{
    static const struct {
        const char *header, *part;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "Python objects"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "named fields"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "need 12"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8)}",
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "shape in the header is invalid"},
        {"{'descr': '<f4', 'fortran_order': False}", "incomplete"},
        {"{'descr': '<M8', 'fortran_order': False, 'shape': (1,)}", "'M8'"},
        {"{'descr': '<U0', 'fortran_order': False, 'shape': (4000000000,)}", "empty strings"},
        {"'descr'", "not a dictionary"},
        {"{'descr': '<f4", "element type|named|invalid"},
    };
    files f;
    files_init(&f);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        CHECK(read_npy(&f, 1, cases[k].header, "12345678", 8) != SONDE_OK);
        if (!strchr(cases[k].part, '|'))
            CHECK_HAS(f.err.message, cases[k].part);
        CHECK_HAS(f.err.message, "a.npy");
    }
    CHECK(atomic_load(&f.alloc.peak_bytes) < 1 << 20);
    CHECK(files_free(&f));
}

/* ---- hostile bytes ---- */

static sonde_status read_npy_list(const uint8_t *data, size_t bytes, const sn_type *as,
                                  sn_named_list *out, sonde_error *err)
{
    sn_slot s = {0};
    sonde_status st = sn_npy_read(data, bytes, as, out->alloc, &s, err);
    sn_slot_clear(&s);
    return st;
}

TEST(damaged_files_are_read_or_refused)
{
    for (int k = 0; k < 3; k++) {
        files f;
        sn_bytes b;
        int64_t dims[] = {2, 3};
        sonde_string words[] = {{"one", 3}, {"", 0}};
        int64_t two = 2;
        files_init(&f);
        b = (sn_bytes){.alloc = &f.alloc};
        add_tensor(&f, "a", SONDE_DTYPE_F32, 2, dims, pattern);
        if (k == 1)
            add_tensor(&f, "b", SONDE_DTYPE_STRING, 1, &two, words);
        else
            add_tensor(&f, "b", SONDE_DTYPE_I64, 2, dims, pattern);
        CHECK_EQ(k == 0   ? sn_npy_write(&f.list.list.data[0].slot.t, &b, &f.err)
                 : k == 1 ? sn_npz_write(&f.list, &b, &f.err)
                          : sn_safetensors_write(&f.list, &b, &f.err),
                 SONDE_OK);
        files_clear(&f);
        long failures = hurt(&f, b.v.data, b.v.n,
                             k == 0   ? read_npy_list
                             : k == 1 ? sn_npz_read
                                      : sn_safetensors_read);
        CHECK_MSG(failures > (long)b.v.n / 2, "format %d: %ld failures of %zu bytes, %s", k,
                  failures, b.v.n, f.err.message);
        sn_bytes_free(&b);
        CHECK(files_free(&f));
    }
}

/* numpy.savez_compressed(a=numpy.arange(1000, dtype="<i4") // 100) */
/* clang-format off */
static const uint8_t deflated[] = {
    0x50, 0x4b, 0x03, 0x04, 0x2d, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xd5, 0x43,
    0x2f, 0xb9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x05, 0x00, 0x14, 0x00, 0x61, 0x2e,
    0x6e, 0x70, 0x79, 0x01, 0x00, 0x10, 0x00, 0x20, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x78,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9b, 0xec, 0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50,
    0xc6, 0x50, 0xad, 0x9e, 0x92, 0x5a, 0x9c, 0x5c, 0xa4, 0x6e, 0xa5, 0xa0, 0x6e, 0x93, 0x69, 0xa2,
    0xae, 0xa3, 0xa0, 0x9e, 0x96, 0x5f, 0x54, 0x52, 0x94, 0x98, 0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a,
    0x12, 0x77, 0x4b, 0xcc, 0x29, 0x4e, 0x05, 0x8a, 0x17, 0x67, 0x24, 0x16, 0xa4, 0x02, 0xf9, 0x1a,
    0x86, 0x06, 0x06, 0x06, 0x3a, 0x9a, 0x3a, 0x0a, 0xb5, 0x0a, 0xe4, 0x02, 0x2e, 0x86, 0x51, 0x30,
    0xa8, 0x00, 0xe3, 0x28, 0x1e, 0x54, 0x98, 0x69, 0x14, 0x0f, 0x2a, 0xcc, 0x3c, 0x8a, 0x07, 0x15,
    0x66, 0x19, 0xc5, 0x83, 0x0a, 0xb3, 0x8e, 0xe2, 0x41, 0x85, 0xd9, 0x46, 0xf1, 0xa0, 0xc2, 0xec,
    0xa3, 0x78, 0x50, 0x61, 0x8e, 0x51, 0x3c, 0xa8, 0x30, 0xe7, 0x28, 0x1e, 0x54, 0x18, 0x00, 0x50,
    0x4b, 0x01, 0x02, 0x2d, 0x03, 0x2d, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xd5,
    0x43, 0x2f, 0xb9, 0x78, 0x00, 0x00, 0x00, 0x20, 0x10, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x61, 0x2e, 0x6e,
    0x70, 0x79, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x33, 0x00,
    0x00, 0x00, 0xaf, 0x00, 0x00, 0x00, 0x00, 0x00,
};
/* clang-format on */

TEST(a_deflated_archive_is_unpacked)
{
    files f;
    files_init(&f);
    sonde_status st = sn_npz_read(deflated, sizeof deflated, NULL, &f.list, &f.err);
    if (st == SONDE_UNSUPPORTED) {
        CHECK_HAS(f.err.message, "no zlib");
    } else {
        CHECK_MSG(st == SONDE_OK, "%s", f.err.message);
        CHECK_STR(f.list.list.data[0].name, "a");
        const sn_tensor *t = &f.list.list.data[0].slot.t;
        CHECK_EQ(t->dtype, SONDE_DTYPE_I32);
        CHECK_EQ(t->dims[0], 1000);
        for (int i = 0; i < 1000; i++)
            CHECK_EQ(((const int32_t *)t->data)[i], i / 100);
    }
    CHECK(files_free(&f));
}

TEST(a_damaged_or_boastful_archive_costs_little_memory)
{
    static const size_t directory = sizeof deflated - 22 - 46 - 5;
    uint8_t copy[sizeof deflated];
    files f;
    files_init(&f);
    CHECK(hurt(&f, deflated, sizeof deflated, sn_npz_read) > (long)sizeof deflated);
    memcpy(copy, deflated, sizeof copy);
    memset(copy + directory + 24, 0x7F, 4); /* the unpacked size: two gigabytes */
    CHECK(sn_npz_read(copy, sizeof copy, NULL, &f.list, &f.err) != SONDE_OK);
    CHECK(atomic_load(&f.alloc.peak_bytes) < 1 << 20);
    CHECK(files_free(&f));
}

typedef struct question {
    char name[16];
    int64_t dims[2];
    size_t rank, asked;
    int answer;
} question;

static int ask(void *user, const char *name, const int64_t *dims, size_t rank)
{
    question *q = user;
    snprintf(q->name, sizeof q->name, "%s", name);
    q->asked++;
    q->rank = rank;
    for (size_t i = 0; i < rank && i < 2; i++)
        q->dims[i] = dims[i];
    return q->answer;
}

/* The directory of `deflated` with another unpacked size. */
static void claim_size(uint8_t *archive, size_t bytes, uint32_t unpacked, uint32_t packed)
{
    uint8_t *entry = archive + bytes - 22 - 46 - 5;
    for (int i = 0; i < 4; i++) {
        entry[20 + i] = (uint8_t)(packed >> (8 * i));
        entry[24 + i] = (uint8_t)(unpacked >> (8 * i));
    }
}

TEST(what_is_not_wanted_is_not_unpacked)
{
    for (int answer = 0; answer < 2; answer++) {
        files f;
        question q = {.answer = answer};
        files_init(&f);
        f.list.wants = ask;
        f.list.wants_user = &q;
        const sonde_status st = sn_npz_read(deflated, sizeof deflated, NULL, &f.list, &f.err);
        if (st != SONDE_UNSUPPORTED) { /* a build without zlib */
            CHECK_MSG(st == SONDE_OK, "%s", f.err.message);
            CHECK_EQ(q.asked, 1);
            CHECK_STR(q.name, "a");
            CHECK(q.rank == 1 && q.dims[0] == 1000);
            CHECK_EQ(f.list.list.n, answer);
        }
        CHECK(files_free(&f));
    }
}

/* The header of the array says how large it is; the archive claims another size, one that deflate
 * could reach. */
TEST(sizes_of_an_archive_are_compared_before_it_is_unpacked)
{
    uint8_t copy[sizeof deflated];
    files f;
    files_init(&f);
    memcpy(copy, deflated, sizeof copy);
    claim_size(copy, sizeof copy, 100000, 0x78);
    const sonde_status st = sn_npz_read(copy, sizeof copy, NULL, &f.list, &f.err);
    CHECK(st != SONDE_OK);
    if (st != SONDE_UNSUPPORTED) {
        CHECK_HAS(f.err.message, "'a'");
        CHECK_EQ(f.list.list.n, 0);
    }
    CHECK(atomic_load(&f.alloc.peak_bytes) < 90000);
    CHECK(files_free(&f));
}

TEST(tensors_of_a_safetensors_file_can_be_left_out)
{
    static const char text[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}";
    uint8_t file[8 + sizeof text - 1 + 8] = {sizeof text - 1};
    memcpy(file + 8, text, sizeof text - 1);
    for (int answer = 0; answer < 2; answer++) {
        files f;
        question q = {.answer = answer};
        files_init(&f);
        f.list.wants = ask;
        f.list.wants_user = &q;
        CHECK_EQ(sn_safetensors_read(file, sizeof file, NULL, &f.list, &f.err), SONDE_OK);
        CHECK(q.asked == 1 && q.rank == 2 && q.dims[0] == 2 && q.dims[1] == 1);
        CHECK_EQ(f.list.list.n, answer);
        CHECK(files_free(&f));
    }
}

TEST(safetensors_headers_are_checked)
{
    static const struct {
        const char *header, *part; /* part NULL: is read */
    } cases[] = {
        {"{}", NULL},
        {"{\"__metadata__\":{\"a\":[1,{\"b\":\"c\\\"\"}]},\"w\":{\"dtype\":\"U8\",\"shape\":[2],"
         "\"data_offsets\":[1,3],\"extra\":null}}   ",
         NULL},
        {"{\"\\u00e9\\ud83c\\udf88\\n\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
         NULL},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", "0 to 9 of 8"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,3]}}", "need 2"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,1]}}", "need 2"},
        {"{\"w\":{\"dtype\":\"X9\",\"shape\":[2],\"data_offsets\":[0,2]}}", "'X9'"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[-2],\"data_offsets\":[0,2]}}", "invalid"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2]}}", "invalid"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"v\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
         "overlap"},
        {"{\"\\u0000\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", "zero byte"},
        {"{\"__metadata__\":{\"z\":\"\\u0000\"},"
         "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
         NULL},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2.0],\"data_offsets\":[0,2]}}", "tensor 'w' in the"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,2]}}",
         "tensor 'w' in the header is invalid"},
        {"{\"w\":", "invalid"},
        {"{\"w\" {}}", "the header is invalid: a colon was expected (byte 5)"},
        {"{\"\\q\":{}}", "the header is invalid: invalid escape"},
        {"{\"\xFF\":{}}", "the header is invalid: this is not UTF-8"},
        {"{\"__metadata__\":{\"a\":}}", "the metadata in the header is invalid"},
        {"{\"__metadata__\":{}", "the header is invalid: it is truncated"},
        {"[]", "not a JSON object"},
        {"\xEF\xBB\xBF{}", "not a JSON object"},
    };
    files f;
    files_init(&f);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        sn_bytes b = {.alloc = &f.alloc};
        files_clear(&f);
        sn_bytes_le(&b, strlen(cases[k].header), 8);
        sn_bytes_put(&b, cases[k].header, strlen(cases[k].header));
        sn_bytes_put(&b, "12345678", 8);
        sonde_status st = sn_safetensors_read(b.v.data, b.v.n, NULL, &f.list, &f.err);
        CHECK_MSG((st == SONDE_OK) == (cases[k].part == NULL), "%s: %s", cases[k].header,
                  f.err.message);
        if (cases[k].part)
            CHECK_HAS(f.err.message, cases[k].part);
        if (k == 2)
            CHECK_STR(f.list.list.data[0].name, "\xC3\xA9\xF0\x9F\x8E\x88\n");
        sn_bytes_free(&b);
    }
    CHECK(files_free(&f));
}

/* ---- .pb ---- */

TEST(folders_of_pb_are_read_in_natural_order)
{
    files f;
    char name[16];
    files_init(&f);
    for (int k = 0; k < 12; k++) {
        snprintf(name, sizeof name, "v%d", k);
        add_tensor(&f, name, SONDE_DTYPE_U8, 0, NULL, pattern);
    }
    CHECK_MSG(sn_tensor_file_write(files_path(&f, "set/"), &f.list, &f.err) == SONDE_OK, "%s",
              f.err.message);
    files_clear(&f);
    CHECK_MSG(sn_tensor_file_read(files_path(&f, "set"), NULL, &f.list, &f.err) == SONDE_OK, "%s",
              f.err.message);
    CHECK_EQ(f.list.list.n, 12);
    for (int k = 0; k < 12; k++) {
        snprintf(name, sizeof name, "v%d", k);
        CHECK_STR(f.list.list.data[k].name, name);
    }
    CHECK(files_free(&f));
}

TEST(sequences_are_found_in_pb_without_being_told)
{
    files f;
    sn_slot item = {0};
    files_init(&f);
    CHECK_EQ(sn_slot_new_tensor(&item, SONDE_DTYPE_U8, NULL, 0, &f.alloc, &f.err), SONDE_OK);
    *(uint8_t *)item.t.data = 7;
    sn_slot seq = {.kind = SN_KIND_SEQUENCE, .list = sn_list_new(&f.alloc, 1)};
    CHECK_EQ(sn_list_push(seq.list, &item, &f.err), SONDE_OK);
    sn_slot_clear(&item);
    CHECK_EQ(sn_named_add(&f.list, "s", &seq, &f.err), SONDE_OK);
    CHECK_MSG(sn_tensor_file_write(files_path(&f, "set/"), &f.list, &f.err) == SONDE_OK, "%s",
              f.err.message);
    CHECK_EQ(sn_tensor_file_write(files_path(&f, "a.npz"), &f.list, &f.err), SONDE_UNSUPPORTED);
    files_clear(&f);
    CHECK_MSG(sn_tensor_file_read(files_path(&f, "set/output_0.pb"), NULL, &f.list, &f.err) ==
                  SONDE_OK,
              "%s", f.err.message);
    CHECK_EQ(f.list.list.data[0].slot.kind, SN_KIND_SEQUENCE);
    CHECK(files_free(&f));
}

TEST(unknown_and_absent_files_get_a_sentence)
{
    files f;
    files_init(&f);
    CHECK_EQ(sn_tensor_file_read("a.txt", NULL, &f.list, &f.err), SONDE_UNSUPPORTED);
    CHECK_HAS(f.err.message, ".safetensors");
    CHECK_EQ(sn_tensor_file_read(files_path(&f, "absent.npy"), NULL, &f.list, &f.err),
             SONDE_NOT_FOUND);
    CHECK_HAS(f.err.message, "absent.npy");
    CHECK_EQ(sn_tensor_file_write("a.txt", &f.list, &f.err), SONDE_UNSUPPORTED);
    CHECK_EQ(sn_tensor_file_read(f.folder, NULL, &f.list, &f.err), SONDE_NOT_FOUND);
    CHECK(files_free(&f));
}

TEST_MAIN()
