/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: initializers and attributes. Elements are taken out of whichever form they are in,
 * changed, and put back; shapes change with or without the contents that fit them. Small tensors of
 * integers are picked most: axes, shapes, indices and counts live in them. */
#include <string.h>

#include "fuzz/mutate.h"

#define MAX_RANK  16
#define MAX_ELEMS 4096 /* larger ones are left alone */

/* Elements as they are stored: below a byte several are one here, 128-bit complex numbers two. */
typedef struct elements {
    uint32_t dtype, rank;
    int64_t dims[MAX_RANK];
    uint64_t *bits;
    size_t n;
    uint32_t elem_bytes;
    bool typed; /* was in a typed field */
} elements;

static uint32_t dtype_bits(uint32_t dtype)
{
    static const uint8_t bits[] = {
#define BITS(name, number, onnx, text, bits) [number] = bits,
        SONDE_DTYPE_LIST(BITS)
#undef BITS
    };
    return dtype < sizeof bits ? bits[dtype] : 0;
}

static uint32_t stored_bytes(uint32_t dtype)
{
    uint32_t bits = dtype_bits(dtype);
    return bits <= 8 ? 1 : bits > 64 ? 8 : bits / 8;
}

/* How many stored elements the dims ask for; SIZE_MAX: too many to make. */
static size_t wanted(const elements *e)
{
    uint64_t n = 1;
    for (uint32_t k = 0; k < e->rank; k++) {
        if (e->dims[k] < 0 || e->dims[k] > MAX_ELEMS)
            return SIZE_MAX;
        n *= (uint64_t)e->dims[k];
        if (n > MAX_ELEMS)
            return SIZE_MAX;
    }
    uint64_t bytes = (n * dtype_bits(e->dtype) + 7) / 8;
    return (size_t)(bytes / e->elem_bytes);
}

static uint32_t typed_field(uint32_t dtype)
{
    switch (dtype) {
    case SONDE_DTYPE_F32:
    case SONDE_DTYPE_C64:
        return TENSOR_F32;
    case SONDE_DTYPE_F64:
    case SONDE_DTYPE_C128:
        return TENSOR_F64;
    case SONDE_DTYPE_I64:
        return TENSOR_I64;
    case SONDE_DTYPE_U32:
    case SONDE_DTYPE_U64:
        return TENSOR_U64;
    default:
        return TENSOR_I32;
    }
}

static bool load(mutation *m, const pt_field *t, elements *e)
{
    const pt_field *dtype = pt_find(t, TENSOR_DTYPE), *raw = pt_find(t, TENSOR_RAW);
    *e = (elements){.dtype = dtype ? (uint32_t)dtype->num : 0};
    e->elem_bytes = stored_bytes(e->dtype);
    if (e->dtype == SONDE_DTYPE_STRING || dtype_bits(e->dtype) == 0)
        return false;
    for (uint32_t k = 0; k < t->n_kids; k++)
        if (t->kids[k]->number == TENSOR_DIM && e->rank < MAX_RANK)
            e->dims[e->rank++] = (int64_t)t->kids[k]->num;
    uint32_t field = typed_field(e->dtype);
    e->typed = !raw;
    size_t n = raw ? raw->n_bytes / e->elem_bytes : pt_count(t, field);
    if (n > MAX_ELEMS)
        return false;
    e->bits = pt_alloc(m->arena, n * sizeof *e->bits);
    if (raw)
        for (size_t k = 0; k < n; k++)
            memcpy(&e->bits[k], raw->bytes + k * e->elem_bytes, e->elem_bytes);
    else
        for (uint32_t k = 0; k < t->n_kids; k++)
            if (t->kids[k]->number == field)
                e->bits[e->n++] = t->kids[k]->num;
    e->n = n;
    return true;
}

static void store(mutation *m, pt_field *t, const elements *e)
{
    static const uint32_t contents[] = {TENSOR_DIM, TENSOR_F32, TENSOR_I32, TENSOR_I64,
                                        TENSOR_RAW, TENSOR_F64, TENSOR_U64};
    for (size_t k = 0; k < sizeof contents / sizeof contents[0]; k++)
        pt_remove_all(t, contents[k]);
    for (uint32_t k = 0; k < e->rank; k++)
        pt_add_num(m->arena, t, TENSOR_DIM, 0, (uint64_t)e->dims[k]);
    pt_set_num(m->arena, t, TENSOR_DTYPE, e->dtype);
    uint32_t field = typed_field(e->dtype);
    if (e->typed) {
        uint8_t wire = field == TENSOR_F32 ? 5 : field == TENSOR_F64 ? 1 : 0;
        for (size_t k = 0; k < e->n; k++)
            pt_add_num(m->arena, t, field, wire, e->bits[k]);
        return;
    }
    uint8_t *raw = pt_alloc(m->arena, e->n * e->elem_bytes);
    for (size_t k = 0; k < e->n; k++)
        memcpy(raw + k * e->elem_bytes, &e->bits[k], e->elem_bytes);
    pt_add_bytes(m->arena, t, TENSOR_RAW, raw, e->n * e->elem_bytes);
}

/* Contents as the dims ask for, the old ones over and over. */
static void fit(mutation *m, elements *e)
{
    size_t n = wanted(e);
    if (n == SIZE_MAX)
        return;
    uint64_t *bits = pt_alloc(m->arena, n * sizeof *bits);
    for (size_t k = 0; k < n; k++)
        bits[k] = e->n ? e->bits[k % e->n] : 0;
    e->bits = bits;
    e->n = n;
}

static bool is_integer(uint32_t dtype)
{
    return dtype == SONDE_DTYPE_I64 || dtype == SONDE_DTYPE_I32 || dtype == SONDE_DTYPE_I16 ||
           dtype == SONDE_DTYPE_I8;
}

static uint64_t change(mutation *m, const elements *e, uint64_t bits)
{
    static const uint16_t halves[] = {0, 0x3C00, 0x7C00, 0xFC00, 0x7E00, 0x8000, 1, 0x7BFF};
    if (e->dtype == SONDE_DTYPE_F32 || e->dtype == SONDE_DTYPE_C64) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        f = mu_float(m, f);
        memcpy(&low, &f, sizeof low);
        return low;
    }
    if (e->dtype == SONDE_DTYPE_F64 || e->dtype == SONDE_DTYPE_C128) {
        double d;
        memcpy(&d, &bits, sizeof d);
        d = mu_one_in(m, 4) ? d * 1e200 : (double)mu_float(m, d > -1e38 && d < 1e38 ? (float)d : 0);
        memcpy(&bits, &d, sizeof bits);
        return bits;
    }
    if (e->dtype == SONDE_DTYPE_F16 || e->dtype == SONDE_DTYPE_BF16)
        return mu_one_in(m, 2) ? halves[mu_below(m, 8)] : mu_below(m, 65536);
    unsigned shift = 64 - 8 * e->elem_bytes;
    int64_t old = is_integer(e->dtype) ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
    uint64_t made = (uint64_t)mu_int(m, old);
    return made << shift >> shift;
}

static bool small_integers(const pt_field *parent, const pt_field *t)
{
    (void)parent;
    const pt_field *dtype = pt_find(t, TENSOR_DTYPE), *raw = pt_find(t, TENSOR_RAW);
    return dtype && (dtype->num == SONDE_DTYPE_I64 || dtype->num == SONDE_DTYPE_I32) &&
           (raw ? raw->n_bytes > 0 && raw->n_bytes <= 512 : t->n_kids < 64);
}

static bool pick(mutation *m, mu_spot *s, elements *e)
{
    if (mu_one_in(m, 3) || !mu_pick(m, PT_TENSOR, small_integers, s))
        if (!mu_pick(m, PT_TENSOR, NULL, s))
            return false;
    return load(m, s->field, e);
}

static bool value(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e) || e.n == 0)
        return false;
    for (uint32_t k = 1 + mu_below(m, 3) * mu_below(m, 2); k > 0; k--) {
        size_t at = mu_below(m, (uint32_t)e.n);
        e.bits[at] = change(m, &e, e.bits[at]);
    }
    store(m, s.field, &e);
    return true;
}

/* All elements the same, or two swapped: duplicates and order matter to axes and permutations. */
static bool order(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e) || e.n < 2)
        return false;
    size_t a = mu_below(m, (uint32_t)e.n), b = mu_below(m, (uint32_t)e.n);
    uint64_t kept = e.bits[a];
    e.bits[a] = e.bits[b];
    if (mu_one_in(m, 2))
        e.bits[b] = kept;
    store(m, s.field, &e);
    return true;
}

/* A list of one dimension grows or shrinks; a scalar becomes one, or the other way round. */
static bool list_length(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e) || e.rank > 1)
        return false;
    uint32_t how = mu_below(m, 6);
    if (e.rank == 0 || how == 0) {
        e.dims[0] = (int64_t)e.n;
        e.rank = !e.rank;
        fit(m, &e);
    } else {
        int64_t n = how < 3 ? (int64_t)e.n + 1 : how < 5 ? (int64_t)e.n - 1 : mu_below(m, 10);
        e.dims[0] = n < 0 ? 0 : n;
        fit(m, &e);
        if (how == 1 && e.n)
            e.bits[e.n - 1] = change(m, &e, e.bits[e.n - 1]);
    }
    store(m, s.field, &e);
    return true;
}

static bool dim(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e) || e.rank == 0)
        return false;
    uint32_t at = mu_below(m, e.rank);
    if (mu_one_in(m, 6))
        e.dims[at] = mu_int(m, e.dims[at]);
    else
        e.dims[at] = mu_one_in(m, 3) ? (int64_t)((uint64_t)e.dims[at] + 1) : mu_below(m, 9);
    if (!mu_one_in(m, 30))
        fit(m, &e);
    store(m, s.field, &e);
    return true;
}

static bool rank(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e))
        return false;
    uint32_t at = mu_below(m, e.rank + 1);
    switch (mu_below(m, 4)) {
    case 0:
    case 1:
        if (e.rank == MAX_RANK)
            return false;
        memmove(e.dims + at + 1, e.dims + at, (e.rank - at) * sizeof *e.dims);
        e.dims[at] = mu_one_in(m, 4) ? (int64_t)mu_below(m, 4) : 1;
        e.rank++;
        break;
    case 2:
        if (at == e.rank)
            return false;
        memmove(e.dims + at, e.dims + at + 1, (e.rank - at - 1) * sizeof *e.dims);
        e.rank--;
        break;
    default:
        if (e.rank < 2 || at == e.rank)
            return false;
        e.dims[0] ^= e.dims[at], e.dims[at] ^= e.dims[0], e.dims[0] ^= e.dims[at];
        break;
    }
    fit(m, &e);
    store(m, s.field, &e);
    return true;
}

static bool dtype(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e))
        return false;
    e.dtype = mu_dtype(m);
    if (mu_one_in(m, 24) || dtype_bits(e.dtype) == 0 || e.dtype == SONDE_DTYPE_STRING) {
        pt_set_num(m->arena, s.field, TENSOR_DTYPE, e.dtype);
        return true;
    }
    e.elem_bytes = stored_bytes(e.dtype);
    fit(m, &e);
    store(m, s.field, &e);
    return true;
}

/* Raw contents in a typed field, and back. */
static bool form(mutation *m)
{
    mu_spot s;
    elements e;
    if (!pick(m, &s, &e))
        return false;
    e.typed = !e.typed;
    store(m, s.field, &e);
    return true;
}

static bool strings(mutation *m)
{
    mu_spot s;
    for (int tries = 0; tries < 4; tries++) {
        if (!mu_pick(m, PT_TENSOR, NULL, &s))
            return false;
        pt_field *f = mu_pick_kid(m, s.field, TENSOR_STRING), *d = pt_find(s.field, TENSOR_DIM);
        if (!f || !d)
            continue;
        pt_field *copy = pt_clone(m->arena, f);
        if (!copy)
            return false;
        copy->n_bytes = copy->n_bytes ? copy->n_bytes - 1 : 0;
        pt_insert(m->arena, s.field, mu_below(m, s.field->n_kids), copy);
        if (mu_one_in(m, 2))
            pt_remove(s.field, f);
        else if (!mu_one_in(m, 4))
            d->num++;
        return true;
    }
    return false;
}

const mutation_row mutations_of_tensors[] = {{value, 40}, {order, 6},   {list_length, 12},
                                             {dim, 8},    {rank, 5},    {dtype, 5},
                                             {form, 2},   {strings, 2}, {NULL, 0}};
