/* SPDX-License-Identifier: Apache-2.0 */
/* From every token of a row, the trie is followed as far as it goes, once per distance of tokens.
 */
#include "compute/ngrams.h"

#include <string.h>

#include "compute/parallel.h"

/* ------------------------------------------------------------------ trie */
size_t sn_ngrams_cap(size_t tokens)
{
    size_t cap = 16;
    while (cap < 2 * tokens + 2)
        cap *= 2;
    return cap;
}

void sn_ngrams_clear(sn_ngrams *t)
{
    t->gram[0] = -1;
    t->nodes = 1;
}

/* The slot of an edge, taken or free. */
static sn_ngram_edge *edge_at(const sn_ngrams *t, uint32_t node, uint32_t token)
{
    const uint64_t key = ((uint64_t)node << 32 | token) + 1;
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 17) & (t->cap - 1);
    while (t->edges[at].key && t->edges[at].key != key)
        at = (at + 1) & (t->cap - 1);
    return &t->edges[at];
}

void sn_ngrams_add(sn_ngrams *t, const uint32_t *tokens, int64_t length, int64_t gram)
{
    uint32_t node = 0;
    for (int64_t i = 0; i < length; i++) {
        sn_ngram_edge *e = edge_at(t, node, tokens[i]);
        if (!e->key) {
            e->key = ((uint64_t)node << 32 | tokens[i]) + 1;
            e->node = t->nodes++;
            t->gram[e->node] = -1;
        }
        node = e->node;
    }
    t->gram[node] = gram;
}

/* ------------------------------------------------------------------ counting */
typedef struct job {
    const sn_ngrams *t;
    float *y;
    int64_t columns;
    sn_ngram_numbers_fn *numbers;
    const void *arg;
    int32_t *tokens;
} job;

/* Counts n-grams of at least `least` tokens that begin at `from`, every `step` tokens. */
static void count_from(const sn_ngrams *t, const int32_t *row, int64_t columns, int64_t from,
                       int64_t step, int64_t least, float *y)
{
    uint32_t node = 0;
    int64_t length = 1;
    for (int64_t i = from; i < columns && length <= t->max; i += step, length++) {
        if (row[i] < 0)
            return;
        const sn_ngram_edge *e = edge_at(t, node, (uint32_t)row[i]);
        if (!e->key)
            return;
        node = e->node;
        const int64_t gram = t->gram[node];
        if (gram < 0 || length < least)
            continue;
        const float weight = t->weights ? t->weights[gram] : 1.0f;
        float *count = &y[t->columns[gram]];
        *count = t->once ? weight : *count + weight;
    }
}

static void count_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_ngrams *t = j->t;
    for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {
        float *y = j->y + r * t->width;
        memset(y, 0, sizeof(float) * (size_t)t->width);
        if (j->columns == 0)
            continue;
        int32_t *row = j->tokens + r * j->columns;
        j->numbers(j->arg, r * j->columns, j->columns, row);
        int64_t least = t->min;
        /* A step beyond the row finds nothing but single tokens. */
        for (int64_t step = 1; step <= t->skips + 1 && step <= j->columns && least <= t->max;
             step++) {
            for (int64_t from = 0; from < j->columns; from++)
                count_from(t, row, j->columns, from, step, least, y);
            if (least == 1) /* single tokens know no skips: they are counted once */
                least = 2;
        }
    }
}

void sn_ngrams_count(const sn_ngrams *t, float *y, int64_t rows, int64_t columns,
                     sn_ngram_numbers_fn *numbers, const void *arg, int32_t *scratch, sn_pool *pool)
{
    job j = {t, y, columns, numbers, arg, scratch};
    sn_parallel_range(pool, (size_t)rows, 16 * (size_t)(columns + t->width) + 1, count_range, &j);
}
