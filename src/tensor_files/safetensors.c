/* SPDX-License-Identifier: Apache-2.0 */
/* .safetensors: eight bytes of header length, a JSON object that gives each tensor its type, shape
 * and byte range, then the bytes. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tensor_files/formats.h"

static const struct {
    const char *name;
    sn_dtype dtype;
} dtypes[] = {
    {"F32", SONDE_DTYPE_F32},
    {"F64", SONDE_DTYPE_F64},
    {"F16", SONDE_DTYPE_F16},
    {"BF16", SONDE_DTYPE_BF16},
    {"I8", SONDE_DTYPE_I8},
    {"I16", SONDE_DTYPE_I16},
    {"I32", SONDE_DTYPE_I32},
    {"I64", SONDE_DTYPE_I64},
    {"U8", SONDE_DTYPE_U8},
    {"U16", SONDE_DTYPE_U16},
    {"U32", SONDE_DTYPE_U32},
    {"U64", SONDE_DTYPE_U64},
    {"BOOL", SONDE_DTYPE_BOOL},
    {"F8_E4M3", SONDE_DTYPE_F8E4M3FN},
    {"F8_E5M2", SONDE_DTYPE_F8E5M2},
    {"F8_E8M0", SONDE_DTYPE_F8E8M0},
    {"C64", SONDE_DTYPE_C64},
    {"F8_E4M3FNUZ", SONDE_DTYPE_F8E4M3FNUZ},
    {"F8_E5M2FNUZ", SONDE_DTYPE_F8E5M2FNUZ},
    /* Written only: files hold sub-byte integers as bytes. */
    {"I8", SONDE_DTYPE_I4},
    {"I8", SONDE_DTYPE_I2},
    {"U8", SONDE_DTYPE_U4},
    {"U8", SONDE_DTYPE_U2},
};

/* ---- reading ---- */

typedef struct entry {
    const char *name;
    bool has_dtype, has_shape, has_offsets;
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    int64_t begin, end;
} entry;

/* What is wrong in the header as a whole: where it is no JSON. */
static sonde_status broken_header(const sn_json *j, sonde_error *err)
{
    const sonde_status st = sn_json_status(j, err);
    if (st == SONDE_INVALID_ARGUMENT)
        sn_error_prefix(err, "the header is invalid");
    return st;
}

static sonde_status broken(const sn_json *j, const entry *e, sonde_error *err)
{
    if (sn_json_status(j, err) == SONDE_OUT_OF_MEMORY)
        return SONDE_OUT_OF_MEMORY;
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "the entry of tensor '%.200s' in the header is invalid", e->name);
}

static sonde_status parse_dtype(sn_json *j, entry *e, sonde_error *err)
{
    sn_json_text s;
    if (!sn_json_string(j, &s))
        return broken(j, e, err);
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++)
        if (sn_json_is(s, dtypes[k].name)) {
            e->dtype = dtypes[k].dtype;
            e->has_dtype = true;
            return SONDE_OK;
        }
    return sn_fail(err, SONDE_UNSUPPORTED, "tensor '%.200s' has the unknown dtype '%.*s'", e->name,
                   (int)(s.n > 40 ? 40 : s.n), s.data);
}

/* A list of at most `most` whole numbers, none of them negative. */
static bool parse_numbers(sn_json *j, int64_t *out, int most, int *n)
{
    *n = 0;
    if (!sn_json_array(j))
        return false;
    while (sn_json_item(j)) {
        sn_json_num v;
        if (*n == most || !sn_json_number(j, &v) || v.negative || v.exponent ||
            v.digits > INT64_MAX)
            return false;
        out[(*n)++] = (int64_t)v.digits;
    }
    return !j->problem;
}

static sonde_status parse_entry(sn_json *j, entry *e, sonde_error *err)
{
    sn_json_text key;
    for (sn_json_object(j); sn_json_member(j, &key);) {
        if (sn_json_is(key, "dtype")) {
            SN_TRY(parse_dtype(j, e, err));
        } else if (sn_json_is(key, "shape")) {
            e->has_shape = parse_numbers(j, e->dims, SN_MAX_RANK, &e->rank);
            if (!e->has_shape)
                return broken(j, e, err);
        } else if (sn_json_is(key, "data_offsets")) {
            int64_t range[2];
            int n;
            if (!parse_numbers(j, range, 2, &n) || n != 2)
                return broken(j, e, err);
            e->begin = range[0], e->end = range[1];
            e->has_offsets = true;
        } else {
            sn_json_skip(j);
        }
    }
    if (j->problem || !e->has_dtype || !e->has_shape || !e->has_offsets)
        return broken(j, e, err);
    return SONDE_OK;
}

static sonde_status add_tensor(const entry *e, const uint8_t *data, size_t bytes, size_t *spent,
                               const sn_type *as, sn_named_list *out, sonde_error *err)
{
    size_t need;
    if (!sn_tensor_bytes(e->dtype, e->dims, e->rank, &need))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "tensor '%.200s' is too large for memory",
                       e->name);
    if (e->begin > e->end || (uint64_t)e->end > bytes || (size_t)(e->end - e->begin) != need)
        return sn_fail(
            err, SONDE_INVALID_ARGUMENT,
            "tensor '%.200s' has bytes %lld to %lld of %zu, but its type and shape need %zu",
            e->name, (long long)e->begin, (long long)e->end, bytes, need);
    /* Tensors do not overlap, so together they are no larger than the file. */
    if (!sn_size_add(*spent, need, spent) || *spent > bytes)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "tensors overlap");
    if (!sn_named_wants(out, e->name, e->dims, e->rank))
        return SONDE_OK;
    sn_slot slot = {0};
    SN_TRY(sn_slot_new_tensor(&slot, e->dtype, e->dims, e->rank, out->alloc, err));
    if (need)
        memcpy(slot.t.data, data + e->begin, need);
    if (e->dtype == SONDE_DTYPE_BOOL)
        for (size_t i = 0; i < need; i++)
            ((uint8_t *)slot.t.data)[i] = ((const uint8_t *)slot.t.data)[i] != 0;
    sonde_status st = sn_narrow_elements(&slot, as, err);
    if (st == SONDE_OK)
        st = sn_named_add(out, e->name, &slot, err);
    sn_slot_clear(&slot);
    return st;
}

/* One member of the header: a tensor, or metadata, which is skipped. */
static sonde_status read_member(sn_json *j, sn_json_text key, const uint8_t *data, size_t bytes,
                                size_t *spent, const sn_type *as, sn_named_list *out,
                                sonde_error *err)
{
    if (sn_json_is(key, "__metadata__")) {
        if (sn_json_skip(j))
            return SONDE_OK;
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the metadata in the header is invalid");
    }
    if (j->zero)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a name contains a zero byte");
    entry e = {.name = sn_arena_strndup(&out->arena, key.data, key.n)};
    if (!e.name)
        return sn_fail_memory(err, key.n + 1);
    SN_TRY(parse_entry(j, &e, err));
    return add_tensor(&e, data, bytes, spent, as, out, err);
}

sonde_status sn_safetensors_read(const uint8_t *data, size_t bytes, const sn_type *as,
                                 sn_named_list *out, sonde_error *err)
{
    if (bytes < 8 || sn_get_le(data, 8) > bytes - 8)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "this is not a .safetensors file: its header is truncated");
    size_t header = (size_t)sn_get_le(data, 8), spent = 0;
    sn_json j;
    sn_json_text key;
    sn_json_init(&j, data + 8, header, &out->arena);
    data += 8 + header;
    bytes -= 8 + header;
    if (j.at != j.start || sn_json_peek(&j) != SN_JSON_OBJECT) /* a byte order mark is no object */
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "this is not a .safetensors file: its header is not a JSON object");
    for (sn_json_object(&j); sn_json_member(&j, &key); j.zero = false)
        SN_TRY(read_member(&j, key, data, bytes, &spent, as, out, err));
    return broken_header(&j, err);
}

/* ---- writing ---- */

static void put_text(sn_bytes *b, const char *s)
{
    sn_bytes_put(b, s, strlen(s));
}

static void put_string(sn_bytes *b, const char *s)
{
    put_text(b, "\"");
    for (; *s; s++) {
        char code[8];
        if (*s == '"' || *s == '\\') {
            char pair[2] = {'\\', *s};
            sn_bytes_put(b, pair, 2);
        } else if ((unsigned char)*s < 0x20) {
            snprintf(code, sizeof code, "\\u%04x", (unsigned)*s);
            put_text(b, code);
        } else {
            sn_bytes_put(b, s, 1);
        }
    }
    put_text(b, "\"");
}

static sonde_status put_entry(sn_bytes *b, const sn_named *n, size_t k, size_t begin,
                              sonde_error *err)
{
    char text[64];
    const char *dtype = NULL;
    if (n->slot.kind != SN_KIND_TENSOR || !sn_tensor_is_plain(&n->slot.t))
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "'%.200s' is not a plain tensor; write a folder of .pb files", n->name);
    const sn_tensor *t = &n->slot.t;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0] && !dtype; i++)
        dtype = dtypes[i].dtype == t->dtype ? dtypes[i].name : NULL;
    if (!dtype)
        return sn_fail(
            err, SONDE_UNSUPPORTED,
            "'%.200s' is a tensor of %s, which .safetensors has no name for; use .npz or a "
            "folder of .pb files",
            n->name, sn_dtype_onnx_name(t->dtype));
    snprintf(text, sizeof text, "arr_%zu", k);
    put_text(b, k ? "," : "");
    put_string(b, n->name[0] ? n->name : text);
    put_text(b, ":{\"dtype\":\"");
    put_text(b, dtype);
    put_text(b, "\",\"shape\":[");
    for (int i = 0; i < t->rank; i++) {
        snprintf(text, sizeof text, "%s%lld", i ? "," : "", (long long)t->dims[i]);
        put_text(b, text);
    }
    snprintf(text, sizeof text, "],\"data_offsets\":[%zu,%zu]}", begin, begin + t->bytes);
    put_text(b, text);
    return SONDE_OK;
}

sonde_status sn_safetensors_write(const sn_named_list *l, sn_bytes *out, sonde_error *err)
{
    size_t begin = 0;
    sn_bytes_le(out, 0, 8); /* filled in below */
    put_text(out, "{");
    for (size_t k = 0; k < l->list.n; k++) {
        SN_TRY(put_entry(out, &l->list.data[k], k, begin, err));
        begin += l->list.data[k].slot.t.bytes;
    }
    put_text(out, "}");
    while (out->v.n % 8 && !out->failed)
        put_text(out, " ");
    if (out->failed)
        return sn_fail_memory(err, out->v.n);
    uint64_t header = out->v.n - 8;
    memcpy(out->v.data, &header, 8);
    for (size_t k = 0; k < l->list.n; k++)
        sn_bytes_put(out, l->list.data[k].slot.t.data, l->list.data[k].slot.t.bytes);
    return SONDE_OK;
}

const sn_tensor_format sn_tensor_format_safetensors = {".safetensors", sn_safetensors_read,
                                                       sn_safetensors_write};
