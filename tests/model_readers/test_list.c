/* SPDX-License-Identifier: Apache-2.0 */
/* The list of model formats: who reads what, the sentence for files nobody reads, and that no bytes
 * whatever do harm on the way. */
#include "model_readers/model_readers.h"

#include <unistd.h>

#include "model_readers/foreign.h"
#include "onnx/proto.h"

/* The status of reading these bytes as if ONNX were the only format there is. They are read from a
 * copy of the exact size: reading past its end is seen by the sanitizer. */
static sonde_status read_as_onnx(fixture *f, const void *data, size_t n)
{
    static const sn_model_reader *const list[] = {&sn_model_reader_onnx};
    uint8_t *copy = malloc(n ? n : 1);
    const sn_model_source src = {.data = copy, .bytes = n};
    const sn_model_reader *row;
    sn_model *m = NULL;
    memcpy(copy, data, n);
    f->err.message[0] = 0;
    sonde_status st = sn_model_reader_choose(list, 1, &src, &row, &f->err);
    if (st == SONDE_OK)
        st = sn_model_new(&m, &f->ctx, &f->err);
    if (st == SONDE_OK)
        st = row->read(&src, m, &f->err);
    sn_model_unref(m);
    free(copy);
    return st;
}

TEST(every_row_of_the_list_is_complete)
{
    const sn_model_reader *row;
    size_t k = 0;
    for (; (row = sn_model_reader_row(k)) != NULL; k++)
        CHECK(row->name && row->suffix && row->suffix[0] == '.' && row->sniff && row->read);
    CHECK(k >= 1);
    CHECK_STR(sn_model_reader_row(k - 1)->name, "ONNX"); /* it has no signature: last */
}

TEST(onnx_is_known_by_its_content_whatever_the_order_of_its_fields)
{
    fixture f;
    fixture_init(&f);
    pb m = {0}, group = {0};
    pb_text(&m, 99, "a field of later years");
    pb_msg(&m, 7, pb_relu_graph());
    pb_msg(&m, 8, pb_opset("", 18));
    pb_text(&m, 2, "tests");
    pb_int(&m, 1, 8); /* what most files begin with */
    pb_raw(&group, (const uint8_t[]){0xA3, 0x06, 0x08, 0x01, 0xA4, 0x06}, 6); /* an unknown group */
    pb_raw(&m, group.data, group.n);
    free(group.data);
    CHECK_MSG(fixture_load(&f, m) == SONDE_OK, "%s", f.err.message);
    CHECK_STR(f.m->graph->first->op_type, "Relu");
    CHECK(fixture_free(&f));
}

/* The beginnings of files people try; `bytes` because some contain zeros. */
#define FILE_OF(text) (text), sizeof(text) - 1
TEST(what_is_no_model_is_called_by_its_name)
{
    static const struct {
        const char *data;
        size_t bytes;
        const char *part;
    } cases[] = {
        {FILE_OF("version https://git-lfs.github.com/spec/v1\noid sha256:1"), "Git LFS pointer"},
        {FILE_OF("PK\x03\x04\0\0\x08\0archive/data.pklFB"), "saved by PyTorch"},
        {FILE_OF("PK\x03\x04\x14\0\0\0arr_0.npy"), "NumPy arrays"},
        {FILE_OF("PK\x03\x04\x14\0\0\0metadata.json"), "it is a zip archive"},
        {FILE_OF("\x80\x02\x8A\x0Al\xFC\x9C\x46\xF9 j\xA8P\x19.\x80\x02"), "PyTorch"},
        {FILE_OF("\x89HDF\r\n\x1A\n\0\0\0\0\0\x08\x08"), "it is an HDF5 file"},
        {FILE_OF("\x1F\x8B\x08\0\0\0\0\0\0\x03"), "it is compressed with gzip"},
        {FILE_OF("GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0"), "GGUF"},
        {FILE_OF("\x93NUMPY\x01\0v\0{'descr': '<f4'"), ".npy"},
        {FILE_OF("\x1C\0\0\0TFL3\x14\0\x20\0"), "TensorFlow Lite"},
        {FILE_OF("\x20\0\0\0ORTM\0\0\0\0"), "ONNX Runtime's format"},
        {FILE_OF("\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[],"), ".safetensors"},
        {FILE_OF("<\n  ir_version: 7,\n  opset_import: [\"\" : 10]\n>\nagraph"),
         "ONNX's text syntax"},
        {FILE_OF("<?xml version=\"1.0\"?>\n<net name=\"n\" version=\"11\">"), "OpenVINO"},
        {FILE_OF("<!DOCTYPE html>"), "it is a text or web page"},
        {FILE_OF("{\n  \"irVersion\": \"8\",\n  \"graph\": {}}"),
         "JSON text, most likely an ONNX model"},
        {FILE_OF("{\"version\": 1}"), "it is JSON text"},
        {FILE_OF("ir_version: 8\nproducer_name: \"x\"\ngraph {\n}\n"), "text form of an ONNX"},
        {FILE_OF("hello, this is text"), "it is a text file, not protobuf"},
    };
    fixture f;
    fixture_init(&f);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        CHECK_EQ(read_as_onnx(&f, cases[k].data, cases[k].bytes), SONDE_INVALID_FORMAT);
        CHECK_HAS(f.err.message, "this is not an ONNX model: ");
        CHECK_MSG(strstr(f.err.message, cases[k].part), "case %zu: %s", k, f.err.message);
    }
    CHECK(fixture_free(&f));
}

TEST(a_broken_onnx_file_gets_the_error_of_the_onnx_reader)
{
    fixture f;
    fixture_init(&f);
    CHECK_FAILS(read_as_onnx(&f, "", 0), SONDE_INVALID_FORMAT,
                "this is not an ONNX model: it is empty");
    pb m = pb_full_model();
    CHECK_FAILS(read_as_onnx(&f, m.data, m.n - 1), SONDE_INVALID_FORMAT,
                "this is not an ONNX model: it is truncated or not protobuf");
    CHECK_FAILS(read_as_onnx(&f, "\x10\x01", 2), SONDE_INVALID_FORMAT,
                "it has no IR version and no graph");
    free(m.data);
    CHECK(fixture_free(&f));
}

/* ---- more rows than one ---- */

static bool sniff_bang(const sn_model_source *src)
{
    return src->bytes && *(const char *)src->data == '!';
}

static sonde_status read_nothing(const sn_model_source *src, sn_model *m, sonde_error *err)
{
    (void)src;
    (void)m;
    return sn_fail(err, SONDE_UNSUPPORTED, "not today");
}

static const sn_model_reader bang = {
    .name = "Bang", .suffix = ".bang", .sniff = sniff_bang, .read = read_nothing};

static const sn_model_reader *choose(const char *data, size_t bytes, const char *path,
                                     sonde_error *err)
{
    const sn_model_reader *const list[] = {&bang, &sn_model_reader_onnx};
    const sn_model_source src = {.data = data, .bytes = bytes, .path = path};
    const sn_model_reader *row = NULL;
    err->message[0] = 0;
    return sn_model_reader_choose(list, 2, &src, &row, err) == SONDE_OK ? row : NULL;
}

TEST(the_content_decides_and_the_name_only_where_it_tells_nothing)
{
    sonde_error err = {0};
    CHECK_STR(choose(FILE_OF("!"), "model.onnx", &err)->name, "Bang");
    CHECK_STR(choose(FILE_OF("\x08\x08"), "model.bang", &err)->name, "ONNX");
    CHECK_STR(choose(FILE_OF("\x08\x08\x07"), "model.onnx", &err)->name, "ONNX"); /* its error */
    CHECK_STR(choose(FILE_OF("\x07"), "model.bang", &err)->name, "Bang");
}

TEST(a_file_nobody_knows_is_told_which_formats_are_known)
{
    sonde_error err = {0};
    CHECK(!choose(FILE_OF("\x07"), "model.bin", &err));
    CHECK_STR(err.message, "the format of this file is unknown; supported formats: Bang, ONNX");
    CHECK(!choose(FILE_OF("\x07"), NULL, &err));
    CHECK_STR(err.message, "the format of this file is unknown; supported formats: Bang, ONNX");
    CHECK(!choose(FILE_OF("PK\x03\x04"), "model.onnx", &err));
    CHECK_STR(
        err.message,
        "the format of this file is unknown: it is a zip archive; supported formats: Bang, ONNX");
}

/* ---- files ---- */

TEST(a_file_is_read_and_saved_by_its_path)
{
    fixture f, g;
    char folder[200], path[240];
    snprintf(folder, sizeof folder, "%.150s/sonde_models_XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model", folder); /* no suffix: the content tells */
    fixture_init(&f);
    fixture_init(&g);
    CHECK_MSG(fixture_load(&f, pb_full_model()) == SONDE_OK, "%s", f.err.message);
    CHECK(sn_model_can_save_as("a/b.onnx") && !sn_model_can_save_as(path));
    CHECK_MSG(sn_model_save_file(f.m, f.m->graph, path, NULL, &f.err) == SONDE_OK, "%s",
              f.err.message);
    CHECK_MSG(sn_model_load_file(&g.ctx, path, NULL, &g.m, &g.err) == SONDE_OK, "%s",
              g.err.message);
    CHECK_EQ(g.m->graph->inputs.n, f.m->graph->inputs.n);
    CHECK_EQ(sn_file_write(path, "PK\x03\x04", 4, &f.err), SONDE_OK);
    sn_model_unref(g.m);
    CHECK_EQ(sn_model_load_file(&g.ctx, path, NULL, &g.m, &g.err), SONDE_INVALID_FORMAT);
    CHECK_HAS(g.err.message, folder); /* errors name the file */
    CHECK_HAS(g.err.message, "it is a zip archive");
    CHECK_EQ(sn_model_load_file(&g.ctx, folder, NULL, &g.m, &g.err), SONDE_IO);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    CHECK(fixture_free(&f) && fixture_free(&g));
}

/* ---- hostile ---- */

/* Beginnings of known files and of models, cut, joined and changed: each is read or refused with a
 * sentence, and nothing stays behind. The copy has the exact size, so that the sanitizer sees a
 * look past its end. */
TEST(no_bytes_do_harm_on_the_way_through_the_list)
{
    static const char *const heads[] = {
        "PK\x03\x04",   "\x89HDF",  "GGUF",         "<",         "{", "{\"irVersion",
        "version http", "\x1F\x8B", "\x08\x08\x3A", "ir_version"};
    pb m = pb_full_model();
    long failures = 0;
    fixture f;
    fixture_init(&f);
    for (int round = 0; round < 4000; round++) {
        pb bytes = {0};
        const char *head = heads[test_rand() % (sizeof heads / sizeof heads[0])];
        if (test_rand() % 2)
            pb_raw(&bytes, head, strlen(head) - test_rand() % 2);
        if (test_rand() % 4)
            pb_raw(&bytes, m.data, (size_t)(test_rand() % (m.n + 1)));
        for (uint64_t k = test_rand() % 4; k > 0 && bytes.n; k--)
            bytes.data[test_rand() % bytes.n] = (uint8_t)test_rand();
        const sonde_status st = fixture_load(&f, bytes);
        CHECK_MSG(st == SONDE_OK ? f.m != NULL : !f.m && f.err.message[0] && f.err.status == st,
                  "round %d: status %d, %s", round, (int)st, f.err.message);
        failures += st != SONDE_OK;
    }
    CHECK(failures > 2000);
    free(m.data);
    CHECK(fixture_free(&f));
}

TEST(looking_at_short_files_stays_inside_them)
{
    static const char all[] = "\x20\0\0\0TFL3{\"dtype\"";
    for (size_t n = 0; n <= sizeof all; n++) {
        char *exact = malloc(n ? n : 1);
        memcpy(exact, all, n);
        (void)sn_foreign_text(exact, n);
        free(exact);
    }
}

TEST_MAIN()
