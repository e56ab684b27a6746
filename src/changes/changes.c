/* SPDX-License-Identifier: Apache-2.0 */
/* sonde_changes_find: takes the finite values, has the changes found and says how large they are.
 * The interval of a ratio of medians follows from the standard errors of both, read off their order
 * statistics (McKean and Schrader 1984) on the scale of logarithms (Price and Bonett 2002), widened
 * as much as neighbours resemble each other. */
#include "changes/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z95 1.959963984540054

static sonde_status read_options(const sonde_change_options *given, sn_search_options *out,
                                 sonde_error *err)
{
    sonde_change_options o = {.struct_size = sizeof o};
    if (given) {
        if (given->struct_size < sizeof given->struct_size)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "struct_size is not set; initialise the struct with SONDE_INIT");
        memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
    }
    *out = (sn_search_options){.false_alarms = o.false_alarms != 0 ? o.false_alarms : 0.005,
                               .least = o.least != 0 ? o.least : 0.01,
                               .shortest = o.shortest ? o.shortest : 5};
    if (!(out->false_alarms > 0 && out->false_alarms < 1))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the chance of a false alarm must lie between 0 and 1, not be %g",
                       out->false_alarms);
    if (!(out->least > 0 && out->least < INFINITY))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the least change must be above 0, such as 0.01 for 1 %%, not %g",
                       out->least);
    if (out->shortest < 2)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a level must last for 2 values or more, not for %zu", out->shortest);
    return SONDE_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of a level and its standard error. Sorts the values. */
typedef struct level {
    double median, error;
} level;

static level measure(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    const double below = floor(((double)n + 1) / 2 - Z95 * sqrt((double)n / 4) + 0.5);
    const size_t c = below < 1 ? 1 : (size_t)below;
    return (level){.median = n % 2 ? values[n / 2] : values[n / 2 - 1] / 2 + values[n / 2] / 2,
                   .error = (values[n - c] - values[c - 1]) / (2 * Z95)};
}

static void fill(sonde_change_point *out, size_t at, double p, level before, level after,
                 double inflation)
{
    *out = (sonde_change_point){.at = at,
                                .before = before.median,
                                .after = after.median,
                                .low = 0,
                                .high = INFINITY,
                                .p = p};
    const double ratio = after.median / before.median;
    if (!(ratio > 0 && ratio < INFINITY))
        return;
    const double e1 = before.error / before.median, e2 = after.error / after.median;
    const double width = exp(Z95 * sqrt(inflation * (e1 * e1 + e2 * e2)));
    out->low = ratio / width;
    out->high = ratio * width;
}

/* `places` are those of the finite values in the series. */
static void fill_all(double *values, size_t count, const size_t *places, const sn_search_result *r,
                     sonde_change_point *changes, size_t room)
{
    if (!r->n || !room)
        return;
    level before = measure(values, r->at[0]);
    for (size_t i = 0; i < r->n && i < room; i++) {
        const size_t from = r->at[i], to = i + 1 < r->n ? r->at[i + 1] : count;
        const level after = measure(values + from, to - from);
        fill(&changes[i], places[from], r->p[i], before, after, r->inflation);
        before = after;
    }
}

sonde_status sn_changes_find(const double *values, size_t count,
                             const sonde_change_options *options, sn_allocator *alloc,
                             sonde_change_point *changes, size_t room, size_t *found,
                             sonde_error *err)
{
    sn_search_options o;
    sn_search_result result = {.inflation = 1};
    double *finite = NULL;
    size_t *places = NULL, n = 0;
    sonde_status st = SONDE_OK;
    if (!found || (!values && count) || (!changes && room))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "values, changes or found is NULL where something is expected");
    *found = 0;
    SN_TRY(read_options(options, &o, err));
    if (count > UINT32_MAX)
        return sn_fail(err, SONDE_LIMIT, "a series of %zu values is too long; 4294967295 can be",
                       count);
    finite = sn_alloc(alloc, count * sizeof *finite);
    places = sn_alloc(alloc, count * sizeof *places);
    if (!finite || !places) {
        st = sn_fail_memory(err, count * sizeof *finite);
        goto fail;
    }
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            finite[n] = values[i];
            places[n++] = i;
        }
    if (n / 2 >= o.shortest) {
        SN_TRY_GOTO(st, sn_search(finite, n, &o, alloc, &result, err));
        fill_all(finite, n, places, &result, changes, room);
        *found = result.n;
    }
fail:
    sn_search_free(&result, alloc);
    sn_free(alloc, places, count * sizeof *places);
    sn_free(alloc, finite, count * sizeof *finite);
    return st;
}

sonde_status sonde_changes_find(const double *values, size_t count,
                                const sonde_change_options *options, sonde_change_point *changes,
                                size_t room, size_t *found, sonde_error *err)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    return sn_changes_find(values, count, options, &alloc, changes, room, found, err);
}
