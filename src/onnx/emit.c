/* SPDX-License-Identifier: Apache-2.0 */
/* The two-pass emitter, and the messages that models and test data share: tensors and types. */
#include "onnx/emit.h"

#include <stdio.h>
#include <string.h>

#include "base/wire.h"
#include "onnx/tensor_source.h"

void sn_emit_start(sn_emitter *e, sn_allocator *alloc, sn_onnx_write_fn write, void *user)
{
    *e = (sn_emitter){.counting = true, .alloc = alloc, .write = write, .user = user};
}

sonde_status sn_emit_second_pass(sn_emitter *e, sonde_error *err)
{
    if (e->no_memory)
        return sn_fail_memory(err, e->sizes.n * sizeof(uint64_t));
    if (e->count > INT32_MAX)
        return sn_fail(err, SONDE_LIMIT,
                       "the file would have %llu bytes, and protobuf files have at most 2 GiB",
                       (unsigned long long)e->count);
    sn_emit_second_pass_of_bytes(e);
    return SONDE_OK;
}

void sn_emit_second_pass_of_bytes(sn_emitter *e)
{
    e->counting = false;
    e->count = 0;
    e->next = 0;
}

static void flush(sn_emitter *e)
{
    if (e->used && !e->stopped)
        e->stopped = !e->write(e->user, e->buf, e->used);
    e->used = 0;
}

sonde_status sn_emit_finish(sn_emitter *e, sonde_error *err)
{
    flush(e);
    return e->stopped ? sn_fail(err, SONDE_IO, "writing was stopped") : SONDE_OK;
}

void sn_emit_free(sn_emitter *e)
{
    sn_vec_free(&e->sizes, e->alloc);
}

void sn_emit_raw(sn_emitter *e, const void *data, size_t bytes)
{
    e->count += bytes;
    if (e->counting || e->stopped || !bytes)
        return;
    if (bytes > sizeof e->buf - e->used)
        flush(e);
    if (bytes > sizeof e->buf) {
        e->stopped = e->stopped || !e->write(e->user, data, bytes);
        return;
    }
    memcpy(e->buf + e->used, data, bytes);
    e->used += bytes;
}

static void varint(sn_emitter *e, uint64_t v)
{
    uint8_t b[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        b[n++] = (uint8_t)(v | 0x80);
    b[n++] = (uint8_t)v;
    sn_emit_raw(e, b, n);
}

void sn_emit_head(sn_emitter *e, uint32_t field, uint64_t bytes)
{
    varint(e, SN_LEN(field));
    varint(e, bytes);
}

sn_emit_mark sn_emit_begin(sn_emitter *e, uint32_t field)
{
    sn_emit_mark m = {.field = field, .start = e->count, .slot = e->sizes.n};
    if (e->counting) {
        if (!e->no_memory && !sn_vec_push(&e->sizes, e->alloc, 0))
            e->no_memory = true;
    } else {
        sn_emit_head(e, field, e->sizes.data[e->next++]);
    }
    return m;
}

void sn_emit_end(sn_emitter *e, sn_emit_mark m)
{
    if (!e->counting)
        return;
    uint64_t size = e->count - m.start;
    if (!e->no_memory)
        e->sizes.data[m.slot] = size;
    sn_emit_head(e, m.field, size); /* only counted: the order does not matter */
}

void sn_emit_int(sn_emitter *e, uint32_t field, uint64_t v)
{
    varint(e, SN_INT(field));
    varint(e, v);
}

void sn_emit_float(sn_emitter *e, uint32_t field, float f)
{
    varint(e, SN_F32(field));
    sn_emit_raw(e, &f, sizeof f);
}

void sn_emit_bytes(sn_emitter *e, uint32_t field, const void *data, size_t bytes)
{
    sn_emit_head(e, field, bytes);
    sn_emit_raw(e, data, bytes);
}

void sn_emit_text(sn_emitter *e, uint32_t field, const char *s)
{
    sn_emit_bytes(e, field, s, s ? strlen(s) : 0);
}

void sn_emit_text_if(sn_emitter *e, uint32_t field, const char *s)
{
    if (s && s[0])
        sn_emit_text(e, field, s);
}

/* Sub-byte elements are packed a buffer at a time; whole bytes in each but the last. */
static void emit_packed(sn_emitter *e, const sn_tensor *t, int64_t count)
{
    uint8_t packed[1024];
    int64_t step = (int64_t)sizeof packed * (8 / sn_dtype_bits(t->dtype));
    for (int64_t i = 0; i < count; i += step) {
        int64_t n = count - i < step ? count - i : step;
        size_t part = 0;
        (void)sn_dtype_file_bytes(t->dtype, n, &part);
        sn_pack_bits(t->dtype, (const uint8_t *)t->data + i, n, packed);
        sn_emit_raw(e, packed, part);
    }
}

/* A constant whose numbers are still to be scaled or put together, a buffer at a time. */
static void emit_converted(sn_emitter *e, const sn_tensor *t, int64_t count)
{
    _Alignas(max_align_t) uint8_t part[1024];
    const int64_t step = (int64_t)(sizeof part / sn_dtype_bytes(t->dtype));
    for (int64_t i = 0; i < count; i += step) {
        const int64_t n = count - i < step ? count - i : step;
        sn_tensor_read(t, i, n, part);
        sn_emit_raw(e, part, (size_t)n * sn_dtype_bytes(t->dtype));
    }
}

void sn_emit_elements(sn_emitter *e, const sn_tensor *t)
{
    if (sn_dtype_bits(t->dtype) < 8)
        emit_packed(e, t, sn_tensor_count(t));
    else if (t->scale || t->parts)
        emit_converted(e, t, sn_tensor_count(t));
    else
        sn_emit_raw(e, t->data, t->bytes);
}

static size_t file_bytes(const sn_tensor *t)
{
    size_t bytes = 0;
    (void)sn_dtype_file_bytes(t->dtype, sn_tensor_count(t), &bytes); /* it is in memory: it fits */
    return bytes;
}

/* dims, type and name. */
static void emit_tensor_head(sn_emitter *e, const sn_tensor *t, const char *name)
{
    for (int i = 0; i < t->rank; i++)
        sn_emit_int(e, 1, (uint64_t)t->dims[i]);
    sn_emit_int(e, 2, (uint64_t)t->dtype);
    sn_emit_text_if(e, 8, name);
}

void sn_emit_tensor(sn_emitter *e, const sn_tensor *t, const char *name)
{
    emit_tensor_head(e, t, name);
    if (t->dtype == SONDE_DTYPE_STRING) {
        const sonde_string *s = t->data;
        const int64_t count = sn_tensor_count(t);
        for (int64_t i = 0; i < count; i++)
            sn_emit_bytes(e, 6, s[i].data, s[i].size);
    } else {
        sn_emit_head(e, 9, file_bytes(t));
        sn_emit_elements(e, t);
    }
}

static void emit_entry(sn_emitter *e, const char *key, const char *value)
{
    sn_emit_mark mark = sn_emit_begin(e, 13);
    sn_emit_text(e, 1, key);
    sn_emit_text(e, 2, value);
    sn_emit_end(e, mark);
}

void sn_emit_external(sn_emitter *e, const sn_tensor *t, const char *name, const char *location,
                      uint64_t offset)
{
    char number[24];
    emit_tensor_head(e, t, name);
    emit_entry(e, "location", location);
    snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
    emit_entry(e, "offset", number);
    snprintf(number, sizeof number, "%zu", file_bytes(t));
    emit_entry(e, "length", number);
    sn_emit_int(e, 14, 1); /* EXTERNAL */
}

static bool is_zero(const sn_tensor *t, int64_t i)
{
    static const uint8_t zeros[sizeof(sonde_string)];
    size_t width = sn_dtype_bytes(t->dtype);
    if (t->dtype == SONDE_DTYPE_STRING)
        return ((const sonde_string *)t->data)[i].size == 0;
    return memcmp((const uint8_t *)t->data + (size_t)i * width, zeros, width) == 0;
}

static int64_t count_nonzero(const sn_tensor *t, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        n += !is_zero(t, i);
    return n;
}

/* One element of a sparse tensor's values, at place k of them. Sub-byte values are gathered until a
 * byte is full. */
static void emit_value(sn_emitter *e, const sn_tensor *t, int64_t i, int64_t k, int64_t nnz,
                       uint8_t *group)
{
    unsigned bits = sn_dtype_bits(t->dtype);
    size_t width = sn_dtype_bytes(t->dtype);
    const uint8_t *p = (const uint8_t *)t->data + (size_t)i * width;
    if (t->dtype == SONDE_DTYPE_STRING) {
        const sonde_string *s = &((const sonde_string *)t->data)[i];
        sn_emit_bytes(e, 6, s->data, s->size);
    } else if (bits >= 8) {
        sn_emit_raw(e, p, width);
    } else {
        int64_t per_byte = 8 / bits;
        group[k % per_byte] = *p;
        if (k % per_byte == per_byte - 1 || k == nnz - 1) {
            uint8_t packed = 0;
            sn_pack_bits(t->dtype, group, k % per_byte + 1, &packed);
            sn_emit_raw(e, &packed, 1);
        }
    }
}

/* Every value has an index of 64 bits; heads and dims are small beside what is worth it. */
#define SPARSE_HEAD_BYTES  ((uint64_t)128)
#define SPARSE_MOST_GROWTH ((uint64_t)500)

bool sn_emit_sparse_pays(const sn_tensor *t)
{
    if (t->dtype == SONDE_DTYPE_STRING || t->scale || t->parts)
        return false;
    const uint64_t dense = file_bytes(t);
    const int64_t nnz = count_nonzero(t, sn_tensor_count(t));
    size_t values = 0;
    (void)sn_dtype_file_bytes(t->dtype, nnz, &values);
    const uint64_t sparse = values + (uint64_t)nnz * 8 + SPARSE_HEAD_BYTES;
    return nnz > 0 && sparse < dense && dense / sparse < SPARSE_MOST_GROWTH;
}

void sn_emit_sparse(sn_emitter *e, const sn_tensor *t, const char *name)
{
    int64_t count = sn_tensor_count(t), nnz = count_nonzero(t, count), k = 0;
    size_t bytes = 0;
    uint8_t group[8];
    sn_emit_mark values = sn_emit_begin(e, 1);
    sn_emit_int(e, 1, (uint64_t)nnz);
    sn_emit_int(e, 2, (uint64_t)t->dtype);
    sn_emit_text_if(e, 8, name);
    (void)sn_dtype_file_bytes(t->dtype, nnz, &bytes);
    if (t->dtype != SONDE_DTYPE_STRING)
        sn_emit_head(e, 9, bytes);
    for (int64_t i = 0; i < count; i++)
        if (!is_zero(t, i))
            emit_value(e, t, i, k++, nnz, group);
    sn_emit_end(e, values);

    sn_emit_mark indices = sn_emit_begin(e, 2);
    sn_emit_int(e, 1, (uint64_t)nnz);
    sn_emit_int(e, 2, SONDE_DTYPE_I64);
    sn_emit_head(e, 9, (uint64_t)nnz * 8);
    for (int64_t i = 0; i < count; i++)
        if (!is_zero(t, i))
            sn_emit_raw(e, &i, sizeof i);
    sn_emit_end(e, indices);
    for (int i = 0; i < t->rank; i++)
        sn_emit_int(e, 3, (uint64_t)t->dims[i]);
}

static void emit_tensor_type(sn_emitter *e, const sn_type *t, const char *const *symbols,
                             size_t n_symbols)
{
    sn_emit_int(e, 1, (uint64_t)t->dtype);
    if (t->rank < 0)
        return;
    sn_emit_mark shape = sn_emit_begin(e, 2);
    for (int i = 0; i < t->rank; i++) {
        sn_emit_mark dim = sn_emit_begin(e, 1);
        uint32_t id = sn_dim_known(t->dims[i]) ? 0 : sn_dim_symbol_id(t->dims[i]);
        if (sn_dim_known(t->dims[i]))
            sn_emit_int(e, 1, (uint64_t)t->dims[i]);
        else if (id && id <= n_symbols && symbols[id - 1])
            sn_emit_text(e, 2, symbols[id - 1]);
        sn_emit_end(e, dim);
    }
    sn_emit_end(e, shape);
}

void sn_emit_type(sn_emitter *e, const sn_type *t, const char *const *symbols, size_t n_symbols)
{
    /* Field of TypeProto by kind; the element of a map is its field 2. */
    uint32_t field = t->kind == SN_KIND_TENSOR     ? 1
                     : t->kind == SN_KIND_SEQUENCE ? 4
                     : t->kind == SN_KIND_MAP      ? 5
                     : t->kind == SN_KIND_OPTIONAL ? 9
                                                   : 0;
    if (!field)
        return;
    sn_emit_mark kind = sn_emit_begin(e, field);
    if (t->kind == SN_KIND_TENSOR) {
        emit_tensor_type(e, t, symbols, n_symbols);
    } else {
        if (t->kind == SN_KIND_MAP)
            sn_emit_int(e, 1, (uint64_t)t->dtype);
        sn_emit_mark elem = sn_emit_begin(e, t->kind == SN_KIND_MAP ? 2 : 1);
        if (t->elem)
            sn_emit_type(e, t->elem, symbols, n_symbols);
        sn_emit_end(e, elem);
    }
    sn_emit_end(e, kind);
}
