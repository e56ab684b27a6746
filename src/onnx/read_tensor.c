/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers and tensor attributes. Raw contents stay where they lie in the file: small ones and
 * those of attributes only when they are aligned there, large initializers always, so that loading
 * never touches them (whoever reads their numbers calls sn_value_make_readable first). The rest is
 * decoded once into memory of the model. Sparse tensors are made dense, within a bound on how much
 * memory a small file may ask for. */
#include <string.h>

#include "onnx/reader.h"

#define SPARSE_FREE_BYTES ((size_t)64 << 20)
#define SPARSE_MAX_GROWTH ((size_t)1000)

static sonde_status new_tensor(sn_onnx_reader *r, sn_dtype dtype, int rank, const int64_t *dims,
                               size_t bytes, sn_tensor **out)
{
    sn_tensor *t = SN_NEW(r->arena, sn_tensor);
    if (!t)
        return sn_fail_memory(r->err, sizeof *t);
    t->dtype = dtype;
    t->rank = rank;
    if (rank)
        memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    t->bytes = bytes;
    *out = t;
    return SONDE_OK;
}

/* Any byte but 0 and 1? Kernels may rely on clean truth values. */
static bool has_odd_truth(const sn_tensor_source *s)
{
    for (size_t i = 0; i < s->bytes; i++)
        if (s->raw[i] > 1)
            return true;
    return false;
}

static sonde_status read_source(sn_onnx_reader *r, sn_tensor_source *s, bool misaligned,
                                const sn_tensor **out)
{
    sn_tensor *t = NULL;
    SN_TRY(new_tensor(r, s->dtype, s->rank, s->dims, s->bytes, &t));
    bool view = sn_tensor_source_is_view(s);
    if (view && s->dtype == SONDE_DTYPE_BOOL)
        view = !has_odd_truth(s);
    else if (!view && s->raw && sn_dtype_bits(s->dtype) >= 8)
        view = misaligned && s->bytes > SN_READER_SMALL_BYTES;
    if (view) {
        t->data = (void *)(uintptr_t)s->raw; /* mapped read-only; nobody writes to a constant */
    } else {
        SN_TRY(sn_onnx_reader_memory(r, s->bytes, &t->data, &t->owner));
        sn_tensor_source_fill(s, t->data);
    }
    *out = t;
    return SONDE_OK;
}

static sonde_status read_tensor(sn_onnx_reader *r, sn_wire w, const char *what, bool misaligned,
                                const sn_tensor **out, const char **name)
{
    sn_tensor_source s;
    SN_TRY(sn_tensor_source_open(&s, w, what, r->err));
    if (name)
        SN_TRY(sn_onnx_reader_name(r, &s.name, what, name));
    if (s.external)
        SN_TRY(sn_external_resolve(r, &s));
    return read_source(r, &s, misaligned, out);
}

sonde_status sn_read_tensor(sn_onnx_reader *r, sn_wire w, const char *what, const sn_tensor **out,
                            const char **name)
{
    return read_tensor(r, w, what, false, out, name);
}

sonde_status sn_read_initializer(sn_onnx_reader *r, sn_wire w, const sn_tensor **out,
                                 const char **name)
{
    return read_tensor(r, w, "initializer", true, out, name);
}

/* ---- sparse ---- */

typedef struct sparse_parts {
    sn_wire values, indices;
    bool has_values, has_indices;
    int rank;
    int64_t dims[SN_MAX_RANK];
} sparse_parts;

static sonde_status sparse_fields(sn_onnx_reader *r, sn_wire w, const char *what, sparse_parts *p)
{
    sn_field f;
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD) {
        size_t n = 0;
        sn_wire_iter it;
        uint64_t num;
        switch (f.tag) {
        case SN_LEN(1):
            p->values = f.body;
            p->has_values = true;
            break;
        case SN_LEN(2):
            p->indices = f.body;
            p->has_indices = true;
            break;
        case SN_INT(3):
        case SN_LEN(3):
            if (!sn_wire_count(&f, SN_WIRE_VARINT, &n))
                return sn_onnx_reader_broken(r, what);
            if (n > (size_t)(SN_MAX_RANK - p->rank))
                return sn_fail(r->err, SONDE_UNSUPPORTED, "%s has more than %d dimensions", what,
                               SN_MAX_RANK);
            sn_wire_iter_start(&it, &f, SN_WIRE_VARINT);
            while (sn_wire_iter_next(&it, &num))
                p->dims[p->rank++] = (int64_t)num;
            break;
        default:
            break;
        }
    }
    if (got == SN_WIRE_BROKEN)
        return sn_onnx_reader_broken(r, what);
    if (!p->has_values)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "%s has no values", what);
    return SONDE_OK;
}

/* Dense size within bounds: together, sparse tensors may take 64 MiB, or a thousand times their own
 * bytes in the file. */
static sonde_status sparse_bounds(sn_onnx_reader *r, const sparse_parts *p,
                                  const sn_tensor_source *v, size_t file_bytes, const char *what,
                                  int64_t *count, size_t *bytes)
{
    if (!sn_dims_count(p->dims, p->rank, count) ||
        !sn_tensor_bytes(v->dtype, p->dims, p->rank, bytes))
        return sn_fail(
            r->err, SONDE_INVALID_MODEL,
            "%s '%.*s' has a shape with a negative dimension, or is too large for memory", what,
            SN_SHOW(v->name));
    size_t total, allowed;
    r->sparse_bytes += file_bytes;
    if (!sn_size_mul(r->sparse_bytes, SPARSE_MAX_GROWTH, &allowed))
        allowed = SIZE_MAX;
    if (!sn_size_add(r->dense_bytes, *bytes, &total) ||
        (total > SPARSE_FREE_BYTES && total > allowed))
        return sn_fail(r->err, SONDE_LIMIT,
                       "%s '%.*s' would have %zu bytes as a dense tensor, which is too much for "
                       "its %zu bytes in the file",
                       what, SN_SHOW(v->name), *bytes, file_bytes);
    r->dense_bytes = total;
    return SONDE_OK;
}

/* Linear position of value i; false when an index is outside its dimension. */
static bool sparse_position(const sparse_parts *p, const int64_t *indices, bool linear,
                            int64_t count, int64_t i, int64_t *at)
{
    if (linear) {
        *at = indices[i];
        return *at >= 0 && *at < count;
    }
    int64_t pos = 0;
    for (int k = 0; k < p->rank; k++) {
        int64_t x = indices[i * p->rank + k];
        if (x < 0 || x >= p->dims[k])
            return false;
        pos = pos * p->dims[k] + x;
    }
    *at = pos;
    return true;
}

static sonde_status scatter(sn_onnx_reader *r, const sparse_parts *p, const sn_tensor *values,
                            const sn_tensor *indices, const sn_tensor_source *v, const char *what,
                            int64_t count, sn_tensor *dense)
{
    int64_t nnz = sn_tensor_count(values);
    size_t width = sn_dtype_bytes(values->dtype);
    bool linear = indices && indices->rank == 1;
    if (values->dtype == SONDE_DTYPE_STRING) {
        sonde_string *s = dense->data;
        for (int64_t i = 0; i < count; i++)
            s[i] = (sonde_string){"", 0};
    } else {
        memset(dense->data, 0, dense->bytes);
    }
    if (nnz == 0)
        return SONDE_OK;
    if (!indices || indices->dtype != SONDE_DTYPE_I64 || indices->dims[0] != nnz ||
        !(linear || (indices->rank == 2 && indices->dims[1] == p->rank)))
        return sn_fail(r->err, SONDE_INVALID_MODEL,
                       "%s '%.*s' needs indices of type i64 and shape [%lld] or [%lld, %d]", what,
                       SN_SHOW(v->name), (long long)nnz, (long long)nnz, p->rank);
    for (int64_t i = 0; i < nnz; i++) {
        int64_t at;
        if (!sparse_position(p, indices->data, linear, count, i, &at))
            return sn_fail(r->err, SONDE_INVALID_MODEL,
                           "%s '%.*s' has an index outside its shape (entry %lld)", what,
                           SN_SHOW(v->name), (long long)i);
        memcpy((uint8_t *)dense->data + (size_t)at * width,
               (const uint8_t *)values->data + (size_t)i * width, width);
    }
    return SONDE_OK;
}

sonde_status sn_read_sparse(sn_onnx_reader *r, sn_wire w, const char *what, const sn_tensor **out,
                            const char **name)
{
    sparse_parts p = {0};
    sn_tensor_source v;
    int64_t count;
    size_t bytes, file_bytes = sn_wire_bytes(&w);
    sn_tensor *dense = NULL;
    const sn_tensor *values, *indices = NULL;
    SN_TRY(sparse_fields(r, w, what, &p));
    SN_TRY(sn_tensor_source_open(&v, p.values, what, r->err));
    if (v.rank != 1)
        return sn_fail(r->err, SONDE_INVALID_MODEL, "%s '%.*s' has values of rank %d, expected 1",
                       what, SN_SHOW(v.name), v.rank);
    SN_TRY(sparse_bounds(r, &p, &v, file_bytes, what, &count, &bytes));
    SN_TRY(sn_read_tensor(r, p.values, what, &values, name));
    if (p.has_indices)
        SN_TRY(sn_read_tensor(r, p.indices, what, &indices, NULL));
    SN_TRY(new_tensor(r, v.dtype, p.rank, p.dims, bytes, &dense));
    SN_TRY(sn_onnx_reader_memory(r, bytes, &dense->data, &dense->owner));
    SN_TRY(scatter(r, &p, values, indices, &v, what, count, dense));
    *out = dense;
    return SONDE_OK;
}
