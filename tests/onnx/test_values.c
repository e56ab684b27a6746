/* SPDX-License-Identifier: Apache-2.0 */
/* Test data: values go to bytes and come back the same; wrong bytes get a sentence. */
#include "proto.h"

static bool append(void *user, const void *data, size_t bytes)
{
    pb_raw(user, data, bytes);
    return true;
}

static bool same(const sn_slot *a, const sn_slot *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == SN_KIND_TENSOR) {
        if (a->t.dtype != b->t.dtype || a->t.rank != b->t.rank || a->t.bytes != b->t.bytes ||
            memcmp(a->t.dims, b->t.dims, (size_t)a->t.rank * 8))
            return false;
        if (a->t.dtype != SONDE_DTYPE_STRING)
            return memcmp(a->t.data, b->t.data, a->t.bytes) == 0;
        const sonde_string *s = a->t.data, *t = b->t.data;
        for (int64_t i = 0; i < sn_tensor_count(&a->t); i++)
            if (s[i].size != t[i].size || memcmp(s[i].data, t[i].data, s[i].size))
                return false;
        return true;
    }
    if (a->list->n != b->list->n)
        return false;
    for (size_t i = 0; i < a->list->n; i++)
        if (!same(&a->list->items[i], &b->list->items[i]))
            return false;
    return true;
}

/* Writes v, reads it back and compares; the bytes are also cut at every place. Clears v. */
static bool returns(sn_slot *v, fixture *f)
{
    pb bytes = {0};
    sn_slot back = {0};
    sn_arena names;
    const char *name = NULL;
    sn_type as = {.kind = v->kind, .rank = -1};
    sn_arena_init(&names, &f->alloc);
    bool ok = sn_onnx_write_value(v, "value", append, &bytes, &f->err) == SONDE_OK &&
              sn_onnx_read_value(bytes.data, bytes.n, &as, &f->alloc, &back, &name, &names,
                                 &f->err) == SONDE_OK &&
              same(v, &back) && strcmp(name, "value") == 0;
    for (size_t n = 0; n < bytes.n; n++) {
        uint8_t *exact = malloc(n + 1);
        memcpy(exact, bytes.data, n);
        if (sn_onnx_read_value(exact, n, &as, &f->alloc, &back, NULL, NULL, &f->err) == SONDE_OK)
            sn_slot_clear(&back);
        free(exact);
    }
    sn_slot_clear(&back);
    sn_slot_clear(v);
    sn_arena_free(&names);
    free(bytes.data);
    return ok;
}

static sn_slot tensor(fixture *f, sn_dtype dtype, int rank, const int64_t *dims)
{
    sn_slot s = {0};
    if (sn_slot_new_tensor(&s, dtype, dims, rank, &f->alloc, &f->err) != SONDE_OK)
        abort();
    unsigned bits = sn_dtype_bits(dtype);
    for (size_t i = 0; i < s.t.bytes && dtype != SONDE_DTYPE_STRING; i++) {
        uint8_t v = (uint8_t)test_rand();
        if (dtype == SONDE_DTYPE_BOOL)
            v &= 1;
        else if (bits < 8) {
            v &= (uint8_t)((1u << bits) - 1);
            if ((dtype == SONDE_DTYPE_I4 || dtype == SONDE_DTYPE_I2) && v >> (bits - 1))
                v |= (uint8_t)(0xFFu << bits);
        }
        ((uint8_t *)s.t.data)[i] = v;
    }
    return s;
}

TEST(tensors_of_every_element_type_return)
{
    fixture f;
    int64_t dims[] = {3, 1, 3};
    fixture_init(&f);
    for (int t = 1; t < SONDE_DTYPE_COUNT; t++) {
        sn_slot s = tensor(&f, (sn_dtype)t, 3, dims);
        CHECK_MSG(returns(&s, &f), "%s: %s", sn_dtype_name((sn_dtype)t), f.err.message);
        s = tensor(&f, (sn_dtype)t, 0, NULL);
        CHECK_MSG(returns(&s, &f), "%s: %s", sn_dtype_name((sn_dtype)t), f.err.message);
    }
    sonde_string words[] = {{"one", 3}, {"", 0}, {"a\0b", 3}};
    int64_t three = 3;
    sn_slot s = {0};
    CHECK_EQ(sn_slot_new_strings(&s, &three, 1, words, &f.alloc, &f.err), SONDE_OK);
    CHECK(returns(&s, &f));
    CHECK(fixture_free(&f));
}

static sn_slot list(fixture *f, sn_kind kind, size_t n, sn_slot *items)
{
    sn_list *l = sn_list_new(&f->alloc, n);
    for (size_t i = 0; i < n; i++) {
        if (sn_list_push(l, &items[i], &f->err) != SONDE_OK)
            abort();
        sn_slot_clear(&items[i]);
    }
    return (sn_slot){.kind = kind, .list = l};
}

TEST(sequences_optionals_and_maps_return)
{
    fixture f;
    int64_t dims[] = {2, 2}, three = 3;
    fixture_init(&f);
    sn_slot items[3] = {tensor(&f, SONDE_DTYPE_F32, 2, dims), tensor(&f, SONDE_DTYPE_F32, 1, dims),
                        tensor(&f, SONDE_DTYPE_F32, 0, NULL)};
    sn_slot seq = list(&f, SN_KIND_SEQUENCE, 3, items), empty = list(&f, SN_KIND_SEQUENCE, 0, NULL);
    sn_slot opt = list(&f, SN_KIND_OPTIONAL, 1, &seq), none = list(&f, SN_KIND_OPTIONAL, 0, NULL);
    CHECK_MSG(returns(&opt, &f), "%s", f.err.message);
    CHECK_MSG(returns(&empty, &f), "%s", f.err.message);
    CHECK_MSG(returns(&none, &f), "%s", f.err.message);
    sn_slot nested[2] = {list(&f, SN_KIND_SEQUENCE, 0, NULL), list(&f, SN_KIND_SEQUENCE, 0, NULL)};
    seq = list(&f, SN_KIND_SEQUENCE, 2, nested);
    CHECK_MSG(returns(&seq, &f), "%s", f.err.message);

    sn_slot parts[2] = {tensor(&f, SONDE_DTYPE_I64, 1, &three),
                        tensor(&f, SONDE_DTYPE_F32, 1, &three)};
    sn_slot map = list(&f, SN_KIND_MAP, 2, parts);
    CHECK_MSG(returns(&map, &f), "%s", f.err.message);
    sonde_string words[] = {{"one", 3}, {"two", 3}, {"three", 5}};
    CHECK_EQ(sn_slot_new_strings(&parts[0], &three, 1, words, &f.alloc, &f.err), SONDE_OK);
    items[0] = tensor(&f, SONDE_DTYPE_F32, 2, dims);
    items[1] = tensor(&f, SONDE_DTYPE_F32, 1, dims);
    items[2] = tensor(&f, SONDE_DTYPE_F32, 0, NULL);
    parts[1] = list(&f, SN_KIND_SEQUENCE, 3, items);
    map = list(&f, SN_KIND_MAP, 2, parts);
    CHECK_MSG(returns(&map, &f), "%s", f.err.message);
    parts[0] = tensor(&f, SONDE_DTYPE_I16, 1, &three);
    parts[1] = tensor(&f, SONDE_DTYPE_F64, 1, &three);
    map = list(&f, SN_KIND_MAP, 2, parts);
    CHECK_MSG(returns(&map, &f), "%s", f.err.message);
    CHECK(fixture_free(&f));
}

TEST(wrong_values_get_a_sentence)
{
    fixture f;
    sn_slot s = {0};
    sn_type optional = {.kind = SN_KIND_OPTIONAL}, map = {.kind = SN_KIND_MAP};
    fixture_init(&f);
    CHECK_FAILS(sn_onnx_read_value("", 0, NULL, &f.alloc, &s, NULL, NULL, &f.err),
                SONDE_INVALID_MODEL, "unknown dtype 0");
    pb b = {0};
    for (int k = 0; k < 2; k++)
        pb_msg(&b, 3, pb_tensor_raw("", SONDE_DTYPE_U8, 0, NULL, "x", 1));
    CHECK_FAILS(sn_onnx_read_value(b.data, b.n, &optional, &f.alloc, &s, NULL, NULL, &f.err),
                SONDE_INVALID_MODEL, "more than one");
    free(b.data);
    b = (pb){0};
    pb_int(&b, 2, SONDE_DTYPE_I64);
    pb_int(&b, 3, 1);
    CHECK_FAILS(sn_onnx_read_value(b.data, b.n, &map, &f.alloc, &s, NULL, NULL, &f.err),
                SONDE_INVALID_MODEL, "1 keys but 0 values");
    free(b.data);
    b = (pb){0};
    for (int depth = 0; depth < 1000; depth++) {
        pb outer = {0};
        pb_msg(&outer, 7, b);
        b = outer;
    }
    CHECK_FAILS(sn_onnx_read_value(b.data, b.n, &optional, &f.alloc, &s, NULL, NULL, &f.err),
                SONDE_LIMIT, "nested deeper");
    free(b.data);
    CHECK_EQ(sn_onnx_write_value(&s, "absent", append, NULL, &f.err), SONDE_INVALID_ARGUMENT);
    CHECK(fixture_free(&f));
}

TEST_MAIN()
