/* SPDX-License-Identifier: Apache-2.0 */
/* The pprof profile, read back field by field: totals, stacks, labels; and the writer of messages.
 */
#include "base/crc32.h"
#include "export/proto.h"
#include "export/sparse_profile.h"
#include "test.h"

static const sn_exporter *pprof(void)
{
    return sn_exporter_for_path("x.pb.gz");
}

/* ------------------------------------------------------------------ reading messages */
typedef struct field {
    uint32_t number;
    unsigned wire;
    uint64_t value; /* of a varint; the length otherwise */
    const char *data;
} field;

static uint64_t varint(const char **at)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const unsigned char c = (unsigned char)*(*at)++;
        v |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80)
            break;
    }
    return v;
}

static bool next_field(const char **at, const char *end, field *f)
{
    if (*at >= end)
        return false;
    const uint64_t tag = varint(at);
    f->number = (uint32_t)(tag >> 3);
    f->wire = (unsigned)(tag & 7);
    f->value = f->wire == 1 ? 8 : varint(at);
    f->data = *at;
    if (f->wire != 0)
        *at += f->value;
    return *at <= end;
}

typedef struct profile {
    char *bytes;
    size_t n;
    field strings[128], functions[128], samples[64];
    int n_strings, n_functions, n_samples, n_locations, n_types, n_comments;
    uint64_t duration;
} profile;

static bool read_profile(profile *p, const memory_sink *file)
{
    memset(p, 0, sizeof *p);
    size_t used = 0;
    if (file->n < 18 || memcmp(file->text, "\x1F\x8B\x08", 3) != 0)
        return false;
    p->bytes = stored_content(file->text + 10, file->n - 10, &used, &p->n);
    if (!p->bytes || 10 + used + 8 != file->n ||
        little(file->text + 10 + used, 4) != sn_crc32(0, p->bytes, p->n) ||
        little(file->text + 14 + used, 4) != p->n)
        return false;
    const char *at = p->bytes;
    for (field f; next_field(&at, p->bytes + p->n, &f);) {
        p->n_types += f.number == 1;
        p->n_locations += f.number == 4;
        p->n_comments += f.number == 13;
        if (f.number == 2)
            p->samples[p->n_samples++] = f;
        if (f.number == 5)
            p->functions[p->n_functions++] = f;
        if (f.number == 6)
            p->strings[p->n_strings++] = f;
        if (f.number == 10)
            p->duration = f.value;
    }
    return true;
}

static bool string_is(const profile *p, uint64_t index, const char *text)
{
    return index < (uint64_t)p->n_strings && p->strings[index].value == strlen(text) &&
           memcmp(p->strings[index].data, text, strlen(text)) == 0;
}

/* Whether function `id` (they are written in order) is called that and of that kind. */
static bool function_is(const profile *p, uint64_t id, const char *kind, const char *name)
{
    if (id < 1 || id > (uint64_t)p->n_functions)
        return false;
    const field *fn = &p->functions[id - 1];
    const char *at = fn->data;
    bool named = false, of_kind = false;
    for (field f; next_field(&at, fn->data + fn->value, &f);) {
        named |= f.number == 2 && string_is(p, f.value, name);
        of_kind |= f.number == 4 && string_is(p, f.value, kind);
    }
    return named && of_kind;
}

static int packed(const field *f, uint64_t *to)
{
    int n = 0;
    for (const char *at = f->data; at < f->data + f->value;)
        to[n++] = varint(&at);
    return n;
}

/* ------------------------------------------------------------------ tests */
TEST(totals_are_those_of_the_summary)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    profile r;
    sn_profile *p = sparse_profile(failing_init(&m));
    CHECK_OK(pprof()->write(p, memory_sink_init(&out), &err));
    CHECK(read_profile(&r, &out));
    CHECK_EQ(r.n_types, 4);
    CHECK_EQ(r.n_samples, 7); /* five steps, memory, the rest; nothing for what was folded away */
    CHECK_EQ(r.n_locations, r.n_functions);
    CHECK_EQ(r.duration, 24 * MS);
    CHECK_EQ(r.n_comments, 4); /* program, machine, precision, runs */
    CHECK(string_is(&r, 0, ""));
    uint64_t sums[4] = {0};
    for (int i = 0; i < r.n_samples; i++) {
        const char *at = r.samples[i].data;
        for (field f; next_field(&at, r.samples[i].data + r.samples[i].value, &f);) {
            uint64_t values[8];
            if (f.number == 2) {
                CHECK_EQ(packed(&f, values), 4);
                for (int k = 0; k < 4; k++)
                    sums[k] += values[k];
            }
        }
    }
    CHECK_EQ(sums[0], 24 * MS);
    CHECK_EQ(sums[1], 2 * 5 + 2 + 2);
    CHECK_EQ(sums[2], 10 * 1000000);
    CHECK_EQ(sums[3], 10 * 2000);
    free(r.bytes);
    free(out.text);
    sn_profile_free(p);
}

TEST(stacks_lead_from_the_kernel_to_the_model)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    profile r;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->steps.data[1].name = "Conv"; /* as the operator is called */
    CHECK_OK(pprof()->write(p, memory_sink_init(&out), &err));
    CHECK(read_profile(&r, &out));
    uint64_t stack[8];
    const char *at = r.samples[0].data; /* the longest: the Conv */
    int labels = 0;
    for (field f; next_field(&at, r.samples[0].data + r.samples[0].value, &f);) {
        if (f.number == 1)
            CHECK_EQ(packed(&f, stack), 4);
        const char *inside = f.data;
        uint64_t key = 0, text = 0;
        for (field g; f.number == 3 && next_field(&inside, f.data + f.value, &g);)
            *(g.number == 1 ? &key : &text) = g.value;
        if (f.number == 3) {
            labels++;
            CHECK(string_is(&r, key, "shape")        ? string_is(&r, text, "1x3x4x4;2x3x1x1;")
                  : string_is(&r, key, "arithmetic") ? string_is(&r, text, "f32")
                                                     : string_is(&r, text, "Add+Relu"));
        }
    }
    CHECK_EQ(labels, 3);
    CHECK(function_is(&r, stack[0], "kernel", "f32_conv1x1_avx2"));
    CHECK(function_is(&r, stack[1], "node", "conv1"));
    CHECK(function_is(&r, stack[2], "operator", "Conv"));
    CHECK(function_is(&r, stack[3], "model", "tiny"));
    bool node_of_that_name = false;
    for (int i = 1; i <= r.n_functions; i++)
        node_of_that_name |= function_is(&r, (uint64_t)i, "node", "Conv");
    CHECK(node_of_that_name);
    free(r.bytes);
    free(out.text);
    sn_profile_free(p);
}

TEST(every_refused_write_is_reported)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink whole;
    sn_profile *p = sparse_profile(failing_init(&m));
    CHECK_OK(pprof()->write(p, memory_sink_init(&whole), &err));
    for (size_t limit = 0; limit < whole.n; limit += 61) {
        memory_sink out;
        memory_sink_init(&out);
        out.limit = limit;
        CHECK_EQ(pprof()->write(p, &out.sink, &err), SONDE_IO);
        free(out.text);
    }
    sn_profile_free(p);
    free(whole.text);
}

TEST(messages_have_the_shortest_wire_form)
{
    failing_alloc m;
    sn_proto p;
    sn_proto_init(&p, failing_init(&m));
    sn_proto_varint(&p, 1, 150);
    sn_proto_int64(&p, 2, -1);
    sn_proto_fixed64(&p, 3, 0x0102030405060708u);
    sn_proto_double(&p, 4, 1.0);
    sn_proto_bytes(&p, 5, "ab", 2);
    static const char expected[] = "\x08\x96\x01"
                                   "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                   "\x19\x08\x07\x06\x05\x04\x03\x02\x01"
                                   "\x21\x00\x00\x00\x00\x00\x00\xf0\x3f"
                                   "\x2a\x02"
                                   "ab";
    CHECK_EQ(p.bytes.n, sizeof expected - 1);
    CHECK(memcmp(p.bytes.data, expected, p.bytes.n) == 0);
    sn_proto_reset(&p);
    sn_proto_text(&p, 1, "a\xff\xC3\xA9");
    CHECK_EQ(p.bytes.n, 2 + 6);
    CHECK(memcmp(p.bytes.data,
                 "\x0a\x06"
                 "a\xEF\xBF\xBD\xC3\xA9",
                 8) == 0);
    CHECK(!p.failed);
    sn_proto_free(&p);
    CHECK_EQ(m.live, 0);
}

TEST(nested_messages_of_any_size_get_their_length)
{
    const size_t sizes[] = {0, 1, 127, 128, 16383, 16384};
    char text[16384];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        failing_alloc m;
        sn_proto p;
        sn_proto_init(&p, failing_init(&m));
        const size_t outer = sn_proto_begin(&p, 3), inner = sn_proto_begin(&p, 4);
        sn_proto_bytes(&p, 5, text, sizes[i]);
        sn_proto_end(&p, inner);
        sn_proto_end(&p, outer);
        sn_proto_varint(&p, 6, 7);
        const char *at = (const char *)p.bytes.data, *end = at + p.bytes.n;
        field f, g, h, last;
        CHECK(next_field(&at, end, &f) && f.number == 3);
        const char *in = f.data;
        CHECK(next_field(&in, f.data + f.value, &g) && g.number == 4);
        CHECK(in == f.data + f.value);
        in = g.data;
        CHECK(next_field(&in, g.data + g.value, &h) && h.number == 5);
        CHECK_EQ(h.value, sizes[i]);
        CHECK(memcmp(h.data, text, sizes[i]) == 0);
        CHECK(next_field(&at, end, &last) && last.number == 6 && last.value == 7 && at == end);
        sn_proto_free(&p);
    }
}

TEST(a_message_without_memory_fails_quietly_and_for_good)
{
    failing_alloc m;
    sn_proto p;
    sn_proto_init(&p, failing_init(&m));
    m.fail_at = 0;
    const size_t mark = sn_proto_begin(&p, 1);
    sn_proto_text(&p, 2, "text");
    sn_proto_end(&p, mark);
    m.fail_at = -1;
    sn_proto_varint(&p, 3, 1);
    CHECK(p.failed);
    CHECK_EQ(p.bytes.n, 0);
    sn_proto_free(&p);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
