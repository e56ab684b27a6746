/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing values the way ONNX's own test runner does. */
#include "sonde/experimental/compare.h"

#include <math.h>
#include <stdio.h>

#include "api/internal.h"

/* ------------------------------------------------------------------ elements as numbers */
static double read_element(const sn_tensor *t, int64_t i)
{
    const void *p = t->data;
    switch (t->dtype) {
    case SONDE_DTYPE_F32:
        return (double)((const float *)p)[i];
    case SONDE_DTYPE_F64:
        return ((const double *)p)[i];
    case SONDE_DTYPE_F16:
        return (double)sn_f16_to_f32(((const uint16_t *)p)[i]);
    case SONDE_DTYPE_BF16:
        return (double)sn_bf16_to_f32(((const uint16_t *)p)[i]);
    case SONDE_DTYPE_F8E4M3FN:
    case SONDE_DTYPE_F8E4M3FNUZ:
    case SONDE_DTYPE_F8E5M2:
    case SONDE_DTYPE_F8E5M2FNUZ:
    case SONDE_DTYPE_F8E8M0:
    case SONDE_DTYPE_F4E2M1:
        return (double)sn_f8_to_f32(t->dtype, ((const uint8_t *)p)[i]);
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_U4:
    case SONDE_DTYPE_U2:
        return (double)((const uint8_t *)p)[i];
    case SONDE_DTYPE_BOOL:
        return (double)(((const uint8_t *)p)[i] != 0);
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_I4:
    case SONDE_DTYPE_I2:
        return (double)((const int8_t *)p)[i];
    case SONDE_DTYPE_U16:
        return (double)((const uint16_t *)p)[i];
    case SONDE_DTYPE_I16:
        return (double)((const int16_t *)p)[i];
    case SONDE_DTYPE_U32:
        return (double)((const uint32_t *)p)[i];
    case SONDE_DTYPE_I32:
        return (double)((const int32_t *)p)[i];
    case SONDE_DTYPE_U64:
        return (double)((const uint64_t *)p)[i];
    case SONDE_DTYPE_I64:
        return (double)((const int64_t *)p)[i];
    case SONDE_DTYPE_C64:
        return (double)((const float *)p)[2 * i];
    case SONDE_DTYPE_C128:
        return ((const double *)p)[2 * i];
    default:
        return 0;
    }
}

size_t sonde_tensor_read(const sonde_value *value, int64_t first, size_t count, double *out)
{
    if (!value || !out || value->slot.kind != SN_KIND_TENSOR ||
        value->slot.t.dtype == SONDE_DTYPE_STRING || first < 0)
        return 0;
    const sn_tensor *t = &value->slot.t;
    const int64_t total = sn_tensor_count(t);
    size_t n = 0;
    for (; n < count && first + (int64_t)n < total; n++)
        out[n] = read_element(t, first + (int64_t)n);
    return n;
}

/* ------------------------------------------------------------------ differences */
typedef struct difference {
    int64_t first, count; /* index of the first one, how many */
    double got, expected; /* at the first one */
    double largest;
} difference;

static bool close_enough(double got, double expected, double rtol, double atol)
{
    if (isnan(got) || isnan(expected))
        return isnan(got) && isnan(expected);
    if (isinf(got) || isinf(expected))
        return got == expected;
    return fabs(got - expected) <= atol + rtol * fabs(expected);
}

static void note(difference *d, int64_t i, double got, double expected)
{
    if (d->count++ == 0) {
        d->first = i;
        d->got = got;
        d->expected = expected;
    }
    const double apart = fabs(got - expected);
    if (apart > d->largest)
        d->largest = apart;
}

/* A complex tensor is compared as twice as many real numbers. */
static sn_tensor as_reals(const sn_tensor *t, int64_t *parts)
{
    sn_tensor real = *t;
    *parts = t->dtype == SONDE_DTYPE_C64 || t->dtype == SONDE_DTYPE_C128 ? 2 : 1;
    if (*parts == 2)
        real.dtype = t->dtype == SONDE_DTYPE_C64 ? SONDE_DTYPE_F32 : SONDE_DTYPE_F64;
    return real;
}

static void compare_numbers(const sn_tensor *got, const sn_tensor *expected, double rtol,
                            double atol, difference *d)
{
    int64_t parts = 1;
    const sn_tensor g = as_reals(got, &parts), e = as_reals(expected, &parts);
    const int64_t n = sn_tensor_count(got) * parts;
    const bool exact = !sn_dtype_is_float(g.dtype);
    const size_t size = sn_dtype_bytes(g.dtype);
    for (int64_t i = 0; i < n; i++) {
        /* 64-bit integers do not fit a double: equal means equal bytes. */
        if (exact && memcmp((const char *)g.data + (size_t)i * size,
                            (const char *)e.data + (size_t)i * size, size) == 0)
            continue;
        const double x = read_element(&g, i), y = read_element(&e, i);
        if (exact || !close_enough(x, y, rtol, atol))
            note(d, i, x, y);
    }
}

static void compare_strings(const sn_tensor *got, const sn_tensor *expected, difference *d)
{
    const sonde_string *g = got->data, *e = expected->data;
    const int64_t n = sn_tensor_count(got);
    for (int64_t i = 0; i < n; i++)
        if (g[i].size != e[i].size || (g[i].size && memcmp(g[i].data, e[i].data, g[i].size) != 0))
            note(d, i, 0, 0);
}

static const char *tensor_text(const sn_tensor *t, char *buf, size_t cap)
{
    const sn_type type = {
        .kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
    return sn_type_text(&type, NULL, buf, cap);
}

static sonde_status compare_tensors(const sn_tensor *got, const sn_tensor *expected, double rtol,
                                    double atol, sonde_error *err)
{
    bool same = got->dtype == expected->dtype && got->rank == expected->rank;
    for (int32_t i = 0; same && i < got->rank; i++)
        same = got->dims[i] == expected->dims[i];
    if (!same) {
        char a[200], b[200];
        return sn_fail(err, SONDE_RUNTIME, "got %s, expected %s", tensor_text(got, a, sizeof a),
                       tensor_text(expected, b, sizeof b));
    }
    difference d = {.count = 0};
    const long long total = (long long)sn_tensor_count(got);
    if (got->dtype == SONDE_DTYPE_STRING) {
        compare_strings(got, expected, &d);
        if (d.count) {
            const sonde_string g = ((const sonde_string *)got->data)[d.first];
            const sonde_string e = ((const sonde_string *)expected->data)[d.first];
            return sn_fail(
                err, SONDE_RUNTIME,
                "%lld of %lld elements differ, first at %lld: got \"%.*s\", expected \"%.*s\"",
                (long long)d.count, total, (long long)d.first, (int)(g.size < 60 ? g.size : 60),
                g.data, (int)(e.size < 60 ? e.size : 60), e.data);
        }
        return SONDE_OK;
    }
    compare_numbers(got, expected, rtol, atol, &d);
    if (d.count)
        return sn_fail(
            err, SONDE_RUNTIME,
            "%lld of %lld elements differ, first at %lld: got %.9g, expected %.9g; largest "
            "difference %.3g",
            (long long)d.count, total, (long long)d.first, d.got, d.expected, d.largest);
    return SONDE_OK;
}

static const char *kind_text(sn_kind kind)
{
    static const char *const names[] = {"nothing", "a tensor", "a sequence", "an optional",
                                        "a map"};
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "something unknown";
}

static sonde_status compare_slots(const sn_slot *got, const sn_slot *expected, double rtol,
                                  double atol, sonde_error *err)
{
    /* An optional that holds something and the thing itself are one value in test data. */
    while (got->kind == SN_KIND_OPTIONAL && expected->kind != SN_KIND_OPTIONAL && got->list &&
           got->list->n == 1)
        got = &got->list->items[0];
    while (expected->kind == SN_KIND_OPTIONAL && got->kind != SN_KIND_OPTIONAL && expected->list &&
           expected->list->n == 1)
        expected = &expected->list->items[0];
    if (got->kind != expected->kind)
        return sn_fail(err, SONDE_RUNTIME, "got %s, expected %s", kind_text(got->kind),
                       kind_text(expected->kind));
    if (got->kind == SN_KIND_TENSOR)
        return compare_tensors(&got->t, &expected->t, rtol, atol, err);
    const size_t n = got->list ? got->list->n : 0, want = expected->list ? expected->list->n : 0;
    if (n != want)
        return sn_fail(err, SONDE_RUNTIME, "got %s of %zu items, expected %zu",
                       kind_text(got->kind), n, want);
    for (size_t i = 0; i < n; i++) {
        const sonde_status st =
            compare_slots(&got->list->items[i], &expected->list->items[i], rtol, atol, err);
        if (st != SONDE_OK) {
            sn_error_prefix(err, "item %zu", i);
            return st;
        }
    }
    return SONDE_OK;
}

sonde_status sonde_value_compare(const sonde_value *got, const sonde_value *expected, double rtol,
                                 double atol, sonde_error *err)
{
    SN_REQUIRE(got, err);
    SN_REQUIRE(expected, err);
    return compare_slots(&got->slot, &expected->slot, rtol, atol, err);
}
