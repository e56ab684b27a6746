/* SPDX-License-Identifier: Apache-2.0 */
/* TypeProto: tensors with known, named or unknown dims, and sequences, optionals and maps of them.
 * A sparse tensor type is a tensor type here, for sparse values are made dense; an opaque type says
 * nothing we can use and stays unknown. */
#include "onnx/reader.h"

static sonde_status symbol(sn_onnx_reader *r, const sn_wire *w, sn_dim *out)
{
    size_t n = sn_wire_bytes(w);
    uint32_t id = (uint32_t)(uintptr_t)sn_map_get_n(&r->symbols, w->at, n);
    if (!id) {
        const char *name;
        SN_TRY(sn_onnx_reader_name(r, w, "a dimension", &name));
        id = sn_graph_symbol(r->m->graph, name);
        if (!id || !sn_map_put_n(&r->symbols, name, n, (void *)(uintptr_t)id, NULL))
            return sn_fail_memory(r->err, n);
    }
    *out = sn_dim_symbol(id);
    return SONDE_OK;
}

static sonde_status read_dim(sn_onnx_reader *r, sn_wire w, sn_dim *out)
{
    sn_field f;
    sn_wire_status got;
    *out = SN_DIM_UNKNOWN;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(1)) {
            /* Some exporters write -1 for "any"; everyone reads it so. */
            *out = (int64_t)f.num < 0 ? SN_DIM_UNKNOWN : (int64_t)f.num;
        } else if (f.tag == SN_LEN(2)) {
            /* A question mark is no name: exporters that write it mean "any" each time. */
            const size_t n = sn_wire_bytes(&f.body);
            *out = SN_DIM_UNKNOWN;
            if (n > 1 || (n == 1 && *f.body.at != '?'))
                SN_TRY(symbol(r, &f.body, out));
        }
    }
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a dimension") : SONDE_OK;
}

static sonde_status read_shape(sn_onnx_reader *r, sn_wire w, const char *name, sn_type *t)
{
    sn_dim dims[SN_MAX_RANK];
    int32_t rank = 0;
    sn_field f;
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag != SN_LEN(1))
            continue;
        if (rank == SN_MAX_RANK)
            return sn_fail(r->err, SONDE_UNSUPPORTED, "value '%.200s' has more than %d dimensions",
                           name, SN_MAX_RANK);
        SN_TRY(read_dim(r, f.body, &dims[rank++]));
    }
    if (got == SN_WIRE_BROKEN)
        return sn_onnx_reader_broken(r, "a shape");
    sn_dim *copy = SN_NEW_N(r->arena, sn_dim, rank ? rank : 1);
    if (!copy)
        return sn_fail_memory(r->err, sizeof dims);
    for (int32_t i = 0; i < rank; i++)
        copy[i] = dims[i];
    t->rank = rank;
    t->dims = copy;
    return SONDE_OK;
}

static sonde_status read_dtype(sn_onnx_reader *r, uint64_t num, const char *name, sn_dtype *out)
{
    /* 0 is "undefined": hints that leave the element type open are common. */
    char text[40];
    if (num != 0 && !sn_dtype_valid((int64_t)num))
        return sn_fail(r->err, SONDE_INVALID_MODEL, "value '%.200s' has the unknown dtype %s", name,
                       sn_dtype_number_text((int64_t)num, text));
    *out = (sn_dtype)num;
    return SONDE_OK;
}

static sonde_status read_tensor_type(sn_onnx_reader *r, sn_wire w, const char *name, sn_type *t)
{
    sn_field f;
    sn_wire_status got;
    *t = (sn_type){.kind = SN_KIND_TENSOR, .rank = -1};
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(1))
            SN_TRY(read_dtype(r, f.num, name, &t->dtype));
        else if (f.tag == SN_LEN(2))
            SN_TRY(read_shape(r, f.body, name, t));
    }
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a tensor type") : SONDE_OK;
}

/* Sequence and optional: field 1 the element. Map: field 1 the key type, field 2 the value. */
static sonde_status read_nested_type(sn_onnx_reader *r, sn_wire w, const char *name, sn_kind kind,
                                     sn_type *t)
{
    sn_field f;
    sn_wire_status got;
    sn_type *elem = SN_NEW(r->arena, sn_type);
    if (!elem)
        return sn_fail_memory(r->err, sizeof *elem);
    *t = (sn_type){.kind = kind, .rank = -1, .elem = elem};
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        if (kind == SN_KIND_MAP && f.tag == SN_INT(1))
            SN_TRY(read_dtype(r, f.num, name, &t->dtype));
        else if (f.tag == SN_LEN(kind == SN_KIND_MAP ? 2 : 1))
            SN_TRY(sn_read_type(r, f.body, name, elem));
    }
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a type") : SONDE_OK;
}

sonde_status sn_read_type(sn_onnx_reader *r, sn_wire w, const char *name, sn_type *out)
{
    sn_field f;
    sn_wire_status got;
    *out = (sn_type){.rank = -1};
    SN_TRY(sn_onnx_reader_enter(r, "types"));
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(1):
        case SN_LEN(8):
            SN_TRY(read_tensor_type(r, f.body, name, out));
            break;
        case SN_LEN(4):
            SN_TRY(read_nested_type(r, f.body, name, SN_KIND_SEQUENCE, out));
            break;
        case SN_LEN(5):
            SN_TRY(read_nested_type(r, f.body, name, SN_KIND_MAP, out));
            break;
        case SN_LEN(9):
            SN_TRY(read_nested_type(r, f.body, name, SN_KIND_OPTIONAL, out));
            break;
        default:
            break;
        }
    }
    sn_onnx_reader_leave(r);
    return got == SN_WIRE_BROKEN ? sn_onnx_reader_broken(r, "a type") : SONDE_OK;
}
