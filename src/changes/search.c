/* SPDX-License-Identifier: Apache-2.0 */
/* Where the changes are. One scan over the whole series misses a level that returns, so stretches
 * of all lengths are searched: seeded binary segmentation (Kovács, Bühlmann, Li and Munk, "Seeded
 * binary segmentation", Biometrika 110, 2023), whose stretches lie at fixed places, where the wild
 * variant draws them. The most convincing change of any stretch is taken first, then the next in
 * stretches that do not contain it. After that every change is placed and tested anew between its
 * neighbours, until nothing moves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "changes/changes.h"

enum { MOST_ROUNDS = 8 };

typedef struct search {
    const double *values;
    size_t count;
    const sn_search_options *o;
    sn_allocator *alloc;
    sn_scan scan;
    uint32_t *ranks;
    sn_search_layers layers;
    SN_VEC(sn_stretch) stretches;
    SN_VEC(sn_stretch) found; /* in order of at */
    size_t *places;           /* of the changes, for those that want them alone */
    double *sorted, *weights; /* of a level; of the changes */
    double threshold;
} search;

/* ------------------------------------------------------------------ ranks */
typedef struct ranked {
    double value;
    uint32_t index;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

static bool rank_values(search *w)
{
    const size_t bytes = w->count * sizeof(ranked);
    ranked *all = sn_alloc(w->alloc, bytes);
    if (!all)
        return false;
    for (size_t i = 0; i < w->count; i++)
        all[i] = (ranked){w->values[i], (uint32_t)i};
    qsort(all, w->count, sizeof *all, by_value);
    uint32_t rank = 0;
    for (size_t i = 0; i < w->count; i++) {
        rank += i && all[i].value > all[i - 1].value;
        w->ranks[all[i].index] = rank;
    }
    sn_free(w->alloc, all, bytes);
    return true;
}

/* ------------------------------------------------------------------ stretches */
/* Layer after layer, each shorter by the square root of 2, until a stretch holds two levels only.
 * In a layer stretches overlap by half. */
static bool make_stretches(search *w)
{
    const size_t shortest = 2 * w->o->shortest;
    double length = (double)w->count;
    w->layers = (sn_search_layers){.shortest = w->o->shortest};
    for (; w->layers.n < SN_SEARCH_LAYERS && length >= (double)shortest; length /= sqrt(2)) {
        const size_t whole = (size_t)ceil(length), spare = w->count - whole;
        const size_t count = spare ? (size_t)ceil(2 * (double)spare / length) + 1 : 1;
        w->layers.row[w->layers.n++] = (sn_search_layer){whole, count};
        for (size_t i = 0; i < count; i++) {
            const size_t from =
                count > 1 ? (size_t)((double)spare * (double)i / (double)(count - 1)) : 0;
            const sn_stretch one = {.from = from, .to = from + whole};
            if (!sn_vec_push(&w->stretches, w->alloc, one))
                return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ choosing */
static int by_z(const void *a, const void *b)
{
    const sn_stretch *x = a, *y = b;
    if (x->z != y->z)
        return x->z > y->z ? -1 : 1;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->from > y->from) - (x->from < y->from);
}

/* How many changes are at `place` or before it. */
static size_t changes_up_to(const search *w, size_t place)
{
    size_t low = 0, high = w->found.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (w->found.data[middle].at <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(search *w, const sn_stretch *one)
{
    const size_t at = changes_up_to(w, one->at);
    if (!sn_vec_push(&w->found, w->alloc, *one))
        return false;
    memmove(w->found.data + at + 1, w->found.data + at,
            (w->found.n - 1 - at) * sizeof *w->found.data);
    w->found.data[at] = *one;
    return true;
}

static bool choose(search *w)
{
    w->found.n = 0;
    for (size_t i = 0; i < w->stretches.n; i++)
        sn_scan_stretch(&w->scan, &w->stretches.data[i]);
    qsort(w->stretches.data, w->stretches.n, sizeof *w->stretches.data, by_z);
    for (size_t i = 0; i < w->stretches.n && w->stretches.data[i].z >= w->threshold; i++) {
        const sn_stretch *one = &w->stretches.data[i];
        const size_t before = changes_up_to(w, one->from);
        const bool taken = before < w->found.n && w->found.data[before].at < one->to;
        if (!taken && !insert(w, one))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ again, between neighbours */
static size_t start_of(const search *w, size_t level)
{
    return level ? w->found.data[level - 1].at : 0;
}

static size_t end_of(const search *w, size_t level)
{
    return level < w->found.n ? w->found.data[level].at : w->count;
}

/* Places every change anew between its neighbours. True: one moved. */
static bool place_again(search *w)
{
    bool moved = false;
    for (size_t i = 0; i < w->found.n; i++) {
        sn_stretch one = {.from = start_of(w, i), .to = end_of(w, i + 1)};
        sn_scan_stretch(&w->scan, &one);
        moved |= one.at != w->found.data[i].at;
        w->found.data[i] = one;
    }
    return moved;
}

/* Takes out every change of which `w->weights` is below `least` and not above those of its
 * neighbours: what is left of a pair is then looked at with more values on its sides. True: there
 * were some. */
static bool take_out(search *w, double least)
{
    size_t kept = 0;
    double before = INFINITY;
    for (size_t i = 0; i < w->found.n; i++) {
        const double now = w->weights[i], next = i + 1 < w->found.n ? w->weights[i + 1] : INFINITY;
        if (!(now < least && now < before && now <= next))
            w->found.data[kept++] = w->found.data[i];
        before = now;
    }
    const bool some = kept < w->found.n;
    w->found.n = kept;
    if (some)
        (void)place_again(w);
    return some;
}

/* Takes out changes that noise could be. True: there were some. */
static bool drop_weak(search *w)
{
    for (int round = 0;; round++) {
        for (size_t i = 0; i < w->found.n; i++)
            w->weights[i] = w->found.data[i].z;
        if (!take_out(w, w->threshold))
            return round > 0;
    }
}

/* Looks for changes inside of levels, which are stretches that were not searched yet. */
static bool add_inside(search *w, bool *added)
{
    *added = false;
    for (size_t level = 0; w->found.n && level <= w->found.n; level++) {
        sn_stretch one = {.from = start_of(w, level), .to = end_of(w, level)};
        sn_scan_stretch(&w->scan, &one);
        if (one.z < w->threshold)
            continue;
        if (!insert(w, &one))
            return false;
        *added = true;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(search *w, size_t level)
{
    const size_t from = start_of(w, level), n = end_of(w, level) - from;
    memcpy(w->sorted, w->values + from, n * sizeof *w->sorted);
    qsort(w->sorted, n, sizeof *w->sorted, ascending);
    return n % 2 ? w->sorted[n / 2] : w->sorted[n / 2 - 1] / 2 + w->sorted[n / 2] / 2;
}

/* |after / before - 1|; infinite where that says nothing. */
static double size_of(double before, double after)
{
    if (before == after)
        return 0;
    return before != 0 && (before > 0) == (after > 0) ? fabs(after / before - 1) : INFINITY;
}

/* The same with those that are too small to matter. */
static bool drop_small(search *w)
{
    for (int round = 0;; round++) {
        double before = w->found.n ? median_of(w, 0) : 0;
        for (size_t i = 0; i < w->found.n; i++) {
            const double after = median_of(w, i + 1);
            w->weights[i] = size_of(before, after);
            before = after;
        }
        if (!take_out(w, w->o->least))
            return round > 0;
    }
}

static bool settle(search *w)
{
    for (int round = 0; round < MOST_ROUNDS; round++) {
        bool added;
        if (!add_inside(w, &added))
            return false;
        const bool moved = place_again(w);
        const bool dropped = drop_weak(w);
        if (!added && !moved && !dropped)
            break;
    }
    while (drop_small(w) && drop_weak(w)) {
    }
    return true;
}

/* ------------------------------------------------------------------ all together */
static void note_places(search *w)
{
    for (size_t i = 0; i < w->found.n; i++)
        w->places[i] = w->found.data[i].at;
}

/* Changes that are not known look like noise whose neighbours resemble each other. So the first
 * pass takes values as independent; what it finds, too much perhaps, is left out of the estimate
 * that the second one works with, and what that finds decides for the last. */
static bool run(search *w)
{
    enum { PASSES = 3 };
    if (!rank_values(w) || !make_stretches(w))
        return false;
    w->threshold = sn_chance_threshold(&w->layers, w->o->false_alarms);
    for (int pass = 0; pass < PASSES; pass++) {
        if (pass)
            w->scan.inflation = sn_noise_inflation(&w->scan, w->places, w->found.n);
        if (!choose(w) || !settle(w))
            return false;
        note_places(w);
        if (!w->found.n)
            break;
    }
    return true;
}

static bool give(search *w, sn_search_result *out)
{
    *out = (sn_search_result){.n = w->found.n, .room = w->found.n, .inflation = w->scan.inflation};
    out->at = sn_alloc(w->alloc, out->n * sizeof *out->at);
    out->p = sn_alloc(w->alloc, out->n * sizeof *out->p);
    if (!out->at || !out->p) {
        sn_search_free(out, w->alloc);
        return false;
    }
    for (size_t i = 0; i < out->n; i++) {
        out->at[i] = w->found.data[i].at;
        out->p[i] = sn_chance_anywhere(&w->layers, w->found.data[i].z);
    }
    return true;
}

sonde_status sn_search(const double *values, size_t count, const sn_search_options *options,
                       sn_allocator *alloc, sn_search_result *out, sonde_error *err)
{
    search w = {.values = values, .count = count, .o = options, .alloc = alloc};
    *out = (sn_search_result){.inflation = 1};
    w.ranks = sn_alloc(alloc, count * sizeof *w.ranks);
    w.places = sn_alloc(alloc, count * sizeof *w.places);
    w.sorted = sn_alloc(alloc, count * sizeof *w.sorted);
    w.weights = sn_alloc(alloc, count * sizeof *w.weights);
    bool good = w.ranks && w.places && w.sorted && w.weights &&
                sn_scan_init(&w.scan, w.ranks, count, options->shortest, alloc);
    if (good) {
        good = run(&w) && give(&w, out);
        sn_scan_free(&w.scan);
    }
    sn_vec_free(&w.stretches, alloc);
    sn_vec_free(&w.found, alloc);
    sn_free(alloc, w.weights, count * sizeof *w.weights);
    sn_free(alloc, w.sorted, count * sizeof *w.sorted);
    sn_free(alloc, w.places, count * sizeof *w.places);
    sn_free(alloc, w.ranks, count * sizeof *w.ranks);
    return good ? SONDE_OK : sn_fail_memory(err, count * sizeof(double));
}

void sn_search_free(sn_search_result *r, sn_allocator *alloc)
{
    sn_free(alloc, r->at, r->room * sizeof *r->at);
    sn_free(alloc, r->p, r->room * sizeof *r->p);
    *r = (sn_search_result){.inflation = 1};
}
