/* SPDX-License-Identifier: Apache-2.0 */
/* Counting and picking go entry by entry; equal entries are found by a stable merge sort of their
 * numbers. */
#include "compute/select.h"

#include "compute/small_floats.h"

/* Row r of y (of `count`) on the axis = entry `from` of x. */
static void copy_entry(const sn_entries *e, size_t elem_bytes, void *y, const void *x,
                       int64_t count, int64_t r, int64_t from)
{
    const size_t row = (size_t)e->inner * elem_bytes;
    for (int64_t o = 0; o < e->outer; o++)
        memcpy((char *)y + (size_t)(o * count + r) * row,
               (const char *)x + (size_t)(o * e->n + from) * row, row);
}

/* ------------------------------------------------------------------ conditions */
int64_t sn_flags_count(const uint8_t *flags, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += flags[i] != 0;
    return count;
}

void sn_compress_run(const sn_entries *e, size_t elem_bytes, void *y, const void *x,
                     const uint8_t *flags, int64_t n, int64_t count)
{
    int64_t r = 0;
    for (int64_t i = 0; i < n && r < count; i++)
        if (flags[i])
            copy_entry(e, elem_bytes, y, x, count, r++, i);
    for (; r < count; r++) /* never, unless the flags have changed */
        copy_entry(e, elem_bytes, y, x, count, r, 0);
}

/* ------------------------------------------------------------------ not zero */
int64_t sn_nonzero_count(sn_elems x, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += !sn_elem_is_zero(x.dtype, x.data, i);
    return count;
}

void sn_nonzero_run(sn_elems x, const int64_t *dims, int rank, int64_t *y, int64_t count)
{
    int64_t at[SN_NONZERO_RANK] = {0}, n = 1, r = 0;
    for (int k = 0; k < rank; k++)
        n *= dims[k];
    for (int64_t i = 0; i < n && r < count; i++) {
        if (!sn_elem_is_zero(x.dtype, x.data, i)) {
            for (int k = 0; k < rank; k++)
                y[k * count + r] = at[k];
            r++;
        }
        for (int k = rank - 1; k >= 0 && ++at[k] == dims[k]; k--)
            at[k] = 0;
    }
    for (; r < count; r++) /* never, unless the elements have changed */
        for (int k = 0; k < rank; k++)
            y[k * count + r] = 0;
}

/* ------------------------------------------------------------------ groups of equal entries */
static int compare_elements(sn_elems x, int64_t a, int64_t b)
{
    if (x.dtype == SONDE_DTYPE_STRING) {
        const sonde_string *s = x.data;
        size_t n = s[a].size < s[b].size ? s[a].size : s[b].size;
        int r = n ? memcmp(s[a].data, s[b].data, n) : 0;
        return r ? r : (s[a].size > s[b].size) - (s[a].size < s[b].size);
    }
    if (x.dtype == SONDE_DTYPE_C64 || x.dtype == SONDE_DTYPE_C128) {
        sonde_dtype part = x.dtype == SONDE_DTYPE_C64 ? SONDE_DTYPE_F32 : SONDE_DTYPE_F64;
        for (int k = 0; k < 2; k++) {
            uint64_t ka = sn_elem_key(part, x.data, 2 * a + k),
                     kb = sn_elem_key(part, x.data, 2 * b + k);
            if (ka != kb)
                return ka < kb ? -1 : 1;
        }
        return 0;
    }
    uint64_t ka = sn_elem_key(x.dtype, x.data, a), kb = sn_elem_key(x.dtype, x.data, b);
    return (ka > kb) - (ka < kb);
}

static int compare_entries(sn_elems x, const sn_entries *e, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < e->outer; o++)
        for (int64_t i = 0; i < e->inner; i++) {
            int r =
                compare_elements(x, (o * e->n + a) * e->inner + i, (o * e->n + b) * e->inner + i);
            if (r)
                return r;
        }
    return 0;
}

/* Stable bottom-up merge sort of entry numbers. */
static int64_t *sort_entries(sn_elems x, const sn_entries *e, int64_t *order, int64_t *space)
{
    for (int64_t i = 0; i < e->n; i++)
        order[i] = i;
    for (int64_t width = 1; width < e->n; width *= 2) {
        for (int64_t lo = 0; lo < e->n; lo += 2 * width) {
            int64_t mid = lo + width < e->n ? lo + width : e->n,
                    hi = mid + width < e->n ? mid + width : e->n;
            for (int64_t i = lo, j = mid, k = lo; k < hi; k++) {
                bool left = i < mid && (j >= hi || compare_entries(x, e, order[i], order[j]) <= 0);
                space[k] = left ? order[i++] : order[j++];
            }
        }
        int64_t *swap = order;
        order = space;
        space = swap;
    }
    return order;
}

/* Numbers the groups of equal entries: by value when sorted, else by first appearance. */
static int64_t number_groups(sn_elems x, const sn_entries *e, const int64_t *order, int64_t *group,
                             int64_t *number, bool sorted)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < e->n; i++) {
        if (i > 0 && compare_entries(x, e, order[i - 1], order[i]) != 0)
            groups++;
        group[order[i]] = groups;
    }
    groups += e->n > 0;
    if (sorted)
        return groups;
    memset(number, 0xff, (size_t)groups * sizeof *number);
    for (int64_t i = 0, next = 0; i < e->n; i++) {
        if (number[group[i]] < 0)
            number[group[i]] = next++;
        group[i] = number[group[i]];
    }
    return groups;
}

sn_unique sn_unique_plan(sn_entries entries, bool sorted)
{
    sn_unique u = {.entries = entries, .sorted = sorted};
    u.order = sn_carve(&u.workspace, entries.n, sizeof(int64_t));
    u.merged = sn_carve(&u.workspace, entries.n, sizeof(int64_t));
    u.group = sn_carve(&u.workspace, entries.n, sizeof(int64_t));
    u.number = sn_carve(&u.workspace, entries.n, sizeof(int64_t));
    return u;
}

int64_t sn_unique_find(const sn_unique *u, sn_elems x, void *workspace)
{
    const sn_entries *e = &u->entries;
    if (e->n == 0)
        return 0;
    const int64_t *order =
        sort_entries(x, e, sn_piece_at(workspace, u->order), sn_piece_at(workspace, u->merged));
    return number_groups(x, e, order, sn_piece_at(workspace, u->group),
                         sn_piece_at(workspace, u->number), u->sorted);
}

void sn_unique_write(const sn_unique *u, sn_elems x, void *workspace, int64_t groups, void *y,
                     int64_t *first, int64_t *inverse, int64_t *counts)
{
    const sn_entries *e = &u->entries;
    if (e->n == 0)
        return;
    const int64_t *group = sn_piece_at(workspace, u->group);
    int64_t *entry = sn_piece_at(workspace, u->number);
    if (inverse)
        memcpy(inverse, group, (size_t)e->n * sizeof *inverse);
    if (counts)
        memset(counts, 0, (size_t)groups * sizeof *counts);
    for (int64_t i = 0; i < e->n && counts; i++)
        counts[group[i]]++;
    for (int64_t i = e->n - 1; i >= 0; i--) /* backwards: the first entry is written last */
        entry[group[i]] = i;
    for (int64_t g = 0; g < groups; g++) {
        if (first)
            first[g] = entry[g];
        if (y)
            copy_entry(e, sn_dtype_bytes(x.dtype), y, x.data, groups, g, entry[g]);
    }
}
