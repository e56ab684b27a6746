/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the elements of two tensors. Everything is added as double; what is not finite is
 * counted and stays out of the sums, so that one NaN does not hide what the others say. */
#include <math.h>

#include "accuracy/pairs.h"
#include "base/dtype.h"
#include "sonde/experimental/compare.h"

enum { CHUNK = 512 }; /* elements that are converted at a time */

/* ------------------------------------------------------------------ elements */
static void add_odd(sn_sums *s, double a, double b)
{
    s->nan_a += isnan(a) != 0;
    s->nan_b += isnan(b) != 0;
    s->inf_a += isinf(a) != 0;
    s->inf_b += isinf(b) != 0;
    if ((isnan(a) && isnan(b)) || a == b)
        return;
    s->not_finite++;
    s->mismatches++;
}

static void add_numbers(sn_sums *s, const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i])) {
            add_odd(s, a[i], b[i]);
            continue;
        }
        const double d = fabs(a[i] - b[i]);
        s->finite++;
        s->mismatches += d != 0;
        s->abs += d;
        s->square += d * d;
        s->aa += a[i] * a[i];
        s->bb += b[i] * b[i];
        s->ab += a[i] * b[i];
        if (d > s->max_abs)
            s->max_abs = d;
    }
}

/* 64-bit integers that differ may be equal as doubles. */
static uint64_t differing_bytes(const sonde_value *a, const sonde_value *b)
{
    const size_t size = sonde_dtype_bytes(sonde_tensor_dtype(a));
    const char *x = sonde_tensor_data(a), *y = sonde_tensor_data(b);
    const size_t n = (size_t)sonde_tensor_count(a);
    uint64_t differ = 0;
    for (size_t i = 0; i < n; i++)
        differ += memcmp(x + i * size, y + i * size, size) != 0;
    return differ;
}

static void add_strings(sn_sums *s, const sonde_value *a, const sonde_value *b)
{
    const sonde_string *x = sonde_tensor_data(a), *y = sonde_tensor_data(b);
    const int64_t n = sonde_tensor_count(a);
    for (int64_t i = 0; i < n; i++)
        s->mismatches +=
            x[i].size != y[i].size || (x[i].size && memcmp(x[i].data, y[i].data, x[i].size) != 0);
    s->finite += (uint64_t)n;
}

static bool is_complex(sonde_dtype t)
{
    return t == SONDE_DTYPE_C64 || t == SONDE_DTYPE_C128;
}

/* Part k of `count` complex elements as doubles. */
static void read_complex(const sonde_value *v, int64_t first, size_t count, int k, double *out)
{
    const void *data = sonde_tensor_data(v);
    for (size_t i = 0; i < count; i++) {
        const size_t at = 2 * ((size_t)first + i) + (size_t)k;
        out[i] = sonde_tensor_dtype(v) == SONDE_DTYPE_C64 ? (double)((const float *)data)[at]
                                                          : ((const double *)data)[at];
    }
}

static void add_complex(sn_sums *s, const sonde_value *a, const sonde_value *b)
{
    double x[CHUNK], y[CHUNK];
    const int64_t n = sonde_tensor_count(a);
    for (int64_t i = 0; i < n; i += CHUNK)
        for (int k = 0; k < 2; k++) {
            const size_t count = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
            read_complex(a, i, count, k, x);
            read_complex(b, i, count, k, y);
            add_numbers(s, x, y, count);
        }
}

static void add_reals(sn_sums *s, const sonde_value *a, const sonde_value *b)
{
    double x[CHUNK], y[CHUNK];
    const int64_t n = sonde_tensor_count(a);
    const uint64_t before = s->mismatches;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const size_t count = sonde_tensor_read(a, i, CHUNK, x);
        (void)sonde_tensor_read(b, i, CHUNK, y);
        add_numbers(s, x, y, count);
    }
    const sonde_dtype t = sonde_tensor_dtype(a);
    if (t == sonde_tensor_dtype(b) && !sn_dtype_is_float(t) && t != SONDE_DTYPE_BOOL)
        s->mismatches = before + differing_bytes(a, b);
}

/* ------------------------------------------------------------------ values */
static bool same_shape(const sonde_value *a, const sonde_value *b)
{
    const size_t rank = sonde_tensor_rank(a);
    bool same = rank == sonde_tensor_rank(b);
    for (size_t i = 0; same && i < rank; i++)
        same = sonde_tensor_dims(a)[i] == sonde_tensor_dims(b)[i];
    return same;
}

/* Numbers whose size counts: floats, and the bytes of quantised models, where one step more or less
 * is a small error. Other integers are indices, sizes and labels. */
static bool is_measured(sonde_dtype t)
{
    return sn_dtype_is_float(t) || is_complex(t) || t == SONDE_DTYPE_U8 || t == SONDE_DTYPE_I8;
}

static void add_tensors(sn_sums *s, const sonde_value *a, const sonde_value *b)
{
    const sonde_dtype x = sonde_tensor_dtype(a), y = sonde_tensor_dtype(b);
    const bool strings = x == SONDE_DTYPE_STRING || y == SONDE_DTYPE_STRING;
    const bool complexes = is_complex(x) || is_complex(y);
    s->exact &= !is_measured(x) && !is_measured(y);
    if (!same_shape(a, b) || ((strings || complexes) && x != y)) {
        s->different = true;
        return;
    }
    s->elements += (uint64_t)sonde_tensor_count(a);
    if (strings)
        add_strings(s, a, b);
    else if (complexes)
        add_complex(s, a, b);
    else
        add_reals(s, a, b);
}

/* An optional that holds something is compared as that. */
static const sonde_value *inside(const sonde_value *v, sonde_value **held)
{
    *held = NULL;
    if (sonde_value_kind(v) != SONDE_KIND_OPTIONAL || sonde_value_count(v) != 1 ||
        sonde_value_item(v, 0, held, NULL))
        return v;
    return *held;
}

static sonde_status add_values(sn_sums *s, const sonde_value *a, const sonde_value *b,
                               sonde_error *err)
{
    if (sonde_value_kind(a) != sonde_value_kind(b)) {
        s->different = true;
        return SONDE_OK;
    }
    if (sonde_value_kind(a) == SONDE_KIND_TENSOR) {
        add_tensors(s, a, b);
        return SONDE_OK;
    }
    const size_t n = sonde_value_count(a);
    s->different |= n != sonde_value_count(b);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < n && !s->different && st == SONDE_OK; i++) {
        sonde_value *x = NULL, *y = NULL;
        st = sonde_value_item(a, i, &x, err);
        if (st == SONDE_OK)
            st = sonde_value_item(b, i, &y, err);
        if (st == SONDE_OK)
            st = sn_sums_add(s, x, y, err);
        s->samples -= st == SONDE_OK; /* an item is none */
        sonde_value_release(x);
        sonde_value_release(y);
    }
    return st;
}

sonde_status sn_sums_add(sn_sums *s, const sonde_value *a, const sonde_value *b, sonde_error *err)
{
    if (!a || !b) {
        s->missing = true;
        return SONDE_OK;
    }
    if (!s->samples && !s->elements)
        s->exact = true;
    s->samples++;
    sonde_value *held[2];
    const sonde_value *x = inside(a, &held[0]), *y = inside(b, &held[1]);
    const sonde_status st = add_values(s, x, y, err);
    sonde_value_release(held[0]);
    sonde_value_release(held[1]);
    return st;
}

/* ------------------------------------------------------------------ figures */
double sn_sums_noise(const sn_sums *s)
{
    if (s->not_finite)
        return INFINITY;
    if (s->exact)
        return s->elements ? (double)s->mismatches / (double)s->elements : 0;
    const double noise = s->square == 0 ? 0 : s->aa > 0 ? s->square / s->aa : INFINITY;
    return isnan(noise) ? INFINITY : noise; /* numbers so large that their squares are not */
}

sonde_accuracy_error sn_sums_error(const sn_sums *s)
{
    const double n = s->finite ? (double)s->finite : 1;
    sonde_accuracy_error e = {.elements = s->elements,
                              .mismatches = s->mismatches,
                              .max_abs = s->max_abs,
                              .mean_abs = s->abs / n,
                              .rms = sqrt(s->square / n),
                              .nan_a = s->nan_a,
                              .nan_b = s->nan_b,
                              .inf_a = s->inf_a,
                              .inf_b = s->inf_b,
                              .not_finite = s->not_finite,
                              .cosine = NAN};
    e.relative = s->square == 0 ? 0 : s->aa > 0 ? sqrt(s->square / s->aa) : INFINITY;
    e.sqnr_db = e.relative > 0 ? -20 * log10(e.relative) : INFINITY;
    if (s->aa > 0 && s->bb > 0) {
        e.cosine = s->ab / (sqrt(s->aa) * sqrt(s->bb));
        e.cosine = e.cosine > 1 ? 1 : e.cosine < -1 ? -1 : e.cosine;
    }
    return e;
}

bool sn_sums_over(const sn_sums *s, const sonde_accuracy_bound *bound)
{
    if (s->different || s->not_finite)
        return true;
    if (s->exact)
        return s->mismatches > 0;
    const sonde_accuracy_error e = sn_sums_error(s);
    if (isnan(e.relative))
        return true;
    return (bound->sqnr_db > 0 && e.sqnr_db < bound->sqnr_db) ||
           (bound->max_abs > 0 && e.max_abs > bound->max_abs) ||
           (bound->relative > 0 && e.relative > bound->relative);
}
