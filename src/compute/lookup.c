/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup tables; see lookup.h. Keys are sorted and found by bisection. */
#include "compute/lookup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

/* Canonical bits: equal numbers have equal keys whatever their type; NaN is one number, and so is
 * zero.
 */
static uint64_t number_key(sonde_dtype t, const void *data, int64_t i)
{
    if (!sn_dtype_is_float(t))
        return (uint64_t)sn_elem_i64(t, data, i);
    double v = sn_elem_f64(t, data, i);
    uint64_t bits;
    if (isnan(v))
        return UINT64_MAX;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static int compare_text(const sonde_string *a, const sonde_string *b)
{
    const size_t n = a->size < b->size ? a->size : b->size;
    const int c = n ? memcmp(a->data, b->data, n) : 0;
    return c ? c : (a->size > b->size) - (a->size < b->size);
}

static int by_text(const void *a, const void *b)
{
    const sn_lookup_entry *x = a, *y = b;
    const int c = compare_text(&x->text, &y->text);
    return c ? c : (x->value > y->value) - (x->value < y->value);
}

static int by_number(const void *a, const void *b)
{
    const sn_lookup_entry *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

bool sn_lookup_make(sn_lookup *m, const sonde_string *strings, sonde_dtype t, const void *data,
                    size_t n, sn_arena *arena)
{
    sn_lookup_entry *e = SN_NEW_N(arena, sn_lookup_entry, n ? n : 1);
    if (!e)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (strings)
            e[i].text = strings[i];
        else
            e[i].number = number_key(t, data, (int64_t)i);
        e[i].value = (int64_t)i;
    }
    qsort(e, n, sizeof *e, strings ? by_text : by_number);
    *m = (sn_lookup){e, n, strings != NULL};
    return true;
}

/* The last entry that is not above the key. */
static const sn_lookup_entry *last_not_above(const sn_lookup *m, const sn_lookup_entry *key)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const bool above = m->strings ? compare_text(&m->entries[mid].text, &key->text) > 0
                                      : m->entries[mid].number > key->number;
        if (above)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo ? &m->entries[lo - 1] : NULL;
}

static int64_t find_text(const sn_lookup *m, sonde_string key)
{
    const sn_lookup_entry k = {.text = key}, *e = last_not_above(m, &k);
    return e && compare_text(&e->text, &key) == 0 ? e->value : -1;
}

static int64_t find_number(const sn_lookup *m, uint64_t key)
{
    const sn_lookup_entry k = {.number = key}, *e = last_not_above(m, &k);
    return e && e->number == key ? e->value : -1;
}

int64_t sn_lookup_find(const sn_lookup *m, sn_elems keys, int64_t i)
{
    return m->strings ? find_text(m, ((const sonde_string *)keys.data)[i])
                      : find_number(m, number_key(keys.dtype, keys.data, i));
}

void sn_lookup_values_run(const sn_lookup *m, sn_elems keys, int64_t n, const sn_lookup_values *v,
                          void *y)
{
    const size_t bytes = v->elem_bytes;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = sn_lookup_find(m, keys, i);
        sn_elem_copy((uint8_t *)y + (size_t)i * bytes,
                     at < 0 ? v->missing : (const uint8_t *)v->values + (size_t)at * bytes, bytes);
    }
}

void sn_lookup_place_run(const sn_lookup *m, sn_elems keys, int64_t n, size_t elem_bytes, void *y,
                         const void *x)
{
    memset(y, 0, m->n * elem_bytes);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = sn_lookup_find(m, keys, i);
        if (at >= 0)
            sn_elem_copy((uint8_t *)y + (size_t)at * elem_bytes,
                         (const uint8_t *)x + (size_t)i * elem_bytes, elem_bytes);
    }
}

int64_t sn_lookup_one_hot_run(const sn_lookup *m, sn_elems keys, int64_t n, bool missing_is_zeros,
                              float *y)
{
    const int64_t width = (int64_t)m->n;
    memset(y, 0, sizeof(float) * (size_t)(n * width));
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = m->strings
                               ? find_text(m, ((const sonde_string *)keys.data)[i])
                               : find_number(m, (uint64_t)sn_elem_i64(keys.dtype, keys.data, i));
        if (at >= 0)
            y[i * width + at] = 1.0f;
        else if (!missing_is_zeros)
            return i;
    }
    return -1;
}
