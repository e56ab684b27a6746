/* SPDX-License-Identifier: Apache-2.0 */
/* AttributeProto. One walk counts and finds the single values, a second one fills the list the
 * attribute's type names. Files of the first years leave the type out: then what is there decides.
 */
#include <string.h>

#include "onnx/reader.h"

/* AttributeType numbers sn_attr_kind does not keep: lists of sparse tensors become lists of (dense)
 * tensors, lists of types n types. */
enum { SPARSE_TENSORS = 12, TYPE_PROTOS = 14 };

typedef struct attr_fields {
    sn_wire name, ref, s, t, g, tp, sparse;
    uint64_t type, i;
    float f;
    bool has_f, has_i, has_s, has_t, has_g, has_tp, has_sparse;
    size_t floats, ints, strings, tensors, graphs, sparse_tensors, types;
} attr_fields;

static sonde_status collect(sn_onnx_reader *r, sn_wire w, attr_fields *a)
{
    sn_field f;
    sn_wire_status got;
    bool ok = true;
    while (ok && (got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(1):
            a->name = f.body;
            break;
        case SN_F32(2):
            a->f = sn_wire_float(f.num);
            a->has_f = true;
            break;
        case SN_INT(3):
            a->i = f.num;
            a->has_i = true;
            break;
        case SN_LEN(4):
            a->s = f.body;
            a->has_s = true;
            break;
        case SN_LEN(5):
            a->t = f.body;
            a->has_t = true;
            break;
        case SN_LEN(6):
            a->g = f.body;
            a->has_g = true;
            break;
        case SN_F32(7):
        case SN_LEN(7):
            ok = sn_wire_count(&f, SN_WIRE_FIXED32, &a->floats);
            break;
        case SN_INT(8):
        case SN_LEN(8):
            ok = sn_wire_count(&f, SN_WIRE_VARINT, &a->ints);
            break;
        case SN_LEN(9):
            a->strings++;
            break;
        case SN_LEN(10):
            a->tensors++;
            break;
        case SN_LEN(11):
            a->graphs++;
            break;
        case SN_LEN(14):
            a->tp = f.body;
            a->has_tp = true;
            break;
        case SN_LEN(15):
            a->types++;
            break;
        case SN_INT(20):
            a->type = f.num;
            break;
        case SN_LEN(21):
            a->ref = f.body;
            break;
        case SN_LEN(22):
            a->sparse = f.body;
            a->has_sparse = true;
            break;
        case SN_LEN(23):
            a->sparse_tensors++;
            break;
        default:
            break;
        }
    }
    return ok && got == SN_WIRE_END ? SONDE_OK : sn_onnx_reader_broken(r, "an attribute");
}

static uint64_t guess_type(const attr_fields *a)
{
    return a->has_t            ? SN_ATTR_TENSOR
           : a->has_g          ? SN_ATTR_GRAPH
           : a->has_sparse     ? SN_ATTR_SPARSE_TENSOR
           : a->has_tp         ? SN_ATTR_TYPE_PROTO
           : a->floats         ? SN_ATTR_FLOATS
           : a->ints           ? SN_ATTR_INTS
           : a->strings        ? SN_ATTR_STRINGS
           : a->tensors        ? SN_ATTR_TENSORS
           : a->graphs         ? SN_ATTR_GRAPHS
           : a->sparse_tensors ? SPARSE_TENSORS
           : a->types          ? TYPE_PROTOS
           : a->has_s          ? SN_ATTR_STRING
           : a->has_f          ? SN_ATTR_FLOAT
           : a->has_i          ? SN_ATTR_INT
                               : 0;
}

/* A string value: bytes, copied so that a terminator follows them. */
static sonde_status copy_string(sn_onnx_reader *r, const sn_wire *w, sonde_string *out)
{
    size_t n = sn_wire_bytes(w);
    char *copy = sn_arena_alloc(r->arena, n + 1, 1);
    if (!copy)
        return sn_fail_memory(r->err, n + 1);
    if (n)
        memcpy(copy, w->at, n);
    *out = (sonde_string){copy, n};
    return SONDE_OK;
}

/* Room for the list of an attribute; even an empty list has a place. */
static sonde_status new_list(sn_onnx_reader *r, size_t n, size_t elem_bytes, sn_attr *out,
                             void **list)
{
    out->n = n;
    *list = sn_arena_array(r->arena, n ? n : 1, elem_bytes, 8);
    return *list ? SONDE_OK : sn_fail_memory(r->err, n * elem_bytes);
}

static sonde_status fill_numbers(sn_onnx_reader *r, sn_wire w, size_t n, sn_attr *out)
{
    bool floats = out->kind == SN_ATTR_FLOATS;
    int elem = floats ? SN_WIRE_FIXED32 : SN_WIRE_VARINT;
    uint32_t number = floats ? 7 : 8;
    void *list;
    SN_TRY(new_list(r, n, floats ? sizeof(float) : sizeof(int64_t), out, &list));
    if (floats)
        out->floats = list;
    else
        out->ints = list;
    sn_field f;
    size_t k = 0;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag != SN_TAG(number, elem) && f.tag != SN_LEN(number))
            continue;
        sn_wire_iter it;
        uint64_t num;
        sn_wire_iter_start(&it, &f, elem);
        for (; sn_wire_iter_next(&it, &num); k++) {
            if (floats)
                ((float *)list)[k] = sn_wire_float(num);
            else
                ((int64_t *)list)[k] = (int64_t)num;
        }
    }
    return SONDE_OK;
}

/* Lists of messages: element k is read by the kind. */
static sonde_status fill_messages(sn_onnx_reader *r, sn_wire w, sn_graph *g, uint64_t type,
                                  size_t n, sn_attr *out)
{
    static const struct {
        uint8_t type, number;
        sn_attr_kind kind;
        size_t elem_bytes;
    } rows[] = {
        {SN_ATTR_STRINGS, 9, SN_ATTR_STRINGS, sizeof(sonde_string)},
        {SN_ATTR_TENSORS, 10, SN_ATTR_TENSORS, sizeof(sn_tensor *)},
        {SN_ATTR_GRAPHS, 11, SN_ATTR_GRAPHS, sizeof(sn_graph *)},
        {SPARSE_TENSORS, 23, SN_ATTR_TENSORS, sizeof(sn_tensor *)},
        {TYPE_PROTOS, 15, SN_ATTR_TYPE_PROTO, sizeof(sn_type)},
    };
    size_t row = 0;
    while (rows[row].type != type)
        row++;
    void *list;
    SN_TRY(new_list(r, n, rows[row].elem_bytes, out, &list));
    out->kind = rows[row].kind;
    out->n = 0;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag != SN_LEN(rows[row].number))
            continue;
        size_t k = out->n;
        switch (type) {
        case SN_ATTR_STRINGS:
            out->strings = list;
            SN_TRY(copy_string(r, &f.body, &((sonde_string *)list)[k]));
            break;
        case SN_ATTR_TENSORS:
            out->tensors = list;
            SN_TRY(sn_read_tensor(r, f.body, "tensor", &((const sn_tensor **)list)[k], NULL));
            break;
        case SPARSE_TENSORS:
            out->tensors = list;
            SN_TRY(
                sn_read_sparse(r, f.body, "sparse tensor", &((const sn_tensor **)list)[k], NULL));
            break;
        case SN_ATTR_GRAPHS:
            out->graphs = list;
            SN_TRY(r->read_body(r, f.body, g, &((sn_graph **)list)[k]));
            break;
        default:
            out->type = list;
            SN_TRY(sn_read_type(r, f.body, out->name, &((sn_type *)list)[k]));
            break;
        }
        out->n++;
    }
    return SONDE_OK;
}

static sonde_status missing(sn_onnx_reader *r, const sn_attr *a)
{
    return sn_fail(r->err, SONDE_INVALID_MODEL, "attribute '%.200s' has a type but no value",
                   a->name);
}

static sonde_status unknown_type(sn_onnx_reader *r, const sn_attr *a, uint64_t type)
{
    return sn_fail(r->err, SONDE_INVALID_MODEL, "attribute '%.200s' has the unknown type %lld",
                   a->name, (long long)type);
}

static sonde_status fill(sn_onnx_reader *r, sn_wire w, sn_graph *g, const attr_fields *a,
                         uint64_t type, sn_attr *out)
{
    out->kind = (sn_attr_kind)type;
    out->n = 1;
    switch (type) {
    case SN_ATTR_FLOAT: /* proto3 writers leave out zeros, so absent is 0 */
        out->f = a->f;
        return SONDE_OK;
    case SN_ATTR_INT:
        out->i = (int64_t)a->i;
        return SONDE_OK;
    case SN_ATTR_STRING:
        return copy_string(r, &a->s, &out->s);
    case SN_ATTR_TENSOR:
        return a->has_t ? sn_read_tensor(r, a->t, "tensor", &out->tensor, NULL) : missing(r, out);
    case SN_ATTR_SPARSE_TENSOR:
        return a->has_sparse ? sn_read_sparse(r, a->sparse, "sparse tensor", &out->tensor, NULL)
                             : missing(r, out);
    case SN_ATTR_GRAPH:
        return a->has_g ? r->read_body(r, a->g, g, &out->graph) : missing(r, out);
    case SN_ATTR_TYPE_PROTO: {
        sn_type *t = SN_NEW(r->arena, sn_type);
        if (!t)
            return sn_fail_memory(r->err, sizeof *t);
        out->type = t;
        return a->has_tp ? sn_read_type(r, a->tp, out->name, t) : missing(r, out);
    }
    case SN_ATTR_FLOATS:
        return fill_numbers(r, w, a->floats, out);
    case SN_ATTR_INTS:
        return fill_numbers(r, w, a->ints, out);
    case SN_ATTR_STRINGS:
        return fill_messages(r, w, g, type, a->strings, out);
    case SN_ATTR_TENSORS:
        return fill_messages(r, w, g, type, a->tensors, out);
    case SN_ATTR_GRAPHS:
        return fill_messages(r, w, g, type, a->graphs, out);
    case SPARSE_TENSORS:
        return fill_messages(r, w, g, type, a->sparse_tensors, out);
    case TYPE_PROTOS:
        return fill_messages(r, w, g, type, a->types, out);
    default:
        return unknown_type(r, out, type);
    }
}

sonde_status sn_read_attr(sn_onnx_reader *r, sn_wire w, sn_graph *g, sn_attr *out)
{
    attr_fields a = {0};
    *out = (sn_attr){0};
    SN_TRY(collect(r, w, &a));
    SN_TRY(sn_onnx_reader_name(r, &a.name, "an attribute", &out->name));
    if (!out->name[0])
        return sn_fail(r->err, SONDE_INVALID_MODEL, "an attribute has no name");
    uint64_t type = a.type ? a.type : guess_type(&a);
    if (a.ref.at != a.ref.end) {
        if (type > TYPE_PROTOS)
            return unknown_type(r, out, type);
        out->kind = (sn_attr_kind)type;
        return sn_onnx_reader_name(r, &a.ref, "an attribute", &out->ref);
    }
    sonde_status st = fill(r, w, g, &a, type, out);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY && !r->located)
        sn_error_prefix(r->err, "attribute '%.200s'", out->name);
    return st;
}
