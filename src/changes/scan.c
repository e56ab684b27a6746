/* SPDX-License-Identifier: Apache-2.0 */
/* The best place for one change in a stretch of the series. Values are replaced by normal scores:
 * the smallest of n gets what the smallest of n normal variables would be, and so on (van der
 * Waerden). So no assumption on the distribution of the noise is needed, and an outlier is just the
 * largest value. Then the mean scores before and behind each place are compared, as in a t-test. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "changes/changes.h"

bool sn_scan_init(sn_scan *s, const uint32_t *ranks, size_t count, size_t shortest,
                  sn_allocator *alloc)
{
    *s = (sn_scan){
        .alloc = alloc, .ranks = ranks, .count = count, .shortest = shortest, .inflation = 1};
    s->keys = sn_alloc(alloc, count * sizeof *s->keys);
    s->scores = sn_alloc(alloc, count * sizeof *s->scores);
    s->normal = sn_alloc(alloc, count * sizeof *s->normal);
    if (s->keys && s->scores && s->normal)
        return true;
    sn_scan_free(s);
    return false;
}

void sn_scan_free(sn_scan *s)
{
    sn_free(s->alloc, s->keys, s->count * sizeof *s->keys);
    sn_free(s->alloc, s->scores, s->count * sizeof *s->scores);
    sn_free(s->alloc, s->normal, s->count * sizeof *s->normal);
    *s = (sn_scan){.alloc = s->alloc};
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void need_normal(sn_scan *s, size_t n)
{
    if (s->normal_count == n)
        return;
    for (size_t i = 0; i < n; i++)
        s->normal[i] = i < n / 2 ? sn_chance_quantile(((double)i + 1) / ((double)n + 1)) : 0;
    for (size_t i = n - n / 2; i < n; i++) /* exactly symmetric: the sum is 0 */
        s->normal[i] = -s->normal[n - 1 - i];
    s->normal_count = n;
}

double sn_scan_scores(sn_scan *s, size_t from, size_t to)
{
    const size_t n = to - from;
    double squares = 0;
    need_normal(s, n);
    for (size_t i = 0; i < n; i++)
        s->keys[i] = (uint64_t)s->ranks[from + i] << 32 | (uint64_t)i;
    qsort(s->keys, n, sizeof *s->keys, by_key);
    if (s->keys[0] >> 32 == s->keys[n - 1] >> 32) { /* all are equal */
        memset(s->scores, 0, n * sizeof *s->scores);
        return 0;
    }
    for (size_t i = 0; i < n;) {
        size_t end = i;
        double sum = 0;
        while (end < n && s->keys[end] >> 32 == s->keys[i] >> 32)
            sum += s->normal[end++];
        const double score = sum / (double)(end - i); /* equal values share */
        squares += score * score * (double)(end - i);
        for (; i < end; i++)
            s->scores[s->keys[i] & UINT32_MAX] = score;
    }
    return squares;
}

void sn_scan_stretch(sn_scan *s, sn_stretch *stretch)
{
    const size_t n = stretch->to - stretch->from, least = s->shortest;
    double sum = 0, best = 0;
    stretch->z = 0;
    stretch->at = stretch->from;
    if (n < 2 * least || n < 4)
        return;
    const double squares = sn_scan_scores(s, stretch->from, stretch->to);
    if (!(squares > 0))
        return;
    for (size_t k = 1; k <= n - least; k++) {
        sum += s->scores[k - 1];
        const double explained = sum * sum / ((double)k * (double)(n - k));
        if (k >= least && explained > best) {
            best = explained;
            stretch->at = stretch->from + k;
        }
    }
    const double share = fmin(best * (double)n / squares, 1 - 1e-12); /* of the variance */
    const double freedom = (double)n - 2;
    stretch->z = sn_chance_of_t(sqrt(freedom * share / (1 - share)), freedom) / sqrt(s->inflation);
}
