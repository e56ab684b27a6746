/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup tables over strings or numbers: key i has number i, and of equal keys the last one counts.
 * What an element's number then selects: a value, a place in a row, a column of zeros and a one. */
#ifndef SN_COMPUTE_LOOKUP_H
#define SN_COMPUTE_LOOKUP_H

#include "base/arena.h"
#include "compute/element.h"

typedef struct sn_lookup_entry {
    sonde_string text;
    uint64_t number;
    int64_t value;
} sn_lookup_entry;
typedef struct sn_lookup {
    const sn_lookup_entry *entries; /* sorted */
    size_t n;
    bool strings;
} sn_lookup;

/* Keys are strings (when not NULL), else elements of type t at `data`. Strings are not copied.
 * False: out of memory. */
bool sn_lookup_make(sn_lookup *m, const sonde_string *strings, sonde_dtype t, const void *data,
                    size_t n, sn_arena *arena);
/* The number of element i: strings in a table of strings, else numbers of any type, of which NaN is
 * one and so are both zeros. -1: it is not there. */
int64_t sn_lookup_find(const sn_lookup *m, sn_elems keys, int64_t i);

/* y[i] = the value of keys[i]. Values may be strings, which are not copied. */
typedef struct sn_lookup_values {
    size_t elem_bytes;
    const void *values, *missing;
} sn_lookup_values;
void sn_lookup_values_run(const sn_lookup *m, sn_elems keys, int64_t n, const sn_lookup_values *v,
                          void *y);
/* y[number of keys[i]] = x[i], of as many elements as the table has keys; the others are zero. */
void sn_lookup_place_run(const sn_lookup *m, sn_elems keys, int64_t n, size_t elem_bytes, void *y,
                         const void *x);
/* y [n][keys of the table] = 1 at the number of keys[i], else 0. Numbers are taken as integers, and
 * so must be the table's. Returns the first element that is not there, unless its row may be zeros;
 * -1: none. */
int64_t sn_lookup_one_hot_run(const sn_lookup *m, sn_elems keys, int64_t n, bool missing_is_zeros,
                              float *y);

#endif
