/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the search for changes of level, from the outside in: changes.c takes the values and
 * fills the result, search.c decides where the changes are, scan.c finds the best place for one
 * change in one stretch, noise.c says how much neighbours resemble each other, chance.c what that
 * means for probabilities. */
#ifndef SN_CHANGES_CHANGES_H
#define SN_CHANGES_CHANGES_H

#include "base/alloc.h"
#include "base/chance.h"
#include "sonde/experimental/changes.h"

/* ------------------------------------------------------------------ chance.c */
/* All stretches that are searched, by length. */
typedef struct sn_search_layer {
    size_t length, count;
} sn_search_layer;
enum { SN_SEARCH_LAYERS = 128 };
typedef struct sn_search_layers {
    sn_search_layer row[SN_SEARCH_LAYERS];
    size_t n, shortest;
} sn_search_layers;
/* The chance that noise alone has a z of this size at any place of any stretch. */
double sn_chance_anywhere(const sn_search_layers *layers, double z);
/* The z with that chance. */
double sn_chance_threshold(const sn_search_layers *layers, double chance);

/* ------------------------------------------------------------------ scan.c */
typedef struct sn_stretch {
    size_t from, to; /* [from, to) */
    size_t at;       /* the best place for a change in it */
    double z;        /* of it; 0 where there is none */
} sn_stretch;

typedef struct sn_scan {
    sn_allocator *alloc;
    const uint32_t *ranks; /* of each value; equal values have equal ranks */
    size_t count, shortest;
    double inflation; /* of the variance of means, by neighbours that resemble each other */
    uint64_t *keys;
    double *scores; /* of the stretch, in the order of the series */
    double *normal; /* expected scores of `normal_count` values in order */
    size_t normal_count;
} sn_scan;
bool sn_scan_init(sn_scan *s, const uint32_t *ranks, size_t count, size_t shortest,
                  sn_allocator *alloc);
void sn_scan_free(sn_scan *s);
/* Fills `at` and `z` of the stretch. */
void sn_scan_stretch(sn_scan *s, sn_stretch *stretch);
/* s->scores of all values of a stretch; the sum of their squares, 0 where all are equal. */
double sn_scan_scores(sn_scan *s, size_t from, size_t to);

/* ------------------------------------------------------------------ noise.c */
/* How much larger the variance of a mean of many values is than of as many independent ones, 1 or
 * more, from pairs that no change in `at` separates. */
double sn_noise_inflation(sn_scan *s, const size_t *at, size_t n);

/* ------------------------------------------------------------------ search.c */
typedef struct sn_search_result {
    size_t *at; /* in order; to be freed by sn_search_free */
    double *p;
    size_t n, room;
    double inflation;
} sn_search_result;
typedef struct sn_search_options {
    double false_alarms, least;
    size_t shortest;
} sn_search_options;
sonde_status sn_search(const double *values, size_t count, const sn_search_options *options,
                       sn_allocator *alloc, sn_search_result *out, sonde_error *err);
void sn_search_free(sn_search_result *r, sn_allocator *alloc);

/* ------------------------------------------------------------------ changes.c */
/* sonde_changes_find with memory from elsewhere. */
sonde_status sn_changes_find(const double *values, size_t count,
                             const sonde_change_options *options, sn_allocator *alloc,
                             sonde_change_point *changes, size_t room, size_t *found,
                             sonde_error *err);

#endif
