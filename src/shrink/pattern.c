/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and their norms. Which blocks are the smallest is found without a list of all norms, which
 * would take as much memory as the model: their bits are counted 16 at a time, and norms are
 * computed again for every round. */
#include "shrink/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 }; /* outputs or k of a block */

/* A number with a letter or the end behind it. */
static bool parse_number(const char **at, int64_t *n)
{
    const char *p = *at;
    int64_t v = 0;
    for (; *p >= '0' && *p <= '9' && v <= MOST; p++)
        v = v * 10 + (*p - '0');
    const bool fine = p != *at && v >= 1 && v <= MOST;
    *at = p;
    *n = v;
    return fine;
}

sonde_status sn_pattern_parse(const char *text, sn_pattern *p, sonde_error *err)
{
    const char *at = text;
    int64_t outputs = 0, ks = 0;
    if (strcmp(text, "2:4") == 0) {
        *p = (sn_pattern){.outputs = 1, .ks = 4, .zeros = 2};
        return SONDE_OK;
    }
    if (parse_number(&at, &outputs) && *at == 'x' && (at++, parse_number(&at, &ks)) && !*at) {
        *p = (sn_pattern){.outputs = outputs, .ks = ks};
        return SONDE_OK;
    }
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "unknown pattern '%.60s'; a pattern is OUTPUTSxK, such as 4x1, 1x16, 16x1, 16x4 "
                   "or 1x1, with at most %d of each, or 2:4",
                   text, MOST);
}

/* ---- blocks ---- */

void sn_blocks_open(sn_blocks *b, const sn_elements *e, const sn_weight_view *view,
                    const sn_pattern *p)
{
    const sn_tensor *t = e->t;
    *b = (sn_blocks){.e = e, .pattern = *p, .matrices = 1};
    b->outputs = t->dims[view->out_axis];
    b->ks = t->dims[view->k_axis];
    b->out_stride = e->strides[view->out_axis];
    b->k_stride = e->strides[view->k_axis];
    for (int i = 0; i < t->rank; i++)
        if (i != view->out_axis && i != view->k_axis) {
            b->dims[b->n_axes] = t->dims[i];
            b->strides[b->n_axes++] = e->strides[i];
        }
    if (view->groups > 1) {
        int64_t *split = view->groups_along_k ? &b->ks : &b->outputs;
        *split /= view->groups;
        b->dims[b->n_axes] = view->groups;
        b->strides[b->n_axes++] = *split * (view->groups_along_k ? b->k_stride : b->out_stride);
    }
    for (int i = 0; i < b->n_axes; i++)
        b->matrices *= b->dims[i];
    b->n =
        b->matrices * ((b->outputs + p->outputs - 1) / p->outputs) * ((b->ks + p->ks - 1) / p->ks);
}

/* One block: its first element and its size. */
typedef struct block {
    const sn_blocks *of;
    int64_t at, outputs, ks;
} block;
typedef void (*block_fn)(void *user, const block *b);

static int64_t matrix_offset(const sn_blocks *b, int64_t matrix)
{
    int64_t at = 0;
    for (int i = b->n_axes - 1; i >= 0; matrix /= b->dims[i--])
        at += matrix % b->dims[i] * b->strides[i];
    return at;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void each_block(const sn_blocks *b, block_fn fn, void *user)
{
    for (int64_t m = 0; m < b->matrices; m++) {
        const int64_t start = matrix_offset(b, m);
        for (int64_t o = 0; o < b->outputs; o += b->pattern.outputs)
            for (int64_t k = 0; k < b->ks; k += b->pattern.ks) {
                const block one = {b, start + o * b->out_stride + k * b->k_stride,
                                   at_most(b->pattern.outputs, b->outputs - o),
                                   at_most(b->pattern.ks, b->ks - k)};
                fn(user, &one);
            }
    }
}

static int64_t place(const block *b, int64_t o, int64_t k)
{
    return b->at + o * b->of->out_stride + k * b->of->k_stride;
}

/* Norm per element, so that smaller blocks are held against larger ones, as bits: those of numbers
 * that are not negative have the order of the numbers. */
static uint64_t score(const block *b)
{
    double sum = 0, largest = 0;
    for (int64_t o = 0; o < b->outputs; o++)
        for (int64_t k = 0; k < b->ks; k++) {
            const double x = fabs(sn_element(b->of->e, place(b, o, k)));
            sum += x * x;
            largest = x > largest ? x : largest;
        }
    /* Squares of huge and of tiny f64 leave the range; the largest element says enough of these. */
    double norm = sqrt(sum / (double)(b->outputs * b->ks));
    if (isinf(sum) || (norm == 0 && largest > 0))
        norm = largest;
    if (isnan(norm))
        norm = INFINITY;
    uint64_t bits;
    memcpy(&bits, &norm, sizeof bits);
    return bits;
}

/* ---- the smallest blocks ---- */

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

typedef struct counting {
    uint64_t *counts;      /* of the digit below `shift`, … */
    uint64_t prefix, mask; /* … of scores with these bits above it */
    int shift;
} counting;

static void count_block(void *user, const block *b)
{
    const counting *c = user;
    const uint64_t s = score(b);
    if ((s & c->mask) == c->prefix)
        c->counts[s >> c->shift & (DIGITS - 1)]++;
}

typedef struct clearing {
    uint64_t below; /* scores that go, … */
    int64_t ties;   /* … and how many of those that are equal to it */
} clearing;

static void clear_block(void *user, const block *b)
{
    clearing *c = user;
    const uint64_t s = score(b);
    if (s > c->below || (s == c->below && c->ties-- <= 0))
        return;
    for (int64_t o = 0; o < b->outputs; o++)
        for (int64_t k = 0; k < b->ks; k++)
            sn_element_clear(b->of->e, place(b, o, k));
}

sonde_status sn_blocks_clear_smallest(const sn_blocks *const *list, size_t n, int64_t count,
                                      sn_allocator *alloc, sonde_error *err)
{
    if (count <= 0)
        return SONDE_OK;
    counting c = {.counts = sn_alloc(alloc, DIGITS * sizeof(uint64_t))};
    if (!c.counts)
        return sn_fail_memory(err, DIGITS * sizeof(uint64_t));
    uint64_t left = (uint64_t)count; /* of the blocks with the prefix, that many go */
    for (c.shift = 64 - DIGIT_BITS; c.shift >= 0; c.shift -= DIGIT_BITS) {
        memset(c.counts, 0, DIGITS * sizeof(uint64_t));
        for (size_t i = 0; i < n; i++)
            each_block(list[i], count_block, &c);
        uint64_t digit = 0;
        while (digit < DIGITS - 1 && left > c.counts[digit])
            left -= c.counts[digit++];
        c.prefix |= digit << c.shift;
        c.mask |= (uint64_t)(DIGITS - 1) << c.shift;
    }
    sn_free(alloc, c.counts, DIGITS * sizeof(uint64_t));
    clearing go = {.below = c.prefix, .ties = (int64_t)left};
    for (size_t i = 0; i < n; i++)
        each_block(list[i], clear_block, &go);
    return SONDE_OK;
}

/* ---- within blocks ---- */

static void clear_some(void *user, const block *b)
{
    (void)user;
    const sn_pattern *p = &b->of->pattern;
    int64_t zeros = p->zeros * b->ks / p->ks;
    for (uint64_t gone = 0; zeros > 0; zeros--) {
        int64_t smallest = -1;
        double least = 0;
        for (int64_t k = 0; k < b->ks; k++) {
            double x = fabs(sn_element(b->of->e, place(b, 0, k)));
            x = isnan(x) ? INFINITY : x;
            if (!(gone >> k & 1) && (smallest < 0 || x < least)) {
                smallest = k;
                least = x;
            }
        }
        gone |= (uint64_t)1 << smallest;
        sn_element_clear(b->of->e, place(b, 0, smallest));
    }
}

void sn_blocks_clear_within(const sn_blocks *b)
{
    each_block(b, clear_some, NULL);
}

/* ---- norms ---- */

sn_norm sn_elements_norm(const sn_elements *e)
{
    sn_norm n = {.norm = 0};
    double sum = 0;
    const int64_t count = sn_tensor_count(e->t);
    for (int64_t i = 0; i < count; i++) {
        const double x = sn_element(e, i);
        sum += x * x;
        n.zeros += x == 0;
    }
    n.norm = sqrt(sum);
    return n;
}
