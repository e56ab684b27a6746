/* SPDX-License-Identifier: Apache-2.0 */
/* Test data: TensorProto, SequenceProto, OptionalProto and MapProto as runtime values, both ways. A
 * map is a pair of keys (a 1-D tensor) and values (a 1-D tensor when each is one number or string
 * of one type, else a sequence). */
#include <string.h>

#include "base/wire.h"
#include "onnx/emit.h"
#include "onnx/tensor_source.h"

/* Kinds of elements as SequenceProto and OptionalProto number them; each is field kind + 2. */
enum { ELEM_TENSOR = 1, ELEM_SPARSE = 2, ELEM_SEQUENCE = 3, ELEM_MAP = 4, ELEM_OPTIONAL = 5 };

typedef struct value_reader {
    sn_allocator *alloc;
    sonde_error *err;
    unsigned depth;
} value_reader;

static sonde_status read_kind(value_reader *r, sn_wire w, sn_kind kind, sn_slot *out);

static sonde_status broken(value_reader *r, const char *what)
{
    return sn_fail(r->err, SONDE_INVALID_FORMAT, "%s is truncated or not valid protobuf", what);
}

static sonde_status read_tensor(value_reader *r, sn_wire w, sn_slot *out)
{
    sn_tensor_source s;
    SN_TRY(sn_tensor_source_open(&s, w, "tensor", r->err));
    if (s.external)
        return sn_fail(r->err, SONDE_UNSUPPORTED,
                       "tensor '%.*s' is in external data, which is not supported here",
                       SN_SHOW(s.name));
    if (s.dtype != SONDE_DTYPE_STRING) {
        SN_TRY(sn_slot_new_tensor(out, s.dtype, s.dims, s.rank, r->alloc, r->err));
        sn_tensor_source_fill(&s, out->t.data);
        return SONDE_OK;
    }
    sonde_string *elems = sn_alloc(r->alloc, s.bytes);
    if (!elems)
        return sn_fail_memory(r->err, s.bytes);
    sn_tensor_source_fill(&s, elems);
    sonde_status st = sn_slot_new_strings(out, s.dims, s.rank, elems, r->alloc, r->err);
    sn_free(r->alloc, elems, s.bytes);
    return st;
}

/* Moves `item` to the end of a list. */
static sonde_status push(value_reader *r, sn_list *l, sn_slot *item)
{
    sonde_status st = sn_list_push(l, item, r->err);
    sn_slot_clear(item);
    return st;
}

static sn_kind kind_of_elem(uint64_t elem)
{
    return elem == ELEM_SEQUENCE   ? SN_KIND_SEQUENCE
           : elem == ELEM_MAP      ? SN_KIND_MAP
           : elem == ELEM_OPTIONAL ? SN_KIND_OPTIONAL
                                   : SN_KIND_TENSOR;
}

/* SequenceProto and OptionalProto have the same fields; an optional keeps at most one element. */
static sonde_status read_list(value_reader *r, sn_wire w, bool optional, sn_slot *out)
{
    const char *what = optional ? "an optional" : "a sequence";
    sn_field f;
    sn_wire_status got = SN_WIRE_END;
    sn_list *l = sn_list_new(r->alloc, 0);
    if (!l)
        return sn_fail_memory(r->err, sizeof *l);
    sonde_status st = SONDE_OK;
    while (st == SONDE_OK && (got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        sn_slot item = {0};
        switch (f.tag) {
        case SN_INT(2):
            if (f.num)
                l->elem_kind = kind_of_elem(f.num);
            break;
        case SN_LEN(ELEM_SPARSE + 2):
            st = sn_fail(r->err, SONDE_UNSUPPORTED, "%s of sparse tensors are not supported", what);
            break;
        case SN_LEN(ELEM_TENSOR + 2):
        case SN_LEN(ELEM_SEQUENCE + 2):
        case SN_LEN(ELEM_MAP + 2):
        case SN_LEN(ELEM_OPTIONAL + 2):
            if (optional && l->n == 1) {
                st = sn_fail(r->err, SONDE_INVALID_MODEL,
                             "an optional contains more than one value");
                break;
            }
            st = read_kind(r, f.body, kind_of_elem((f.tag >> 3) - 2), &item);
            if (st == SONDE_OK) {
                l->elem_kind = item.kind;
                if (item.kind == SN_KIND_TENSOR)
                    l->elem_dtype = item.t.dtype;
                st = push(r, l, &item);
            }
            break;
        default:
            break;
        }
    }
    if (st == SONDE_OK && got == SN_WIRE_BROKEN)
        st = broken(r, what);
    if (st != SONDE_OK) {
        sn_list_unref(l);
        return st;
    }
    *out = (sn_slot){.kind = optional ? SN_KIND_OPTIONAL : SN_KIND_SEQUENCE, .list = l};
    return SONDE_OK;
}

/* ---- maps ---- */

typedef struct map_fields {
    uint64_t key_type;
    size_t ints, strings;
    sn_wire values;
} map_fields;

static sonde_status map_collect(value_reader *r, sn_wire w, map_fields *m)
{
    sn_field f;
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(2))
            m->key_type = f.num;
        else if (f.tag == SN_INT(3) || f.tag == SN_LEN(3)) {
            if (!sn_wire_count(&f, SN_WIRE_VARINT, &m->ints))
                return broken(r, "a map");
        } else if (f.tag == SN_LEN(4))
            m->strings++;
        else if (f.tag == SN_LEN(5))
            m->values = f.body;
    }
    return got == SN_WIRE_BROKEN ? broken(r, "a map") : SONDE_OK;
}

static sonde_status map_keys(value_reader *r, sn_wire w, const map_fields *m, sn_slot *keys)
{
    bool strings = m->key_type == SONDE_DTYPE_STRING;
    size_t n = strings ? m->strings : m->ints, k = 0;
    int64_t dims[1] = {(int64_t)n};
    sn_field f;
    if (!strings) {
        if (!sn_dtype_valid((int64_t)m->key_type) || !sn_dtype_is_int((sn_dtype)m->key_type) ||
            sn_dtype_bits((sn_dtype)m->key_type) < 8)
            return sn_fail(r->err, SONDE_INVALID_MODEL,
                           "a map has keys of type %lld, expected integers or strings",
                           (long long)m->key_type);
        SN_TRY(sn_slot_new_tensor(keys, (sn_dtype)m->key_type, dims, 1, r->alloc, r->err));
        size_t width = sn_dtype_bytes((sn_dtype)m->key_type);
        while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
            sn_wire_iter it;
            uint64_t num;
            if (f.tag != SN_INT(3) && f.tag != SN_LEN(3))
                continue;
            sn_wire_iter_start(&it, &f, SN_WIRE_VARINT);
            for (; sn_wire_iter_next(&it, &num); k++)
                memcpy((uint8_t *)keys->t.data + k * width, &num, width);
        }
        return SONDE_OK;
    }
    size_t bytes;
    sonde_string *elems = sn_size_mul(n, sizeof *elems, &bytes) ? sn_alloc(r->alloc, bytes) : NULL;
    if (!elems)
        return sn_fail_memory(r->err, n);
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD)
        if (f.tag == SN_LEN(4))
            elems[k++] = (sonde_string){(const char *)f.body.at, sn_wire_bytes(&f.body)};
    sonde_status st = sn_slot_new_strings(keys, dims, 1, elems, r->alloc, r->err);
    sn_free(r->alloc, elems, bytes);
    return st;
}

/* A sequence of single elements of one type becomes one tensor. */
static sonde_status join_values(value_reader *r, sn_slot *values)
{
    const sn_list *l = values->list;
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].kind != SN_KIND_TENSOR || sn_tensor_count(&l->items[i].t) != 1 ||
            l->items[i].t.dtype != l->items[0].t.dtype)
            return SONDE_OK;
    if (!l->n)
        return SONDE_OK;
    sn_dtype dtype = l->items[0].t.dtype;
    size_t width = sn_dtype_bytes(dtype), bytes = 0;
    int64_t dims[1] = {(int64_t)l->n};
    sn_slot joined = {0};
    if (dtype != SONDE_DTYPE_STRING) {
        SN_TRY(sn_slot_new_tensor(&joined, dtype, dims, 1, r->alloc, r->err));
        for (size_t i = 0; i < l->n; i++)
            memcpy((uint8_t *)joined.t.data + i * width, l->items[i].t.data, width);
    } else {
        sonde_string *elems = sn_size_mul(l->n, width, &bytes) ? sn_alloc(r->alloc, bytes) : NULL;
        if (!elems)
            return sn_fail_memory(r->err, bytes);
        for (size_t i = 0; i < l->n; i++)
            elems[i] = *(const sonde_string *)l->items[i].t.data;
        sonde_status st = sn_slot_new_strings(&joined, dims, 1, elems, r->alloc, r->err);
        sn_free(r->alloc, elems, bytes);
        SN_TRY(st);
    }
    sn_slot_clear(values);
    *values = joined;
    return SONDE_OK;
}

static sonde_status read_map(value_reader *r, sn_wire w, sn_slot *out)
{
    map_fields m = {0};
    sn_slot keys = {0}, values = {0};
    sonde_status st;
    sn_list *l = sn_list_new(r->alloc, 2);
    if (!l)
        return sn_fail_memory(r->err, sizeof *l);
    SN_TRY_GOTO(st, map_collect(r, w, &m));
    SN_TRY_GOTO(st, map_keys(r, w, &m, &keys));
    SN_TRY_GOTO(st, read_kind(r, m.values, SN_KIND_SEQUENCE, &values));
    if ((int64_t)values.list->n != keys.t.dims[0]) {
        st = sn_fail(r->err, SONDE_INVALID_MODEL, "a map has %lld keys but %zu values",
                     (long long)keys.t.dims[0], values.list->n);
        goto fail;
    }
    SN_TRY_GOTO(st, join_values(r, &values));
    SN_TRY_GOTO(st, push(r, l, &keys));
    SN_TRY_GOTO(st, push(r, l, &values));
    *out = (sn_slot){.kind = SN_KIND_MAP, .list = l};
    return SONDE_OK;
fail:
    sn_slot_clear(&keys);
    sn_slot_clear(&values);
    sn_list_unref(l);
    return st;
}

static sonde_status read_kind(value_reader *r, sn_wire w, sn_kind kind, sn_slot *out)
{
    if (r->depth >= SN_WIRE_MAX_DEPTH)
        return sn_fail(r->err, SONDE_LIMIT, "values are nested deeper than %d levels",
                       SN_WIRE_MAX_DEPTH);
    r->depth++;
    sonde_status st = kind == SN_KIND_SEQUENCE   ? read_list(r, w, false, out)
                      : kind == SN_KIND_OPTIONAL ? read_list(r, w, true, out)
                      : kind == SN_KIND_MAP      ? read_map(r, w, out)
                                                 : read_tensor(r, w, out);
    r->depth--;
    return st;
}

/* Tensors carry their name in field 8, the others in field 1. */
static sonde_status read_name(sn_wire w, bool tensor, sn_arena *arena, const char **name,
                              sonde_error *err)
{
    sn_field f;
    *name = "";
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        size_t n = sn_wire_bytes(&f.body);
        if (f.tag != SN_LEN(tensor ? 8 : 1) || n == 0)
            continue;
        if (memchr(f.body.at, 0, n))
            return sn_fail(err, SONDE_INVALID_MODEL, "the name of a value contains a zero byte");
        *name = sn_arena_strndup(arena, (const char *)f.body.at, n);
        if (!*name)
            return sn_fail_memory(err, n);
    }
    return SONDE_OK;
}

sonde_status sn_onnx_read_value(const void *data, size_t bytes, const sn_type *as,
                                sn_allocator *alloc, sn_slot *out, const char **name,
                                sn_arena *name_arena, sonde_error *err)
{
    sn_wire w = sn_wire_of(bytes ? data : "", bytes);
    value_reader r = {.alloc = alloc, .err = err};
    sn_kind kind = as && as->kind != SN_KIND_NONE ? as->kind : SN_KIND_TENSOR;
    sn_slot made = {0};
    SN_TRY(read_kind(&r, w, kind, &made));
    if (name) {
        sonde_status st = read_name(w, kind == SN_KIND_TENSOR, name_arena, name, err);
        if (st != SONDE_OK) {
            sn_slot_clear(&made);
            return st;
        }
    }
    sn_slot_clear(out);
    *out = made;
    return SONDE_OK;
}

/* ---- writing ---- */

static void emit_value(sn_emitter *e, const sn_slot *v, const char *name);

static uint32_t elem_number(sn_kind kind)
{
    return kind == SN_KIND_SEQUENCE   ? ELEM_SEQUENCE
           : kind == SN_KIND_MAP      ? ELEM_MAP
           : kind == SN_KIND_OPTIONAL ? ELEM_OPTIONAL
           : kind == SN_KIND_TENSOR   ? ELEM_TENSOR
                                      : 0;
}

static void emit_list(sn_emitter *e, const sn_list *l, const char *name)
{
    sn_kind kind = l->n ? l->items[0].kind : l->elem_kind;
    sn_emit_text_if(e, 1, name);
    sn_emit_int(e, 2, elem_number(kind));
    for (size_t i = 0; i < l->n; i++) {
        sn_emit_mark mark = sn_emit_begin(e, elem_number(l->items[i].kind) + 2);
        emit_value(e, &l->items[i], NULL);
        sn_emit_end(e, mark);
    }
}

/* A 1-D tensor as a SequenceProto of its elements. */
static void emit_elements(sn_emitter *e, const sn_tensor *t)
{
    int64_t n = sn_tensor_count(t);
    size_t width = sn_dtype_bytes(t->dtype);
    sn_emit_int(e, 2, ELEM_TENSOR);
    for (int64_t i = 0; i < n; i++) {
        sn_tensor one = {.dtype = t->dtype, .bytes = width};
        one.data = (uint8_t *)t->data + (size_t)i * width;
        sn_emit_mark mark = sn_emit_begin(e, ELEM_TENSOR + 2);
        sn_emit_tensor(e, &one, NULL);
        sn_emit_end(e, mark);
    }
}

static void emit_map(sn_emitter *e, const sn_slot *v, const char *name)
{
    const sn_tensor *keys = &v->list->items[0].t;
    const sn_slot *values = &v->list->items[1];
    int64_t n = sn_tensor_count(keys);
    size_t width = sn_dtype_bytes(keys->dtype);
    sn_emit_text_if(e, 1, name);
    sn_emit_int(e, 2, (uint64_t)keys->dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = (const uint8_t *)keys->data + (size_t)i * width;
        if (keys->dtype == SONDE_DTYPE_STRING) {
            const sonde_string *s = &((const sonde_string *)keys->data)[i];
            sn_emit_bytes(e, 4, s->data, s->size);
        } else {
            uint64_t num = 0;
            memcpy(&num, p, width);
            if (sn_dtype_is_signed(keys->dtype) && width < 8)
                num = (uint64_t)((int64_t)(num << (64 - 8 * width)) >> (64 - 8 * width));
            sn_emit_int(e, 3, num);
        }
    }
    sn_emit_mark mark = sn_emit_begin(e, 5);
    if (values->kind == SN_KIND_TENSOR)
        emit_elements(e, &values->t);
    else
        emit_list(e, values->list, NULL);
    sn_emit_end(e, mark);
}

static void emit_value(sn_emitter *e, const sn_slot *v, const char *name)
{
    if (v->kind == SN_KIND_TENSOR)
        sn_emit_tensor(e, &v->t, name);
    else if (v->kind == SN_KIND_MAP)
        emit_map(e, v, name);
    else if (v->kind != SN_KIND_NONE)
        emit_list(e, v->list, name);
}

/* Plain tensors all the way down, and maps of the two parts they must have. */
static bool writable(const sn_slot *v)
{
    if (v->kind == SN_KIND_NONE)
        return false;
    if (v->kind == SN_KIND_TENSOR)
        return sn_tensor_is_plain(&v->t);
    if (v->kind == SN_KIND_MAP &&
        (v->list->n != 2 || v->list->items[0].kind != SN_KIND_TENSOR ||
         (v->list->items[1].kind != SN_KIND_TENSOR && v->list->items[1].kind != SN_KIND_SEQUENCE)))
        return false;
    for (size_t i = 0; i < v->list->n; i++)
        if (!writable(&v->list->items[i]))
            return false;
    return true;
}

sonde_status sn_onnx_write_value(const sn_slot *v, const char *name, sn_onnx_write_fn write,
                                 void *user, sonde_error *err)
{
    if (!writable(v))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "value '%.200s' is absent or has an internal layout", name ? name : "");
    sn_allocator alloc;
    sn_emitter e;
    sonde_status st;
    sn_allocator_init_system(&alloc);
    sn_emit_start(&e, &alloc, write, user);
    emit_value(&e, v, name);
    SN_TRY_GOTO(st, sn_emit_second_pass(&e, err));
    emit_value(&e, v, name);
    st = sn_emit_finish(&e, err);
fail:
    sn_emit_free(&e);
    return st;
}
