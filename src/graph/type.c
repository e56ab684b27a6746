/* SPDX-License-Identifier: Apache-2.0 */
/* Types: questions about shapes, their text form, deep copies. */
#include "graph/type.h"

#include <stdio.h>
#include <string.h>

#define MAX_TYPE_DEPTH 64 /* sequences of optionals of … */

bool sn_type_is_concrete(const sn_type *t)
{
    if (t->kind != SN_KIND_TENSOR || t->dtype == SONDE_DTYPE_UNDEFINED || t->rank < 0)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (!sn_dim_known(t->dims[i]))
            return false;
    return true;
}

bool sn_type_count(const sn_type *t, int64_t *count)
{
    return sn_type_is_concrete(t) && sn_dims_count(t->dims, t->rank, count);
}

bool sn_fact_bytes(const sn_fact *f, size_t *bytes)
{
    int64_t n;
    return sn_layout_count(f->form.layout, f->type.dims, f->type.rank, &n) &&
           sn_size_mul((size_t)n, sn_dtype_bytes(sn_fact_stored(f)), bytes);
}

bool sn_type_fits(const sn_type *t)
{
    int64_t n = 1;
    for (int i = 0; t->kind == SN_KIND_TENSOR && i < t->rank; i++) {
        const sn_dim d = t->dims[i];
        if (sn_dim_known(d) && d > 0 && (!sn_i64_mul(n, d, &n) || n > SN_MAX_ELEMS))
            return false;
    }
    return true;
}

bool sn_type_same_shape(const sn_type *a, const sn_type *b)
{
    if (a->kind != SN_KIND_TENSOR || b->kind != SN_KIND_TENSOR || a->rank < 0 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!sn_dim_same(a->dims[i], b->dims[i]))
            return false;
    return true;
}

bool sn_fact_ints_known(const sn_fact *f)
{
    int64_t count;
    if (!f->ints || !sn_dtype_is_int(f->type.dtype) || sn_dtype_bits(f->type.dtype) < 8 ||
        !sn_type_count(&f->type, &count) || count != f->n_ints)
        return false;
    for (int64_t i = 0; i < f->n_ints; i++)
        if (!sn_dim_known(f->ints[i]) || f->ints[i] == SN_DIM_FIRST_KNOWN) /* clamped there */
            return false;
    return true;
}

void sn_fact_write_ints(const sn_fact *f, void *data)
{
    size_t bytes = sn_dtype_bytes(f->type.dtype);
    for (int64_t i = 0; i < f->n_ints; i++)
        memcpy((uint8_t *)data + (size_t)i * bytes, &f->ints[i], bytes);
}

typedef struct text {
    char *buf;
    size_t cap, n;
} text;

static void SONDE_PRINTF(2, 3) put(text *t, const char *fmt, ...)
{
    if (t->n + 1 >= t->cap)
        return;
    va_list args;
    va_start(args, fmt);
    int k = vsnprintf(t->buf + t->n, t->cap - t->n, fmt, args);
    va_end(args);
    if (k > 0)
        t->n = t->n + (size_t)k < t->cap ? t->n + (size_t)k : t->cap - 1;
}

static void put_type(text *out, const sn_type *t, const char *const *symbols, int depth)
{
    static const char *const words[] = {
        [SN_KIND_SEQUENCE] = "seq", [SN_KIND_OPTIONAL] = "optional", [SN_KIND_MAP] = "map"};
    if (!t || t->kind == SN_KIND_NONE || depth > MAX_TYPE_DEPTH) {
        put(out, "?");
        return;
    }
    if (t->kind != SN_KIND_TENSOR) {
        put(out, "%s(", words[t->kind]);
        if (t->kind == SN_KIND_MAP)
            put(out, "%s, ", sn_dtype_name(t->dtype));
        put_type(out, t->elem, symbols, depth + 1);
        put(out, ")");
        return;
    }
    put(out, "%s[", sn_dtype_name(t->dtype));
    if (t->rank < 0)
        put(out, "...");
    for (int i = 0; i < t->rank; i++) {
        sn_dim d = t->dims[i];
        const char *sep = i ? ", " : "";
        if (sn_dim_known(d))
            put(out, "%s%lld", sep, (long long)d);
        else if (d == SN_DIM_UNKNOWN || (symbols && !symbols[sn_dim_symbol_id(d) - 1]))
            put(out, "%s?", sep);
        else if (symbols)
            put(out, "%s%s", sep, symbols[sn_dim_symbol_id(d) - 1]);
        else
            put(out, "%ss%u", sep, (unsigned)sn_dim_symbol_id(d));
    }
    put(out, "]");
}

const char *sn_type_text(const sn_type *t, const char *const *symbols, char *buf, size_t cap)
{
    text out = {buf, cap, 0};
    if (cap)
        buf[0] = '\0';
    put_type(&out, t, symbols, 0);
    return buf;
}

static sonde_status copy_type(sn_type *dst, const sn_type *src, sn_arena *arena, int depth,
                              sonde_error *err)
{
    if (depth > MAX_TYPE_DEPTH)
        return sn_fail(err, SONDE_LIMIT, "a type is nested more than %d levels deep",
                       MAX_TYPE_DEPTH);
    sn_type made = *src;
    if (src->kind == SN_KIND_TENSOR && src->rank > 0) {
        sn_dim *dims = SN_NEW_N(arena, sn_dim, src->rank);
        if (!dims)
            return sn_fail_memory(err, (size_t)src->rank * sizeof *dims);
        memcpy(dims, src->dims, (size_t)src->rank * sizeof *dims);
        made.dims = dims;
    }
    if (src->elem) {
        sn_type *elem = SN_NEW(arena, sn_type);
        if (!elem)
            return sn_fail_memory(err, sizeof *elem);
        SN_TRY(copy_type(elem, src->elem, arena, depth + 1, err));
        made.elem = elem;
    }
    *dst = made;
    return SONDE_OK;
}

sonde_status sn_type_copy(sn_type *dst, const sn_type *src, sn_arena *arena, sonde_error *err)
{
    return copy_type(dst, src, arena, 0, err);
}
