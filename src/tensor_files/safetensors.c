/* SPDX-License-Identifier: Apache-2.0 */
/* .safetensors: eight bytes of header length, a JSON object that gives each tensor its type, shape
 * and byte range, then the bytes. The JSON is read by a small parser that knows only what may stand
 * there and skips the rest, to a bounded depth. */
#include <stdio.h>
#include <string.h>

#include "tensor_files/formats.h"
#include "tensor_files/text.h"

#define MAX_DEPTH 32

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

/* ---- JSON ---- */

/* Steps over a string; *body is what stands between the quotes, escapes and all. */
static bool skip_string(sn_text *j, sn_text *body)
{
    if (!sn_text_take(j, '"'))
        return false;
    body->at = j->at;
    for (; j->at < j->end && *j->at != '"'; j->at++)
        if (*j->at == '\\' && ++j->at == j->end)
            return false;
    if (j->at == j->end)
        return false;
    body->end = j->at++;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four digits of \uXXXX; -1 when there are none. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* A \u escape at *p (behind the u), maybe a pair of them, as UTF-8 at dst; returns the end or NULL.
 */
static char *unescape_unicode(const char **p, const char *end, char *dst)
{
    int32_t c = hex4(*p, end);
    if (c < 0)
        return NULL;
    *p += 4;
    if (c >= 0xD800 && c < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        int32_t low = hex4(*p + 2, end);
        if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            *p += 6;
        }
    }
    return sn_utf8_put(dst, (uint32_t)c);
}

/* The text of a string body, never longer than the body itself. */
static sonde_status unescape(sn_text body, sn_arena *arena, const char **out, sonde_error *err)
{
    size_t room = (size_t)(body.end - body.at) + 1;
    char *text = sn_arena_alloc(arena, room, 1), *dst = text;
    if (!text)
        return sn_fail_memory(err, room);
    for (const char *p = body.at; p < body.end;) {
        if (*p != '\\') {
            *dst++ = *p++;
            continue;
        }
        static const char codes[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
        char c = p[1]; /* skip_string saw to it that something follows */
        const char *known = c ? strchr(codes, c) : NULL;
        p += 2;
        if (known)
            *dst++ = plain[known - codes];
        else if (c != 'u' || !(dst = unescape_unicode(&p, body.end, dst)))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the header has a broken string");
    }
    if (memchr(text, 0, (size_t)(dst - text)))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a name contains a zero byte");
    *out = text;
    return SONDE_OK;
}

/* Steps over any value. Brackets are counted, not matched one by one: what is skipped need not be
 * valid, only bounded. */
static bool skip_value(sn_text *j)
{
    int depth = 0;
    do {
        sn_text ignored;
        sn_text_space(j);
        if (j->at == j->end)
            return false;
        char c = *j->at;
        if (c == '"') {
            if (!skip_string(j, &ignored))
                return false;
        } else if (c == '{' || c == '[') {
            j->at++;
            if (++depth > MAX_DEPTH)
                return false;
        } else if (c == '}' || c == ']') {
            if (depth-- == 0)
                return false;
            j->at++;
        } else if (c == ',' || c == ':') {
            if (!depth)
                return false;
            j->at++;
        } else {
            const char *start = j->at;
            while (j->at < j->end && !strchr(" \t\r\n,:{}[]\"", *j->at))
                j->at++;
            if (j->at == start)
                return false;
        }
    } while (depth);
    return true;
}

/* ---- reading ---- */

typedef struct entry {
    const char *name;
    bool has_dtype, has_shape, has_offsets;
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    int64_t begin, end;
} entry;

static sonde_status broken(const entry *e, sonde_error *err)
{
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "the entry of tensor '%.200s' in the header is broken", e->name);
}

static sonde_status parse_dtype(sn_text *j, entry *e, sonde_error *err)
{
    sn_text s;
    if (!skip_string(j, &s))
        return broken(e, err);
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++)
        if (sn_text_is(&s, dtypes[k].name)) {
            e->dtype = dtypes[k].dtype;
            e->has_dtype = true;
            return SONDE_OK;
        }
    return sn_fail(err, SONDE_UNSUPPORTED, "tensor '%.200s' has type '%.*s', which is not known",
                   e->name, (int)(s.end - s.at > 40 ? 40 : s.end - s.at), s.at);
}

/* A list of at most `most` numbers. */
static bool parse_numbers(sn_text *j, int64_t *out, int most, int *n)
{
    *n = 0;
    if (!sn_text_take(j, '['))
        return false;
    if (sn_text_take(j, ']'))
        return true;
    do {
        if (*n == most || !sn_text_number(j, &out[*n]))
            return false;
        ++*n;
    } while (sn_text_take(j, ','));
    return sn_text_take(j, ']');
}

static sonde_status parse_entry(sn_text *j, entry *e, sonde_error *err)
{
    if (!sn_text_take(j, '{'))
        return broken(e, err);
    if (sn_text_take(j, '}'))
        return broken(e, err);
    do {
        sn_text key;
        if (!skip_string(j, &key) || !sn_text_take(j, ':'))
            return broken(e, err);
        if (sn_text_is(&key, "dtype")) {
            SN_TRY(parse_dtype(j, e, err));
        } else if (sn_text_is(&key, "shape")) {
            e->has_shape = parse_numbers(j, e->dims, SN_MAX_RANK, &e->rank);
            if (!e->has_shape)
                return broken(e, err);
        } else if (sn_text_is(&key, "data_offsets")) {
            int64_t range[2];
            int n;
            if (!parse_numbers(j, range, 2, &n) || n != 2)
                return broken(e, err);
            e->begin = range[0], e->end = range[1];
            e->has_offsets = true;
        } else if (!skip_value(j)) {
            return broken(e, err);
        }
    } while (sn_text_take(j, ','));
    if (!sn_text_take(j, '}') || !e->has_dtype || !e->has_shape || !e->has_offsets)
        return broken(e, err);
    return SONDE_OK;
}

static sonde_status add_tensor(const entry *e, const uint8_t *data, size_t bytes, size_t *spent,
                               const sn_type *as, sn_named_list *out, sonde_error *err)
{
    size_t need;
    if (!sn_tensor_bytes(e->dtype, e->dims, e->rank, 0, &need))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "tensor '%.200s' has a shape too large for any memory", e->name);
    if (e->begin > e->end || (uint64_t)e->end > bytes || (size_t)(e->end - e->begin) != need)
        return sn_fail(
            err, SONDE_INVALID_ARGUMENT,
            "tensor '%.200s' has bytes %lld to %lld of %zu, but its type and shape need %zu",
            e->name, (long long)e->begin, (long long)e->end, bytes, need);
    /* Tensors do not overlap, so together they are no larger than the file. */
    if (!sn_size_add(*spent, need, spent) || *spent > bytes)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "tensors overlap");
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

sonde_status sn_safetensors_read(const uint8_t *data, size_t bytes, const sn_type *as,
                                 sn_named_list *out, sonde_error *err)
{
    if (bytes < 8 || sn_get_le(data, 8) > bytes - 8)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "this is not a .safetensors file: its header is cut short");
    size_t header = (size_t)sn_get_le(data, 8), spent = 0;
    sn_text j = {(const char *)data + 8, (const char *)data + 8 + header};
    data += 8 + header;
    bytes -= 8 + header;
    if (!sn_text_take(&j, '{'))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "this is not a .safetensors file: its header is no JSON object");
    if (sn_text_take(&j, '}'))
        return SONDE_OK;
    do {
        sn_text key;
        entry e = {.name = ""};
        if (!skip_string(&j, &key) || !sn_text_take(&j, ':'))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the header is broken");
        if (sn_text_is(&key, "__metadata__")) {
            if (!skip_value(&j))
                return sn_fail(err, SONDE_INVALID_ARGUMENT, "the metadata in the header is broken");
            continue;
        }
        SN_TRY(unescape(key, &out->arena, &e.name, err));
        SN_TRY(parse_entry(&j, &e, err));
        SN_TRY(add_tensor(&e, data, bytes, &spent, as, out, err));
    } while (sn_text_take(&j, ','));
    return sn_text_take(&j, '}') ? SONDE_OK
                                 : sn_fail(err, SONDE_INVALID_ARGUMENT, "the header is cut short");
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
    if (n->slot.kind != SN_KIND_TENSOR || n->slot.t.block || n->slot.t.pack)
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
