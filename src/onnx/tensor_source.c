/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto: one walk collects the fields (they may come in any order), a second one counts the
 * elements of the typed field that belongs to the element type. */
#include "onnx/tensor_source.h"

#include <string.h>

size_t sn_dtype_align(sn_dtype t)
{
    size_t n = sn_dtype_bytes(t);
    return n > 8 ? 8 : n ? n : 1;
}

/* Which typed field holds elements of a type, and how they are written. */
static void typed_field(sn_dtype t, uint32_t *field, int *elem)
{
    switch (t) {
    case SONDE_DTYPE_F32:
    case SONDE_DTYPE_C64:
        *field = 4, *elem = SN_WIRE_FIXED32;
        break;
    case SONDE_DTYPE_STRING:
        *field = 6, *elem = SN_WIRE_BYTES;
        break;
    case SONDE_DTYPE_I64:
        *field = 7, *elem = SN_WIRE_VARINT;
        break;
    case SONDE_DTYPE_F64:
    case SONDE_DTYPE_C128:
        *field = 10, *elem = SN_WIRE_FIXED64;
        break;
    case SONDE_DTYPE_U32:
    case SONDE_DTYPE_U64:
        *field = 11, *elem = SN_WIRE_VARINT;
        break;
    default:
        *field = 5, *elem = SN_WIRE_VARINT;
        break;
    }
}

/* A field of the source's typed list, packed or not. */
static bool is_typed(const sn_tensor_source *s, const sn_field *f)
{
    return f->tag == SN_TAG(s->field, s->elem) || f->tag == SN_LEN(s->field);
}

static bool decimal(const sn_wire *w, uint64_t *v)
{
    uint64_t r = 0;
    if (w->at == w->end)
        return false;
    for (const uint8_t *p = w->at; p < w->end; p++) {
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(r, 10u, &r) ||
            __builtin_add_overflow(r, (uint64_t)(*p - '0'), &r))
            return false;
    }
    *v = r;
    return true;
}

static bool equals(const sn_wire *w, const char *text)
{
    size_t n = strlen(text);
    return sn_wire_bytes(w) == n && memcmp(w->at, text, n) == 0;
}

/* What the first walk collects besides the source itself. */
typedef struct tensor_fields {
    uint64_t dtype, location;
    sn_wire raw;
    bool has_raw, has_segment, too_many_dims, broken;
    size_t typed_fields;
    /* external_data */
    bool bad_offset, has_length;
    uint64_t length;
} tensor_fields;

/* One key and value of external_data; unknown keys (checksum, basepath) are left alone. */
static void external_entry(sn_tensor_source *s, tensor_fields *t, sn_wire w)
{
    sn_field f;
    sn_wire key = {0}, value = {0};
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(1))
            key = f.body;
        else if (f.tag == SN_LEN(2))
            value = f.body;
    }
    t->broken |= got == SN_WIRE_BROKEN;
    if (equals(&key, "location")) {
        s->location = value;
    } else if (equals(&key, "offset")) {
        t->bad_offset |= !decimal(&value, &s->offset);
    } else if (equals(&key, "length")) {
        t->has_length = true;
        t->bad_offset |= !decimal(&value, &t->length);
    }
}

static void collect(sn_tensor_source *s, tensor_fields *t, sn_wire w)
{
    sn_field f;
    sn_wire_iter it;
    sn_wire_status got;
    uint64_t num;
    size_t n;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(1):
        case SN_LEN(1):
            n = 0;
            t->broken |= !sn_wire_count(&f, SN_WIRE_VARINT, &n);
            sn_wire_iter_start(&it, &f, SN_WIRE_VARINT);
            while (!t->broken && sn_wire_iter_next(&it, &num)) {
                if (s->rank == SN_MAX_RANK) {
                    t->too_many_dims = true;
                    break;
                }
                s->dims[s->rank++] = (int64_t)num;
            }
            break;
        case SN_INT(2):
            t->dtype = f.num;
            break;
        case SN_LEN(3):
            t->has_segment = true;
            break;
        case SN_LEN(8):
            s->name = f.body;
            break;
        case SN_LEN(9):
            t->raw = f.body;
            t->has_raw = true;
            break;
        case SN_LEN(13):
            external_entry(s, t, f.body);
            break;
        case SN_INT(14):
            t->location = f.num;
            break;
        default:
            break;
        }
    }
    t->broken |= got == SN_WIRE_BROKEN;
}

/* Counts the typed elements; a single packed run of fixed-size numbers is raw data by another name.
 */
static bool count_typed(sn_tensor_source *s, size_t *n)
{
    sn_wire w = s->body;
    sn_field f;
    const uint8_t *run = NULL;
    size_t runs = 0;
    *n = 0;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (!is_typed(s, &f))
            continue;
        if (s->elem == SN_WIRE_BYTES)
            (*n)++;
        else if (!sn_wire_count(&f, s->elem, n))
            return false;
        runs++;
        run = f.tag == SN_LEN(s->field) ? f.body.at : NULL;
    }
    if (runs == 1 && (s->elem == SN_WIRE_FIXED32 || s->elem == SN_WIRE_FIXED64))
        s->raw = run;
    return true;
}

/* Compares what the dims promise with what is there. */
static sonde_status check_contents(sn_tensor_source *s, const tensor_fields *t, const char *what,
                                   sonde_error *err)
{
    size_t have = 0, want = (size_t)s->count;
    if (t->location == 1) {
        s->external = true;
        if (s->dtype == SONDE_DTYPE_STRING)
            return sn_fail(err, SONDE_INVALID_MODEL,
                           "%s '%.*s' is a string tensor, which cannot be in external data", what,
                           SN_SHOW(s->name));
        if (s->location.at == s->location.end)
            return sn_fail(err, SONDE_INVALID_MODEL,
                           "%s '%.*s' is in external data but has no location", what,
                           SN_SHOW(s->name));
        if (t->bad_offset)
            return sn_fail(err, SONDE_INVALID_MODEL,
                           "%s '%.*s' has an external offset or length that is not a number", what,
                           SN_SHOW(s->name));
        if (t->has_length && t->length != s->file_bytes)
            return sn_fail(
                err, SONDE_INVALID_MODEL,
                "%s '%.*s' has %llu bytes of external data, but its type and shape need %zu", what,
                SN_SHOW(s->name), (unsigned long long)t->length, s->file_bytes);
        return SONDE_OK;
    }
    if (!count_typed(s, &have))
        return sn_fail(err, SONDE_INVALID_MODEL, "%s '%.*s' has invalid data", what,
                       SN_SHOW(s->name));
    if (t->has_raw && (t->raw.at != t->raw.end || have == 0)) {
        if (s->dtype == SONDE_DTYPE_STRING)
            return sn_fail(err, SONDE_INVALID_MODEL,
                           "%s '%.*s' is a string tensor with raw data, which strings cannot have",
                           what, SN_SHOW(s->name));
        if (sn_wire_bytes(&t->raw) != s->file_bytes)
            return sn_fail(err, SONDE_INVALID_MODEL,
                           "%s '%.*s' has %zu bytes of data, but its type and shape need %zu", what,
                           SN_SHOW(s->name), sn_wire_bytes(&t->raw), s->file_bytes);
        s->raw = t->raw.at;
        return SONDE_OK;
    }
    if (s->dtype == SONDE_DTYPE_C64 || s->dtype == SONDE_DTYPE_C128)
        want *= 2; /* cannot overflow: the byte size, which is larger, did not */
    else if (sn_dtype_bits(s->dtype) < 8)
        want = s->file_bytes;
    if (have != want)
        return sn_fail(err, SONDE_INVALID_MODEL,
                       "%s '%.*s' has %zu data entries, but its type and shape need %zu", what,
                       SN_SHOW(s->name), have, want);
    return SONDE_OK;
}

sonde_status sn_tensor_source_open(sn_tensor_source *s, sn_wire w, const char *what,
                                   sonde_error *err)
{
    tensor_fields t = {0};
    *s = (sn_tensor_source){.body = w};
    collect(s, &t, w);
    if (t.broken)
        return sn_fail(err, SONDE_INVALID_MODEL, "%s '%.*s' is truncated or invalid", what,
                       SN_SHOW(s->name));
    char text[40];
    if (!sn_dtype_valid((int64_t)t.dtype))
        return sn_fail(err, SONDE_INVALID_MODEL, "%s '%.*s' has the unknown dtype %s", what,
                       SN_SHOW(s->name), sn_dtype_number_text((int64_t)t.dtype, text));
    s->dtype = (sn_dtype)t.dtype;
    if (t.too_many_dims)
        return sn_fail(err, SONDE_UNSUPPORTED, "%s '%.*s' has more than %d dimensions", what,
                       SN_SHOW(s->name), SN_MAX_RANK);
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i] < 0)
            return sn_fail(err, SONDE_INVALID_MODEL, "%s '%.*s' has the negative dimension %lld",
                           what, SN_SHOW(s->name), (long long)s->dims[i]);
    if (t.has_segment)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "%s '%.*s' is stored in segments, which is not supported", what,
                       SN_SHOW(s->name));
    if (!sn_dims_count(s->dims, s->rank, &s->count) ||
        !sn_tensor_bytes(s->dtype, s->dims, s->rank, &s->bytes) ||
        !sn_dtype_file_bytes(s->dtype, s->count, &s->file_bytes))
        return sn_fail(err, SONDE_INVALID_MODEL, "%s '%.*s' is too large for memory", what,
                       SN_SHOW(s->name));
    typed_field(s->dtype, &s->field, &s->elem);
    return check_contents(s, &t, what, err);
}

bool sn_tensor_source_is_view(const sn_tensor_source *s)
{
    return s->raw && sn_dtype_bits(s->dtype) >= 8 &&
           (uintptr_t)s->raw % sn_dtype_align(s->dtype) == 0;
}

/* Numbers of a typed field, `width` bytes of each stored one after the other. */
static void fill_typed(const sn_tensor_source *s, uint8_t *dst, size_t width)
{
    sn_wire w = s->body;
    sn_field f;
    sn_wire_iter it;
    uint64_t num;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (!is_typed(s, &f))
            continue;
        sn_wire_iter_start(&it, &f, s->elem);
        for (; sn_wire_iter_next(&it, &num); dst += width)
            memcpy(dst, &num, width);
    }
}

static void fill_strings(const sn_tensor_source *s, sonde_string *dst)
{
    sn_wire w = s->body;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD)
        if (is_typed(s, &f))
            *dst++ = (sonde_string){(const char *)f.body.at, sn_wire_bytes(&f.body)};
}

void sn_tensor_source_fill(const sn_tensor_source *s, void *dst)
{
    if (s->count == 0)
        return;
    unsigned bits = sn_dtype_bits(s->dtype);
    if (s->dtype == SONDE_DTYPE_STRING) {
        fill_strings(s, dst);
    } else if (bits < 8) {
        /* Typed entries are packed bytes too: put them at the end of dst and unpack forwards, which
         * never overtakes them. */
        const uint8_t *packed = s->raw;
        if (!packed) {
            uint8_t *tail = (uint8_t *)dst + (s->bytes - s->file_bytes);
            fill_typed(s, tail, 1);
            packed = tail;
        }
        sn_unpack_bits(s->dtype, packed, s->count, dst);
    } else if (s->raw) {
        memcpy(dst, s->raw, s->bytes);
    } else {
        size_t width = sn_dtype_bytes(s->dtype);
        fill_typed(s, dst, s->elem == SN_WIRE_FIXED32 ? 4 : s->elem == SN_WIRE_FIXED64 ? 8 : width);
    }
    if (s->dtype == SONDE_DTYPE_BOOL)
        for (size_t i = 0; i < s->bytes; i++)
            ((uint8_t *)dst)[i] = ((const uint8_t *)dst)[i] != 0;
}
