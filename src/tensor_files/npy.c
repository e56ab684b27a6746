/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy, versions 1 to 3: a magic, a Python dictionary that says type, order and shape, then
 * the elements. Element types NumPy has no name for travel as void ("V2" is bfloat16, as ml_dtypes
 * writes it); sub-byte ones as bytes. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "tensor_files/formats.h"
#include "tensor_files/npy_text.h"

typedef struct npy_header {
    char kind; /* as in NumPy's array interface: f i u b c V S U */
    char order;
    uint64_t size; /* bytes of an element; U: characters of four bytes */
    bool fortran;
    int rank;
    int64_t dims[SN_MAX_RANK];
    bool has_descr, has_order, has_shape;
} npy_header;

/* ---- the dictionary ---- */

/* A quoted string without escapes, which is all NumPy writes here. */
static bool take_string(sn_npy_text *t, sn_npy_text *out)
{
    sn_npy_text_space(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    char quote = *t->at++;
    out->at = t->at;
    while (t->at < t->end && *t->at != quote)
        t->at++;
    if (t->at == t->end)
        return false;
    out->end = t->at++;
    return true;
}

static sonde_status parse_descr(sn_npy_text *t, npy_header *h, sonde_error *err)
{
    sn_npy_text s;
    if (!take_string(t, &s))
        return sn_fail(err, SONDE_UNSUPPORTED, "the array has named fields, which are not tensors");
    h->order = '|';
    if (s.at < s.end && strchr("<>|=", *s.at))
        h->order = *s.at++;
    if (s.at == s.end)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the header has no dtype");
    h->kind = *s.at++;
    int64_t size = 0;
    if (h->kind == 'O')
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "the array contains Python objects, which are not tensors");
    if (!sn_npy_text_number(&s, &size) || s.at != s.end)
        return sn_fail(err, SONDE_UNSUPPORTED, "the dtype of the array is unknown");
    h->size = (uint64_t)size;
    h->has_descr = true;
    return SONDE_OK;
}

static sonde_status parse_shape(sn_npy_text *t, npy_header *h, sonde_error *err)
{
    if (!sn_npy_text_take(t, '('))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the header has no shape");
    while (!sn_npy_text_take(t, ')')) {
        int64_t d;
        if (!sn_npy_text_number(t, &d))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the shape in the header is invalid");
        sn_npy_text_word(t, "L"); /* Python 2 wrote long numbers so */
        if (h->rank == SN_MAX_RANK)
            return sn_fail(err, SONDE_UNSUPPORTED, "the array has more than %d dimensions",
                           SN_MAX_RANK);
        h->dims[h->rank++] = d;
        if (!sn_npy_text_take(t, ',') && !(t->at < t->end && *t->at == ')'))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the shape in the header is invalid");
    }
    h->has_shape = true;
    return SONDE_OK;
}

static sonde_status parse_header(sn_npy_text t, npy_header *h, sonde_error *err)
{
    if (!sn_npy_text_take(&t, '{'))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the .npy header is not a dictionary");
    while (!sn_npy_text_take(&t, '}')) {
        sn_npy_text key;
        if (!take_string(&t, &key) || !sn_npy_text_take(&t, ':'))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the .npy header is invalid");
        if (sn_npy_text_is(&key, "descr")) {
            SN_TRY(parse_descr(&t, h, err));
        } else if (sn_npy_text_is(&key, "shape") && !h->has_shape) {
            SN_TRY(parse_shape(&t, h, err));
        } else if (sn_npy_text_is(&key, "fortran_order")) {
            h->fortran = sn_npy_text_word(&t, "True");
            h->has_order = h->fortran || sn_npy_text_word(&t, "False");
        } else {
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the .npy header has an unknown entry");
        }
        sn_npy_text_take(&t, ',');
    }
    if (!h->has_descr || !h->has_shape || !h->has_order)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the .npy header is incomplete");
    return SONDE_OK;
}

/* ---- element types ---- */

static const struct {
    sn_dtype dtype;
    const char *descr;
} descrs[] = {
    {SONDE_DTYPE_F32, "<f4"},        {SONDE_DTYPE_F64, "<f8"},        {SONDE_DTYPE_F16, "<f2"},
    {SONDE_DTYPE_I8, "|i1"},         {SONDE_DTYPE_I16, "<i2"},        {SONDE_DTYPE_I32, "<i4"},
    {SONDE_DTYPE_I64, "<i8"},        {SONDE_DTYPE_U8, "|u1"},         {SONDE_DTYPE_U16, "<u2"},
    {SONDE_DTYPE_U32, "<u4"},        {SONDE_DTYPE_U64, "<u8"},        {SONDE_DTYPE_BOOL, "|b1"},
    {SONDE_DTYPE_C64, "<c8"},        {SONDE_DTYPE_C128, "<c16"},      {SONDE_DTYPE_BF16, "<V2"},
    {SONDE_DTYPE_I4, "|i1"},         {SONDE_DTYPE_U4, "|u1"},         {SONDE_DTYPE_I2, "|i1"},
    {SONDE_DTYPE_U2, "|u1"},         {SONDE_DTYPE_F8E4M3FN, "|V1"},   {SONDE_DTYPE_F8E5M2, "|V1"},
    {SONDE_DTYPE_F8E4M3FNUZ, "|V1"}, {SONDE_DTYPE_F8E5M2FNUZ, "|V1"}, {SONDE_DTYPE_F8E8M0, "|V1"},
    {SONDE_DTYPE_F4E2M1, "|V1"},
};

static sonde_status find_dtype(const npy_header *h, const sn_type *as, sn_dtype *out,
                               sonde_error *err)
{
    char descr[24];
    snprintf(descr, sizeof descr, "%c%llu", h->kind, (unsigned long long)h->size);
    if (h->kind == 'V' && as && as->kind == SN_KIND_TENSOR && as->dtype != SONDE_DTYPE_STRING &&
        as->dtype != SONDE_DTYPE_UNDEFINED && sn_dtype_bytes(as->dtype) == h->size) {
        *out = as->dtype;
        return SONDE_OK;
    }
    for (size_t k = 0; k < sizeof descrs / sizeof descrs[0]; k++)
        if (strcmp(descrs[k].descr + 1, descr) == 0 && strcmp(descr, "V1") != 0) {
            *out = descrs[k].dtype;
            return SONDE_OK;
        }
    return sn_fail(err, SONDE_UNSUPPORTED, "the array has dtype '%s', which tensors cannot have",
                   descr);
}

/* ---- elements ---- */

/* Place in the file of element i (row-major) of an array stored column-major. */
static int64_t fortran_place(const npy_header *h, int64_t i)
{
    int64_t place = 0, stride = 1, index[SN_MAX_RANK];
    for (int k = h->rank; k-- > 0;) {
        index[k] = i % h->dims[k];
        i /= h->dims[k];
    }
    for (int k = 0; k < h->rank; k++) {
        place += index[k] * stride;
        stride *= h->dims[k];
    }
    return place;
}

static int64_t place_of(const npy_header *h, int64_t i)
{
    return h->fortran && h->rank > 1 ? fortran_place(h, i) : i;
}

/* One element of a unicode array as UTF-8 at dst (room for four bytes a character); returns the
 * end. */
static char *utf8_of(const uint8_t *src, uint64_t chars, char *dst)
{
    while (chars && sn_get_le(src + 4 * (chars - 1), 4) == 0)
        chars--;
    for (uint64_t i = 0; i < chars; i++)
        dst = sn_utf8_put(dst, (uint32_t)sn_get_le(src + 4 * i, 4));
    return dst;
}

static sonde_status read_strings(const npy_header *h, const uint8_t *data, size_t bytes,
                                 int64_t count, sn_allocator *alloc, sn_slot *out, sonde_error *err)
{
    size_t width = (size_t)h->size * (h->kind == 'U' ? 4 : 1), list_bytes;
    if (!sn_size_mul((size_t)count, sizeof(sonde_string), &list_bytes))
        return sn_fail_memory(err, bytes);
    sonde_string *elems = sn_alloc(alloc, list_bytes);
    char *chars = sn_alloc(alloc, bytes), *at = chars;
    sonde_status st = elems && chars ? SONDE_OK : sn_fail_memory(err, bytes);
    for (int64_t i = 0; i < count && st == SONDE_OK; i++) {
        const uint8_t *src = data + (size_t)place_of(h, i) * width;
        char *start = at;
        if (h->kind == 'U') {
            at = utf8_of(src, h->size, at);
        } else {
            size_t n = width;
            while (n && src[n - 1] == 0)
                n--;
            if (n)
                memcpy(at, src, n);
            at += n;
        }
        elems[i] = (sonde_string){start, (size_t)(at - start)};
    }
    if (st == SONDE_OK)
        st = sn_slot_new_strings(out, h->dims, h->rank, elems, alloc, err);
    sn_free(alloc, elems, list_bytes);
    sn_free(alloc, chars, bytes);
    return st;
}

static sonde_status read_numbers(const npy_header *h, const uint8_t *data, int64_t count,
                                 const sn_type *as, sn_allocator *alloc, sn_slot *out,
                                 sonde_error *err)
{
    sn_dtype dtype = SONDE_DTYPE_UNDEFINED;
    SN_TRY(find_dtype(h, as, &dtype, err));
    SN_TRY(sn_slot_new_tensor(out, dtype, h->dims, h->rank, alloc, err));
    uint8_t *dst = out->t.data;
    size_t width = (size_t)h->size;
    if (h->fortran && h->rank > 1) {
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + (size_t)i * width, data + (size_t)place_of(h, i) * width, width);
    } else if (out->t.bytes) {
        memcpy(dst, data, out->t.bytes);
    }
    if (dtype == SONDE_DTYPE_BOOL)
        for (size_t i = 0; i < out->t.bytes; i++)
            dst[i] = dst[i] != 0;
    sonde_status st = sn_narrow_elements(out, as, err);
    if (st != SONDE_OK)
        sn_slot_clear(out);
    return st;
}

/* The header of a file of `whole` bytes, of which the first are there; *start: where its elements
 * are. */
static sonde_status read_header(const uint8_t *data, size_t bytes, size_t whole, npy_header *h,
                                size_t *start, int64_t *count, sonde_error *err)
{
    size_t elems, need;
    if (bytes < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "this is not a .npy file");
    unsigned major = data[6];
    if (major < 1 || major > 3)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "the .npy file has version %u; versions 1 to 3 are supported", major);
    size_t text = major == 1 ? 10 : 12;
    if (bytes < text)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the .npy header is truncated");
    size_t header = (size_t)sn_get_le(data + 8, text - 8);
    if (header > bytes - text)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the .npy header is truncated");
    sn_npy_text t = {(const char *)data + text, (const char *)data + text + header};
    SN_TRY(parse_header(t, h, err));
    if (h->order == '>' && (h->size > 1 || h->kind == 'U') && h->kind != 'S')
        return sn_fail(
            err, SONDE_UNSUPPORTED,
            "the array is big-endian; convert it with a.astype(a.dtype.newbyteorder('<'))");
    if (!sn_dims_count(h->dims, h->rank, count) ||
        !sn_size_mul((size_t)h->size, h->kind == 'U' ? 4 : 1, &elems) ||
        !sn_size_mul((size_t)*count, elems, &need))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the array is too large for memory");
    /* Strings of no characters take no bytes: such an array could be of any size. */
    if ((h->kind == 'U' || h->kind == 'S') && elems == 0 && *count > 65536)
        return sn_fail(err, SONDE_LIMIT, "the array has %lld empty strings", (long long)*count);
    *start = text + header;
    if (need != whole - *start)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the array has %zu bytes of data, but its type and shape need %zu",
                       whole - *start, need);
    return SONDE_OK;
}

sonde_status sn_npy_peek(const uint8_t *data, size_t bytes, size_t whole, sn_npy_shape *shape,
                         sonde_error *err)
{
    npy_header h = {0};
    size_t start;
    int64_t count;
    SN_TRY(read_header(data, bytes, whole, &h, &start, &count, err));
    shape->rank = h.rank;
    memcpy(shape->dims, h.dims, sizeof shape->dims);
    return SONDE_OK;
}

sonde_status sn_npy_read(const uint8_t *data, size_t bytes, const sn_type *as, sn_allocator *alloc,
                         sn_slot *out, sonde_error *err)
{
    npy_header h = {0};
    size_t start;
    int64_t count;
    SN_TRY(read_header(data, bytes, bytes, &h, &start, &count, err));
    if (h.kind == 'U' || h.kind == 'S')
        return read_strings(&h, data + start, bytes - start, count, alloc, out, err);
    return read_numbers(&h, data + start, count, as, alloc, out, err);
}

/* ---- writing ---- */

/* Characters of UTF-8 text; broken bytes count as one character each. Stores them when dst is
 * given. */
static size_t decode_utf8(const sonde_string *s, uint8_t *dst)
{
    const uint8_t *p = (const uint8_t *)s->data, *end = p + s->size;
    size_t n = 0;
    while (p < end) {
        unsigned more = *p < 0x80             ? 0
                        : (*p & 0xE0) == 0xC0 ? 1
                        : (*p & 0xF0) == 0xE0 ? 2
                        : (*p & 0xF8) == 0xF0 ? 3
                                              : 9;
        uint32_t c = more == 0 ? *p : *p & (0x3Fu >> more);
        bool ok = more < 4 && (size_t)(end - p) > more;
        for (unsigned k = 1; ok && k <= more; k++) {
            ok = (p[k] & 0xC0) == 0x80;
            c = c << 6 | (p[k] & 0x3F);
        }
        if (!ok || c > 0x10FFFF)
            c = 0xFFFD, more = 0;
        p += more + 1;
        if (dst)
            memcpy(dst + 4 * n, &c, 4);
        n++;
    }
    return n;
}

static sonde_status write_header(sn_bytes *out, const char *descr, const sn_tensor *t,
                                 sonde_error *err)
{
    char shape[32 * SN_MAX_RANK], header[sizeof shape + 128];
    size_t n = 0;
    shape[0] = 0;
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, i || t->rank > 1 ? "%lld%s" : "%lld,%s",
                              (long long)t->dims[i], i + 1 < t->rank ? ", " : "");
    int len = snprintf(header, sizeof header,
                       "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    if (len < 0 || (size_t)len >= sizeof header)
        return sn_fail(err, SONDE_INTERNAL, "the .npy header does not fit");
    size_t total = sn_round_up(10 + (size_t)len + 1, 64);
    sn_bytes_put(out, "\x93NUMPY\x01\x00", 8);
    sn_bytes_le(out, total - 10, 2);
    sn_bytes_put(out, header, (size_t)len);
    for (size_t i = 10 + (size_t)len; i + 1 < total; i++)
        sn_bytes_put(out, " ", 1);
    sn_bytes_put(out, "\n", 1);
    return SONDE_OK;
}

static sonde_status write_strings(const sn_tensor *t, sn_bytes *out, sonde_error *err)
{
    const sonde_string *s = t->data;
    int64_t count = sn_tensor_count(t);
    size_t most = 1, bytes;
    for (int64_t i = 0; i < count; i++) {
        size_t n = decode_utf8(&s[i], NULL);
        most = n > most ? n : most;
    }
    char descr[32];
    snprintf(descr, sizeof descr, "<U%zu", most);
    SN_TRY(write_header(out, descr, t, err));
    /* Every element takes the room of the longest: bound what one long string can cost. */
    if (!sn_size_mul((size_t)count, most * 4, &bytes) || bytes > (size_t)1 << 32)
        return sn_fail(err, SONDE_LIMIT, "the strings are too long for a .npy file");
    if (!sn_vec_reserve(&out->v, out->alloc, bytes))
        return sn_fail_memory(err, bytes);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *dst = out->v.data + out->v.n;
        memset(dst, 0, most * 4);
        decode_utf8(&s[i], dst);
        out->v.n += most * 4;
    }
    return SONDE_OK;
}

sonde_status sn_npy_write(const sn_tensor *t, sn_bytes *out, sonde_error *err)
{
    if (!sn_tensor_is_plain(t))
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "a tensor with an internal layout cannot be written");
    if (t->dtype == SONDE_DTYPE_STRING)
        return write_strings(t, out, err);
    for (size_t k = 0; k < sizeof descrs / sizeof descrs[0]; k++)
        if (descrs[k].dtype == t->dtype) {
            SN_TRY(write_header(out, descrs[k].descr, t, err));
            sn_bytes_put(out, t->data, t->bytes);
            return SONDE_OK;
        }
    return sn_fail(err, SONDE_UNSUPPORTED, "a tensor of %s cannot be written as .npy",
                   sn_dtype_onnx_name(t->dtype));
}

/* ---- as a file of its own ---- */

static sonde_status read_npy(const uint8_t *data, size_t bytes, const sn_type *as,
                             sn_named_list *out, sonde_error *err)
{
    sn_slot slot = {0};
    SN_TRY(sn_npy_read(data, bytes, as, out->alloc, &slot, err));
    sonde_status st = sn_named_add(out, "", &slot, err);
    sn_slot_clear(&slot);
    return st;
}

static sonde_status write_npy(const sn_named_list *l, sn_bytes *out, sonde_error *err)
{
    if (l->list.n != 1)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a .npy file can have only one tensor, not %zu; use .npz or .safetensors",
                       l->list.n);
    if (l->list.data[0].slot.kind != SN_KIND_TENSOR)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "'%.200s' is not a tensor; write a folder of .pb files",
                       l->list.data[0].name);
    return sn_npy_write(&l->list.data[0].slot.t, out, err);
}

const sn_tensor_format sn_tensor_format_npy = {".npy", read_npy, write_npy};
